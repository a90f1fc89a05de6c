"""What the judge of hostile frames lets pass, and what it does not."""

from struct import pack

import pytest

from brimline.torture.hostile.frames import CLEAR, FENCED, Name
from brimline.torture.hostile.judge import complaint
from brimline.torture.hostile.produce import Partition, PlainRequest, PlainTopic, batch, encoded_request
from brimline.torture.hostile.sides import Fate, FrameKind
from tests.wire.produce_messages import Answer, AnsweredPartition, AnsweredTopic, encoded_answer

ENDED, SILENT = Fate(FrameKind.ENDED), Fate(FrameKind.SILENT)
METADATA = pack(">ihhihi", 14, 3, 1, 0, -1, -1)


def asked(*names: Name, version: int = 9, acks: int = -1) -> bytes:
    topics = [PlainTopic(name.word, name.topic_id, [Partition(0, batch())]) for name in names]
    payload = encoded_request(PlainRequest(topics=topics, acks=acks), version)
    return pack(">i", len(payload)) + payload


def answered(codes: dict[Name, int], version: int = 9, offset: int = 5) -> Fate:
    topics = [
        AnsweredTopic(name.word, name.topic_id, [AnsweredPartition(0, code, base_offset=offset)])
        for name, code in codes.items()
    ]
    return Fate(FrameKind.ANSWERED, encoded_answer(Answer(topics), version)[4:])


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_an_acknowledgement_behind_the_fence_is_a_violation(version: int) -> None:
    frame = asked(CLEAR, FENCED, version=version)
    past = answered({CLEAR: 0, FENCED: 0}, version)

    assert complaint(frame, answered({CLEAR: 0, FENCED: 56}, version, offset=9), past) is None
    assert "behind the fence" in str(complaint(frame, answered({CLEAR: 0, FENCED: 0}, version), past))
    assert "56 through the gateway" in str(complaint(frame, answered({CLEAR: 56, FENCED: 56}, version), past))
    assert "other partitions" in str(complaint(frame, answered({FENCED: 56}, version), past))


def test_ending_what_a_broker_answers_is_a_violation() -> None:
    assert "connection ended" in str(complaint(asked(FENCED), ENDED, answered({FENCED: 0})))
    assert "connection ended" in str(complaint(asked(CLEAR), ENDED, answered({CLEAR: 0})))
    assert complaint(asked(FENCED), ENDED, ENDED) is None
    assert complaint(asked(FENCED, acks=0), ENDED, Fate(FrameKind.UNANSWERED)) is None


def test_what_is_not_fenced_has_the_same_fate() -> None:
    assert complaint(asked(CLEAR), answered({CLEAR: 0}, offset=1), answered({CLEAR: 0}, offset=2)) is None
    assert complaint(asked(CLEAR), answered({CLEAR: 0}), answered({CLEAR: 2})) is not None
    assert complaint(METADATA, SILENT, Fate(FrameKind.ANSWERED, b"x")) is not None
    assert complaint(METADATA, SILENT, SILENT) is None


def test_an_answer_that_only_the_gateway_makes_unreadable_is_a_violation() -> None:
    assert "cannot be read" in str(complaint(asked(CLEAR), Fate(FrameKind.ANSWERED, b"\0"), answered({CLEAR: 0})))


def test_one_byte_more_behind_version_5_asks_for_another_layout() -> None:
    frame = bytes.fromhex("0000001d002300050000000100016300020866656e63652d610200000000000000")
    shipped, with_remote_sizes = Fate(FrameKind.ANSWERED, bytes(8)), Fate(FrameKind.ANSWERED, bytes(24))

    assert complaint(frame, with_remote_sizes, shipped) is None


def test_a_request_that_a_broker_refuses_as_a_whole_may_be_good_without_its_fenced_part() -> None:
    ours = answered({CLEAR: 0, FENCED: 56})

    assert complaint(asked(CLEAR, FENCED), ours, answered({CLEAR: 2, FENCED: 2})) is None
    assert complaint(asked(CLEAR, FENCED), ours, answered({CLEAR: 2, FENCED: 0})) is not None


def test_what_kafkajs_may_have_sent_may_be_refused_as_a_whole_by_the_gateway() -> None:
    frame, past = asked(CLEAR, FENCED, version=7), answered({CLEAR: 0, FENCED: 0}, 7)

    assert complaint(frame, answered({CLEAR: 56, FENCED: 56}, 7), past) is None
    assert complaint(frame, answered({CLEAR: 2, FENCED: 56}, 7), past) is not None
    assert complaint(frame, answered({CLEAR: 56, FENCED: 0}, 7), past) is not None


def test_a_name_within_the_records_makes_another_request_of_the_twins() -> None:
    topics = [PlainTopic(FENCED.word, FENCED.topic_id, [Partition(0, batch(value=FENCED.word.encode()))])]
    payload = encoded_request(PlainRequest(topics=topics), 9)
    frame = pack(">i", len(payload)) + payload

    assert complaint(frame, ENDED, answered({FENCED: 0})) is None
    assert "behind the fence" in str(complaint(frame, answered({FENCED: 0}), answered({FENCED: 2})))

"""Which trim may be sent, and what each refusal of a leader means."""

from dataclasses import replace
from uuid import UUID

import pytest

from brimline.act.trims.rules import Left, PartitionNow, Problem, TrimVerdict, judge, refusal
from brimline.model import BrokerId, Bytes, KafkaError, Offset, TopicPartition
from tests.act.ledger.entries import a_trim

PLANNED = a_trim(segments=3)
NOW = PartitionNow(
    topic_id=PLANNED.topic_id,
    leader=BrokerId(1),
    log_start=Offset(0),
    high_watermark=Offset(3000),
    cleanup_policy="delete",
    is_tiered=False,
)
ALL = Left(files=9, allocated_bytes=Bytes(9 * 4096))
NOTHING = Left(files=0, allocated_bytes=Bytes(0))
TROUBLE = Problem(why="it has no leader", may_pass=True)


@pytest.mark.parametrize(
    ("now", "left", "was_asked_for", "verdict"),
    [
        pytest.param(NOW, ALL, False, TrimVerdict.SEND, id="as planned"),
        pytest.param(NOW, ALL, True, TrimVerdict.SEND, id="forgotten"),
        pytest.param(replace(NOW, log_start=Offset(2999)), ALL, False, TrimVerdict.SEND, id="one record is left"),
        pytest.param(replace(NOW, log_start=Offset(3000)), ALL, False, TrimVerdict.IS_THERE, id="done by others"),
        pytest.param(replace(NOW, log_start=Offset(9000)), ALL, True, TrimVerdict.IS_THERE, id="others went further"),
        pytest.param(replace(NOW, log_start=Offset(3000)), NOTHING, False, TrimVerdict.IS_GONE, id="others, and gone"),
        pytest.param(NOW, NOTHING, True, TrimVerdict.IS_GONE, id="asked for, and gone"),
        pytest.param(TROUBLE, NOTHING, True, TrimVerdict.IS_GONE, id="gone, though nobody answers"),
        pytest.param(TROUBLE, ALL, True, TROUBLE, id="nobody answers"),
        pytest.param(
            replace(NOW, cleanup_policy="compact,delete"), ALL, False, TrimVerdict.SEND, id="compact and delete"
        ),
    ],
)
def test_what_is_to_be_done(
    now: PartitionNow | Problem,
    left: Left,
    was_asked_for: bool,  # noqa: FBT001 (of a table)
    verdict: TrimVerdict | Problem,
) -> None:
    assert judge(PLANNED, now, left, was_asked_for=was_asked_for) == verdict


@pytest.mark.parametrize(
    ("now", "left", "why"),
    [
        (replace(NOW, topic_id=UUID(int=99)), ALL, "was deleted and recreated"),
        (replace(NOW, topic_id=None), ALL, "was deleted and recreated"),
        (replace(NOW, is_tiered=True), ALL, "would delete its remote data"),
        (replace(NOW, cleanup_policy="compact"), ALL, "compacted only"),
        (replace(NOW, cleanup_policy=""), ALL, "compacted only"),
        (replace(NOW, high_watermark=Offset(2999)), ALL, "its high watermark is 2999, below the planned offset 3000"),
        (NOW, NOTHING, "its segments are no longer in /data/a"),
    ],
)
def test_what_is_no_longer_true_is_given_up(now: PartitionNow, left: Left, why: str) -> None:
    verdict = judge(PLANNED, now, left, was_asked_for=False)

    assert isinstance(verdict, Problem)
    assert why in verdict.why
    assert not verdict.may_pass


@pytest.mark.parametrize("last_stable", [2999, 0])
def test_a_trim_never_goes_beyond_an_open_transaction(last_stable: int) -> None:
    verdict = judge(PLANNED, replace(NOW, last_stable=Offset(last_stable)), ALL, was_asked_for=False)

    why = f"a transaction is open at {last_stable}, below the planned offset 3000"
    assert verdict == Problem(why=why, may_pass=True)
    assert judge(PLANNED, replace(NOW, last_stable=Offset(3000)), ALL, was_asked_for=False) is TrimVerdict.SEND


@pytest.mark.parametrize(
    ("code", "words", "may_pass"),
    [
        (1, "OFFSET_OUT_OF_RANGE", False),
        (3, "the topic orders is gone", False),
        (17, "is internal", False),
        (29, "needs DESCRIBE and DELETE on the topic orders", False),
        (31, "refused by the cluster", False),
        (44, "compacted only", False),
        (6, "its leader has moved", True),
        (7, "not all of its replicas followed in time", True),
        (56, "is offline", True),
        (-1, "the leader answers UNKNOWN_SERVER_ERROR", True),
    ],
)
def test_every_refusal_has_a_sentence(code: int, words: str, may_pass: bool) -> None:  # noqa: FBT001 (of a table)
    problem = refusal(KafkaError(code), TopicPartition("orders", 3))

    assert words in problem.why
    assert problem.may_pass is may_pass

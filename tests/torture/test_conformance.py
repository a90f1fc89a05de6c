"""The conformance kit's words: what is made of what was seen."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from struct import pack, unpack

import pytest

from brimline.torture.conformance.clients import RefusedSend, Written, writing
from brimline.torture.conformance.command import SCENARIOS, _share, _told
from tests.wire.produce_messages import Answer, AnsweredPartition, AnsweredTopic, encoded_answer


@pytest.mark.parametrize(
    ("refusals", "verdict"),
    [
        ([], "nothing"),
        ([RefusedSend(0, "no answer within 5 s")], "nothing"),
        ([RefusedSend(56, "")], "an error without a cause"),
        ([RefusedSend(0, "the connection was ended"), RefusedSend(56, "no space left on /data")], "the cause"),
    ],
)
def test_what_a_producer_is_told(refusals: list[RefusedSend], verdict: str) -> None:
    assert _told(Written(refusals=Counter(refusals))).verdict == verdict


@pytest.mark.parametrize(("during", "verdict"), [(100, "goes on"), (50, "slowed"), (1, "stops")])
def test_the_share_of_before(during: float, verdict: str) -> None:
    assert _share(100, during).verdict == verdict


def test_a_rate_is_of_its_time_alone() -> None:
    assert Written(at=[1.0, 2.0, 3.0, 9.0]).rate(2.0, 4.0) == 1.0


def test_every_scenario_has_a_name_of_its_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def serve(listener: socket.socket, codes: Iterator[int]) -> None:
    """One connection after the other; 0 stores, -1 ends the connection, anything else is the error."""
    offset = 0
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(4):
                asked = stream.read(unpack(">i", head)[0])
                code = next(codes, None)
                if code is None:
                    return
                if code < 0:
                    break
                partition = AnsweredPartition(0, code, base_offset=offset, message="no space" if code else None)
                offset += code == 0
                payload = encoded_answer(
                    Answer([AnsweredTopic("t", None, [partition])]), 9, unpack(">i", asked[4:8])[0]
                )
                connection.sendall(pack(">i", len(payload)) + payload)


def test_a_record_is_written_until_it_is_acknowledged_and_what_was_said_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=serve, args=(listener, iter([0, 56, 0, -1, 0, 0])))
        answering.start()
        with writing(f"127.0.0.1:{listener.getsockname()[1]}", "t", 0, per_second=1000, size=50) as written:
            answering.join()

    assert written.acknowledged == [0, 1, 2, 3]
    assert written.refusals[RefusedSend(56, "no space")] == 1
    assert written.refusals[RefusedSend(0, "the connection was ended")] >= 1
    assert len(written.wrongs) >= 2

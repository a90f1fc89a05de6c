"""What is said in a refusal, when it is answered, and who is not made to wait with it."""

from pathlib import Path

import pytest

from brimline.gateway.net.connection import Connection
from brimline.gateway.rules.follower_orders import FencedFollower
from tests.gateway.peers import Client, frame
from tests.gateway.test_hostile import FREE_ID, FULL_ID, real_rules
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request

FULL = PlainTopic("full", FULL_ID, [Partition(0, batch())])
FREE = PlainTopic("free", FREE_ID, [Partition(0, batch())])
REFUSED, ALLOWED, MIXED = (
    frame(encoded_request(PlainRequest(topics=topics), 9)) for topics in ([FULL], [FREE], [FULL, FREE])
)
BURST = 1
"""Of refusals that are answered at once, at a rate of one a second."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each answer of the gateway's own was held back."""
    seen: list[float] = []
    answer = Connection.answer

    def seen_and_answered(self: Connection, frame: bytes, *, after_seconds: float = 0.0) -> None:
        seen.append(after_seconds)
        answer(self, frame)

    monkeypatch.setattr(Connection, "answer", seen_and_answered)
    return seen


def test_who_sends_nothing_else_is_answered_later(tmp_path: Path, waits: list[float]) -> None:
    with real_rules(tmp_path, refusals_per_second=1) as gateway, Client(gateway.address) as client:
        for _ in range(5):
            client.send(REFUSED)
            client.read_frame()

    assert [wait > 0 for wait in waits] == [False] * BURST + [True] * (5 - BURST)
    assert waits[BURST:] == sorted(waits[BURST:])


@pytest.mark.parametrize("allowed", [ALLOWED, MIXED], ids=["a request of its own", "a part of a request"])
def test_who_writes_to_healthy_partitions_too_does_not_wait(tmp_path: Path, waits: list[float], allowed: bytes) -> None:
    with real_rules(tmp_path, refusals_per_second=1) as gateway, Client(gateway.address) as client:
        client.send(allowed)
        client.read_frame()
        for _ in range(20):
            client.send(REFUSED)
            client.read_frame()

    assert waits == [0.0] * 20


def test_the_disk_of_the_leader_comes_first_in_what_clients_are_told(tmp_path: Path) -> None:
    follower = FencedFollower(broker=3, reason="broker 3 is full", partitions=(("full", 0), ("free", 0)))
    with real_rules(tmp_path, followers=[follower]) as gateway, Client(gateway.address) as client:
        client.send(REFUSED)
        of_leader = client.read_frame()
        client.send(ALLOWED)
        of_follower = client.read_frame()

    assert b"there is no room" in of_leader
    assert b"broker 3 is full" not in of_leader
    assert b"broker 3 is full" in of_follower

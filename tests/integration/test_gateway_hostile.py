"""Hostile clients before a fence on a real broker: what counts is what its log holds afterwards."""

import random
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from brimline.sandbox import Sandbox
from brimline.torture.hostile.frames import mutated
from brimline.torture.hostile.produce import odd_requests
from tests.integration.cluster import create_topic
from tests.integration.full_disks import NO_LIMIT, create_topic_in, end_offset, topic_id, two_disks
from tests.integration.gatewayed import RunningGateway, gateway
from tests.integration.shared import shared
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request

pytestmark = pytest.mark.integration

VERSIONS = {"3.9.2": range(3, 12), "4.3.1": range(3, 14)}
"""Of Produce, with the records that are sent here."""
FENCED, FREE = "fenced", "free"
SILENCE_SECONDS = 5.0


@dataclass(frozen=True)
class World:
    sandbox: Sandbox
    versions: range
    gateway: RunningGateway
    fenced_id: UUID
    free_id: UUID


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both topics have two partitions; those of the one are in a log dir that is fenced."""
    log = tmp_path_factory.mktemp("gateway") / "log"
    with shared(two_disks(request.param)) as sandbox, gateway(sandbox, log, NO_LIMIT) as running:
        first, second = sandbox.broker(1).log_dirs
        create_topic_in(sandbox, FENCED, first, first)
        create_topic_in(sandbox, FREE, second, second)
        yield World(sandbox, VERSIONS[request.param], running, topic_id(sandbox, FENCED), topic_id(sandbox, FREE))


@contextmanager
def fence(world: World, *log_dirs: Path) -> Iterator[None]:
    for log_dir in log_dirs:
        assert world.gateway.ask("fence", logDir=str(log_dir), reason="for a test")["ok"]
    try:
        yield
    finally:
        for log_dir in log_dirs:
            assert world.gateway.ask("unfence", logDir=str(log_dir))["ok"]


def address(servers: str) -> tuple[str, int]:
    host, _, port = servers.rpartition(":")
    return host, int(port)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def send(servers: str, frames: Sequence[bytes]) -> None:
    """All on one connection; returns when the other side has ended it, having answered what it would.

    To records that are null a broker never answers.
    """
    with (
        socket.create_connection(address(servers), timeout=PATIENCE_SECONDS) as sock,
        suppress(ConnectionError, TimeoutError),
    ):
        sock.sendall(b"".join(frames))
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(SILENCE_SECONDS)
        while sock.recv(1 << 16):
            pass


def is_answered(servers: str, sent: bytes) -> bool:
    with socket.create_connection(address(servers), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(sent)
        return bool(sock.recv(1))


def test_a_broker_stores_what_is_odd(world: World) -> None:
    """Why a reader must not be stricter than a broker: each of these is stored, if nothing stands before it."""
    refused = []
    for odd in odd_requests(FREE, world.free_id, batch(), world.versions):
        before = end_offset(world.sandbox, FREE)
        if not is_answered(world.sandbox.direct_servers, frame(odd.payload)):
            refused.append(f"{odd} ends the connection")
        elif end_offset(world.sandbox, FREE) == before:
            refused.append(str(odd))
    assert refused == []


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_what_is_odd_does_not_pass_a_fence(world: World, acks: int) -> None:
    before = end_offset(world.sandbox, FENCED)
    with fence(world, world.sandbox.broker(1).log_dirs[0]):
        for odd in odd_requests(FENCED, world.fenced_id, batch(), world.versions, acks=acks):
            send(world.sandbox.bootstrap_servers, [frame(odd.payload)])
        assert end_offset(world.sandbox, FENCED) == before
    assert world.sandbox.broker(1).is_running


def test_what_cannot_be_read_ends_its_connection_and_is_counted(world: World) -> None:
    """Two limits are our own; and of a version that nobody was offered nothing is known at all."""
    tags = dict.fromkeys(range(40), b"")
    one = [PlainTopic(FENCED, world.fenced_id, [Partition(0, batch())])]
    many = [PlainTopic(FENCED, world.fenced_id, [Partition(0, batch()), *[Partition(9, None)] * 50_000])]
    unreadable = [
        encoded_request(PlainRequest(topics=one, tags=tags), 9),
        encoded_request(PlainRequest(topics=many), 9),
        struct.pack(">hh", 0, 14) + encoded_request(PlainRequest(topics=one), max(world.versions))[4:],
    ]
    before = end_offset(world.sandbox, FENCED)

    def counted() -> int:
        return int(world.gateway.state()["connections"]["closed"].get("unreadable-produce", 0))

    earlier = counted()
    with fence(world, world.sandbox.broker(1).log_dirs[0]):
        for payload in unreadable:
            send(world.sandbox.bootstrap_servers, [frame(payload)])
        assert end_offset(world.sandbox, FENCED) == before
        eventually(lambda: counted() - earlier == len(unreadable))
    assert "unreadable-produce" in world.gateway.events()


@pytest.mark.parametrize(
    "streams", [pytest.param(100, id="some"), pytest.param(5_000, marks=pytest.mark.long, id="many")]
)
def test_mutated_requests_do_not_pass_a_fence(world: World, streams: int) -> None:
    randomness = random.Random(streams)
    frames = [
        frame(encoded_request(PlainRequest(topics=topics, acks=acks), version))
        for version in world.versions
        for acks in (-1, 0)
        for topics in (
            [PlainTopic(FENCED, world.fenced_id, [Partition(0, batch()), Partition(1, batch())])],
            [
                PlainTopic(FREE, world.free_id, [Partition(0, batch())]),
                PlainTopic(FENCED, world.fenced_id, [Partition(0, batch())]),
            ],
        )
    ]
    before = [end_offset(world.sandbox, FENCED, number) for number in (0, 1)]
    free_before = end_offset(world.sandbox, FREE)
    with fence(world, world.sandbox.broker(1).log_dirs[0]):
        for _ in range(streams):
            send(
                world.sandbox.bootstrap_servers,
                [mutated(randomness.choice(frames), randomness) for _ in range(randomness.choice((1, 5, 30)))],
            )
        assert [end_offset(world.sandbox, FENCED, number) for number in (0, 1)] == before
    assert end_offset(world.sandbox, FREE) > free_before
    assert world.sandbox.broker(1).is_running


def test_a_partition_that_was_seen_nowhere_yet_is_looked_for(world: World) -> None:
    """It is created while its log dir is fenced, and written to at once."""
    first, second = world.sandbox.broker(1).log_dirs
    with fence(world, first):
        for number in range(8):
            into, is_fenced = (first, True) if number % 2 else (second, False)
            create_topic_in(world.sandbox, f"new-{number}", into)
            for version in (max(world.versions), 8):
                topics = [
                    PlainTopic(f"new-{number}", topic_id(world.sandbox, f"new-{number}"), [Partition(0, batch())])
                ]
                send(world.sandbox.bootstrap_servers, [frame(encoded_request(PlainRequest(topics=topics), version))])
            assert end_offset(world.sandbox, f"new-{number}") == (0 if is_fenced else 2)


def test_where_every_log_dir_is_fenced_a_new_partition_takes_nothing(world: World) -> None:
    with fence(world, *world.sandbox.broker(1).log_dirs):
        for number in range(4):
            topic = f"nowhere-{number}"
            create_topic(world.sandbox, topic)
            topics = [PlainTopic(topic, topic_id(world.sandbox, topic), [Partition(0, batch())])]
            send(
                world.sandbox.bootstrap_servers,
                [frame(encoded_request(PlainRequest(topics=topics), version)) for version in world.versions],
            )
            assert end_offset(world.sandbox, topic) == 0

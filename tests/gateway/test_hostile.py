"""Broken and malicious bytes: no crash, no growth, the connection in question is closed, the others do not notice.

The rules are the gateway's own, with a full log dir, so that mutated Produce requests are looked into, split and
answered. What is behind them answers every frame with a little noise.
"""

import contextlib
import itertools
import random
import resource
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import SaslHandshakeRequest

from brimline.gateway.counters import Counters
from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.describe.rule import DescribeRule
from brimline.gateway.net.connection import Judge
from brimline.gateway.net.forwarder import ForwarderSettings
from brimline.gateway.net.loop import EventLoop
from brimline.gateway.rules.commit_rule import CommitRule
from brimline.gateway.rules.fences import Fences
from brimline.gateway.rules.follower_orders import FencedFollower
from brimline.gateway.rules.placement import Placement
from brimline.gateway.rules.rules import Rules, RuleSettings
from brimline.gateway.rules.sequence_memory import SequenceMemory
from brimline.torture.hostile.frames import mutated
from brimline.wire import produce
from brimline.wire.primitives import WireError
from brimline.wire.produce_response import Refusal, refusing_response
from tests.gateway.peers import (
    CHANGED,
    COLLECTED,
    PASSES,
    Backend,
    Client,
    Running,
    answer_everything,
    answer_of,
    frame,
    request,
    requests_from,
    running,
)
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request

FULL_ID, FREE_ID = UUID(int=1), UUID(int=2)
LARGEST = 1 << 20
INVALID_RECORD = 87


def produce_frame(version: int, acks: int = -1, producer_id: int = -1) -> bytes:
    records = batch(producer_id=producer_id, producer_epoch=0 if producer_id >= 0 else -1, base_sequence=producer_id)
    partitions = [Partition(0, records), Partition(1, records)]
    topics = [PlainTopic("full", FULL_ID, partitions), PlainTopic("free", FREE_ID, partitions)]
    return frame(encoded_request(PlainRequest(topics=topics, acks=acks), version))


def encoded(asked: Any) -> bytes:  # kafka-python is not typed
    asked.with_header(correlation_id=7, client_id="client")
    return bytes(asked.encode(header=True, framed=True))


def real_frames() -> list[bytes]:
    log_dirs = [
        DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=[0, 1]) for name in ("full", "free")
    ]
    return [
        *(produce_frame(version, producer_id=producer_id) for version in (2, 3, 7, 9, 13) for producer_id in (-1, 5)),
        produce_frame(8, acks=0),
        encoded(ApiVersionsRequest(version=0)),
        encoded(ApiVersionsRequest(client_software_name="name", client_software_version="1.0", version=3)),
        encoded(MetadataRequest(topics=[], version=1)),
        encoded(FetchRequest(replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=1, topics=[], version=4)),
        encoded(SaslHandshakeRequest(mechanism="PLAIN", version=0)) + frame(b"\0user\0password"),
        *(encoded(DescribeLogDirsRequest(topics=log_dirs, version=version)) for version in (1, 4)),
    ]


def answer_with_noise(sock: socket.socket) -> None:
    """To every frame that wants an answer one with its correlation id. A well-behaved client is served well."""
    for asked in requests_from(sock):
        if asked == GREETING:
            sock.sendall(answer_of(asked))
            answer_everything(sock)
            return
        if len(asked) >= 12 and has_answer(asked):
            sock.sendall(without_records(asked) or frame(asked[8:12] + asked[:40]))


def without_records(asked: bytes) -> bytes | None:
    """As a broker answers a Produce request that has none; ``None`` to anything else."""
    version = int.from_bytes(asked[6:8], signed=True)
    try:
        index = produce.index_produce(memoryview(asked)[4:], version) if asked[4:6] == b"\0\0" else None
    except WireError:
        return None
    if index is None or any(part.records_bytes for part in index.parts):
        return None
    refusals = [Refusal(part, INVALID_RECORD, None) for part in index.parts]
    return refusing_response(version, int.from_bytes(asked[8:12], signed=True), refusals)


GREETING = request(PASSES, 77)


def has_answer(asked: bytes) -> bool:
    version = int.from_bytes(asked[6:8], signed=True)
    if asked[4:6] != b"\0\0" or not produce.MIN_VERSION <= version <= produce.MAX_VERSION:
        return True
    try:
        return produce.read_acks(memoryview(asked)[4:], version) != 0
    except WireError:
        return True


@contextlib.contextmanager
def real_rules(
    folder: Path,
    refusals_per_second: int = 1_000_000_000,
    serve: Callable[[socket.socket], None] = answer_with_noise,
    memory: SequenceMemory | None = None,
    *,
    login_timeout: float | None = None,
    followers: Sequence[FencedFollower] = (),
) -> Iterator[Running]:
    """A gateway before a broker with a full log dir that has both partitions of a topic, and one that has room."""
    placement = Placement(
        log_dirs={(topic, number): f"/{topic}" for topic in ("full", "free") for number in (0, 1)},
        names={FULL_ID: "full", FREE_ID: "free"},
    )
    memory = memory or SequenceMemory(folder / "sequences.map", now=0, capacity=1_000)
    worker = DescribeWorker(None)
    describes: list[DescribeRule] = []

    def judge(loop: EventLoop, counters: Counters) -> Judge:
        fences = Fences(state_dir=folder, node_id=1, log_dirs=["/full", "/free"])
        fences.set_full({"/full": "there is no room"})
        fences.lease_followers(followers, epoch=1, seconds=60)
        describes.append(DescribeRule(loop, worker))
        settings = RuleSettings(refusals_per_second=refusals_per_second)

        def soon(then: Callable[[], None]) -> None:
            loop.later(0.0, then)

        commits = CommitRule(fences, lambda: placement, lambda: None)
        return Rules(settings, fences, lambda: placement, memory, lambda: 0, describes[0], commits, counters, soon)

    settings = ForwarderSettings(
        largest_request=LARGEST, header_timeout=PATIENCE_SECONDS, login_timeout=login_timeout or PATIENCE_SECONDS
    )
    with (
        contextlib.closing(memory),
        contextlib.closing(Backend(serve)) as backend,
        running(backend.address, settings, judge=judge, needs_login=login_timeout is not None) as gateway,
    ):
        yield gateway
        gateway.inside(describes[0].close)  # with the worker, should a mutation have needed one


@contextlib.contextmanager
def undisturbed(gateway: Running) -> Iterator[None]:
    """Meanwhile somebody else talks to the broker, and is answered rightly; in the end he is the only one left."""
    stop = threading.Event()
    failures: list[BaseException] = []
    with Client(gateway.address) as client:

        def talk() -> None:
            try:
                for number in itertools.count():
                    client.ask(body=number % 2_000, answer=number % 3_000)
                    if stop.wait(0.005):
                        return
            except BaseException as failure:  # noqa: BLE001  raised below, where the test sees it
                failures.append(failure)

        client.send(GREETING)
        assert client.read_frame() == answer_of(GREETING)
        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert failures == []
        eventually(lambda: gateway.forwarder.all_open == 1)
        assert gateway.forwarder.kept_bytes == 0


def send_and_forget(gateway: Running, data: bytes) -> None:
    """All of it, then the end; the answers are of no interest."""
    with Client(gateway.address) as client, contextlib.suppress(ConnectionError):
        client.send(data)
        client.sock.shutdown(socket.SHUT_WR)
        client.read_to_end()


# Mutations -------------------------------------------------------------------------------------------------------


def mutated_stream(frames: Sequence[bytes], count: int, randomness: random.Random) -> bytes:
    """In the end there is one whose length is wrong as well."""
    last = bytearray(randomness.choice(frames))
    last[randomness.randrange(4)] ^= 1 << randomness.randrange(8)
    return b"".join(mutated(randomness.choice(frames), randomness) for _ in range(count)) + bytes(last)


def fuzz(gateway: Running, count: int, seed: int) -> None:
    """Until the gateway has seen that many mutated frames. A bad frame ends its connection; then comes the next."""
    frames = real_frames()
    randomness = random.Random(seed)
    while gateway.counters.requests + gateway.counters.closed["malformed"] < count:
        send_and_forget(gateway, mutated_stream(frames, 60, randomness))


def test_mutated_frames(tmp_path: Path) -> None:
    with real_rules(tmp_path) as gateway, undisturbed(gateway):
        fuzz(gateway, 10_000, seed=1)
        assert gateway.counters.refused.rows
        assert gateway.closed["malformed"] > 10


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_million_mutated_frames(tmp_path: Path) -> None:
    with real_rules(tmp_path) as gateway, undisturbed(gateway):
        fuzz(gateway, 100_000, seed=2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fuzz(gateway, 1_000_000, seed=3)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB


def test_frames_that_end_at_any_byte(tmp_path: Path) -> None:
    with real_rules(tmp_path) as gateway, undisturbed(gateway):
        for whole in real_frames()[::2]:
            for size in range(0, len(whole), 1 if len(whole) < 100 else 7):
                send_and_forget(gateway, whole[:size])
        for whole in real_frames():
            for size in range(0, len(whole), 29):
                client = Client(gateway.address)
                client.send(whole[:size])
                client.reset()


def test_random_bytes(tmp_path: Path) -> None:
    randomness = random.Random(4)
    with real_rules(tmp_path) as gateway, undisturbed(gateway):
        for _ in range(200):
            send_and_forget(gateway, randomness.randbytes(randomness.randrange(2_000)))


def test_frames_byte_by_byte(tmp_path: Path) -> None:
    """Nobody says that a segment holds more."""
    with real_rules(tmp_path) as gateway, undisturbed(gateway), Client(gateway.address) as client:
        for whole in (produce_frame(9), produce_frame(3, producer_id=9), encoded(ApiVersionsRequest(version=0))):
            for at in range(len(whole)):
                client.send(whole[at : at + 1])
            assert client.read_frame()[4:8] == whole[8:12]


# Lengths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [-1, -(1 << 31), 0, 1, 7, LARGEST + 1, (1 << 31) - 1])
@pytest.mark.parametrize("api_key", [0, 1, 18, 35, 999])
def test_absurd_lengths_end_the_connection_at_once(tmp_path: Path, api_key: int, length: int) -> None:
    with real_rules(tmp_path) as gateway, Client(gateway.address) as client:
        client.send(length.to_bytes(4, signed=True) + api_key.to_bytes(2) + b"\0\3\0\0\0\7\xff\xff")
        assert client.read_to_end() == b""
        eventually(lambda: gateway.closed == {"malformed": 1})


def test_an_announced_length_takes_no_memory(tmp_path: Path) -> None:
    with real_rules(tmp_path) as gateway, contextlib.ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(Client(gateway.address))
            client.send(LARGEST.to_bytes(4) + produce_frame(9)[4:100])
        eventually(lambda: gateway.counters.requests == 20)
        assert gateway.forwarder.kept_bytes == 0


# A broken broker -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (PASSES, b"\xff\xff\xff\xff\0\0\0\1"),
        (PASSES, b"\x80\0\0\0"),
        (PASSES, frame(b"\0\0\0\2")),
        (CHANGED, frame(b"\0\0\0\2")),
        (CHANGED, (1 << 28).to_bytes(4) + b"\0\0\0\1" + bytes(100)),
        (CHANGED, b"\x7f\xff\xff\xff\0\0\0\1" + bytes(100)),
        (CHANGED, b"\xff\xff\xff\xff\0\0\0\1"),
        (COLLECTED, b"\x80\0\0\0\0\0\0\1"),
    ],
)
def test_answers_that_cannot_be(kind: int, said: bytes) -> None:
    def serve(sock: socket.socket) -> None:
        requests = requests_from(sock)
        asked = next(requests)
        if asked == GREETING:
            sock.sendall(answer_of(asked))
            answer_everything(sock)
            return
        sock.sendall(said)
        for _ in requests:
            pass

    with (
        contextlib.closing(Backend(serve)) as backend,
        running(backend.address) as gateway,
        undisturbed(gateway),
        Client(gateway.address) as client,
    ):
        client.send(request(kind, 1))
        if said[:4] == (1 << 28).to_bytes(4):
            client.close()  # as large as it may be: nothing is wrong with it, and it never comes
        else:
            assert client.read_to_end() == b""
            eventually(lambda: gateway.closed == {"malformed": 1})


def test_a_broker_that_answers_byte_by_byte() -> None:
    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            for byte in answer_of(asked):
                sock.sendall(bytes([byte]))

    with (
        contextlib.closing(Backend(serve)) as backend,
        running(backend.address) as gateway,
        Client(gateway.address) as client,
    ):
        for kind in (PASSES, CHANGED, COLLECTED):
            client.ask(kind, answer=300)

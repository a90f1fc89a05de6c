"""What hostile clients make the gateway keep, with its own rules and something fenced: bounded, whatever they do."""

import contextlib
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from brimline.gateway.counters import Counters
from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.describe.rule import DescribeRule
from brimline.gateway.net.connection import Judge
from brimline.gateway.net.forwarder import ForwarderSettings
from brimline.gateway.net.loop import EventLoop
from brimline.gateway.rules.commit_rule import CommitRule
from brimline.gateway.rules.fences import Fences
from brimline.gateway.rules.placement import Placement
from brimline.gateway.rules.rules import Rules, RuleSettings
from brimline.gateway.rules.sequence_memory import SequenceMemory
from tests.gateway.peers import PASSES, Backend, Client, Running, answer_of, frame, request, requests_from, running
from tests.gateway.test_hostile import without_records
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, encoded_request

MANY = 10_000
FULL_ID, FREE_ID = UUID(int=1), UUID(int=2)
BOUND = 4 << 20
SLACK = 36 << 20
"""What judging one request takes for a moment, what Python keeps for the next one, and the test's own part."""
SLOW = request(PASSES, 1, body=4)[:-4] + b"slow"


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def produce_frame(*topics: tuple[str, UUID, range]) -> bytes:
    return frame(
        encoded_request(
            PlainRequest(
                topics=[
                    PlainTopic(name, topic_id, [Partition(number, None) for number in numbers])
                    for name, topic_id, numbers in topics
                ]
            ),
            9,
        )
    )


REFUSED = produce_frame(("full", FULL_ID, range(MANY)))
MIXED = produce_frame(("full", FULL_ID, range(MANY)), ("free", FREE_ID, range(1)))
UNKNOWN = produce_frame(("full", FULL_ID, range(MANY, 2 * MANY)))
FEW = produce_frame(("full", FULL_ID, range(MANY // 10)))
LET_IN = produce_frame(("full", FULL_ID, range(1)))
"""Behind it nobody needs to be asked whether this client may write."""
_PLACEMENT = Placement(
    log_dirs={("full", number): "/full" for number in range(MANY)} | {("free", 0): "/free"},
    names={FULL_ID: "full", FREE_ID: "free"},
)


class Looks:
    """Nobody looks for partitions before ``have``; then those of ``UNKNOWN`` are found where nothing is taken."""

    def __init__(self) -> None:
        self.placement = _PLACEMENT
        self.waiting: list[Callable[[], None]] = []

    def have(self) -> None:
        found = {("full", number): "/full" for number in range(MANY, 2 * MANY)}
        self.placement = replace(_PLACEMENT, log_dirs={**_PLACEMENT.log_dirs, **found})
        for each in self.waiting:
            each()


@contextlib.contextmanager
def fenced_gateway(
    folder: Path, looks: Looks | None = None, header_timeout: float = PATIENCE_SECONDS
) -> Iterator[Running]:
    """Before a broker that answers nothing behind a slow request."""
    stop = threading.Event()
    seen = looks or Looks()
    memory = SequenceMemory(folder / "sequences.map", now=0, capacity=1_000)
    describes: list[DescribeRule] = []

    def judge(loop: EventLoop, counters: Counters) -> Judge:
        fences = Fences(state_dir=folder, node_id=1, log_dirs=["/full", "/free"])
        fences.set_full({"/full": "there is no room, " * 20})
        describes.append(DescribeRule(loop, DescribeWorker(None)))
        settings = RuleSettings(refusals_per_second=1_000_000_000)
        return Rules(
            settings,
            fences,
            lambda: seen.placement,
            memory,
            lambda: 0,
            describes[0],
            CommitRule(fences, lambda: seen.placement, lambda: None),
            counters,
            seen.waiting.append,
        )

    def serve(sock: socket.socket) -> None:
        for asked in requests_from(sock):
            if asked.endswith(b"slow"):
                stop.wait(PATIENCE_SECONDS)
                return
            sock.sendall(without_records(asked) or answer_of(asked))

    settings = ForwarderSettings(kept_bytes=BOUND, header_timeout=header_timeout)
    with (
        contextlib.closing(memory),
        contextlib.closing(Backend(serve)) as backend,
        running(backend.address, settings, judge=judge) as gateway,
    ):
        try:
            yield gateway
        finally:
            stop.set()
            gateway.inside(describes[0].close)


def flood(stack: contextlib.ExitStack, gateway: Running, data: bytes, connections: int) -> None:
    """All of it on each connection, as far as it is taken; nobody reads."""
    clients = [stack.enter_context(Client(gateway.address)) for _ in range(connections)]

    def send(client: Client) -> None:
        with contextlib.suppress(OSError):
            client.sock.sendall(data)

    threads = [threading.Thread(target=send, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
        stack.callback(thread.join, PATIENCE_SECONDS)
    for client in clients:  # before they are closed, so that those that still send give up
        stack.callback(client.sock.shutdown, socket.SHUT_RDWR)


def rests(gateway: Running) -> Callable[[], bool]:
    """Whether nothing has gone on for a while."""
    seen: list[int] = []

    def has_rested() -> bool:
        seen.append(gateway.counters.requests + gateway.counters.bytes_to_broker + gateway.forwarder.kept_bytes)
        return len(seen) > 20 and seen[-20] == seen[-1]

    return has_rested


@pytest.mark.parametrize(
    ("data", "connections"),
    [
        pytest.param(LET_IN + SLOW + REFUSED * 20, 1, id="refused, on one connection"),
        pytest.param(LET_IN + SLOW + REFUSED * 2, 10, id="refused, on many"),
        pytest.param(LET_IN + SLOW + MIXED * 2, 10, id="partly refused"),
        pytest.param(SLOW + REFUSED, 60, id="that the broker is asked about"),
        pytest.param(UNKNOWN, 20, id="of partitions that are looked for"),
    ],
)
def test_what_waits_is_bounded(tmp_path: Path, data: bytes, connections: int) -> None:
    with fenced_gateway(tmp_path) as gateway, contextlib.ExitStack() as stack:
        with Client(gateway.address) as client:
            client.ask(answer=1_000)
        before = resident_bytes()
        flood(stack, gateway, data, connections)
        eventually(rests(gateway))
        assert resident_bytes() - before < BOUND + SLACK
        with Client(gateway.address) as client:
            client.ask(answer=100_000)


def test_what_becomes_of_held_requests_is_bounded(tmp_path: Path) -> None:
    """Small as they are, there is room for all. They are let go at once, and refused behind a slow one."""
    looks = Looks()
    with fenced_gateway(tmp_path, looks) as gateway, contextlib.ExitStack() as stack:
        flood(stack, gateway, LET_IN + SLOW + UNKNOWN, connections=40)
        eventually(lambda: len(looks.waiting) == 40)
        assert gateway.forwarder.kept_bytes < BOUND // 2
        gateway.inside(looks.have)
        eventually(lambda: gateway.forwarder.kept_bytes > BOUND // 2)
        eventually(rests(gateway))
        assert gateway.forwarder.kept_bytes < BOUND + (1 << 20)
        with Client(gateway.address) as client:
            client.ask(answer=100_000)


def test_what_slow_readers_leave_is_bounded(tmp_path: Path) -> None:
    """Their answers are too short for a pipe."""
    asked = b"".join(request(PASSES, number, answer=60_000) for number in range(30))
    with fenced_gateway(tmp_path) as gateway, contextlib.ExitStack() as stack:
        flood(stack, gateway, asked, connections=100)
        eventually(rests(gateway))
        assert gateway.forwarder.kept_bytes < BOUND + (1 << 18) + 100 * (1 << 15)
        with Client(gateway.address) as client:
            client.ask(answer=10_000)


def test_requests_that_never_end_leave_room_for_others(tmp_path: Path) -> None:
    size = 2 << 20
    announced = size.to_bytes(4) + REFUSED[4:]
    # Where too little is left for somebody, whoever has held most for so long gives way
    with fenced_gateway(tmp_path, header_timeout=1.0) as gateway, contextlib.ExitStack() as stack:
        flood(stack, gateway, announced + bytes(size // 2), connections=10)
        eventually(rests(gateway))
        assert gateway.forwarder.kept_bytes < BOUND + size
        with Client(gateway.address) as client:
            for _ in range(5):
                client.send(FEW)
                assert client.read_frame()[4:8] == FEW[8:12]

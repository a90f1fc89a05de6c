"""A forwarder between clients and a backend that both keep to a script, over real sockets.

``running`` has it in a thread, ``GatewayProcess`` in a process of its own (``python -m tests.gateway.peers``).

Requests and answers are Kafka frames. A request says how large its answer is to be, and the answer says what the
request was (its checksum): so a byte that is lost, changed or out of place shows at the client.
"""

import contextlib
import os
import random
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from brimline.gateway.counters import Counters
from brimline.gateway.net.connection import Connection, Judge
from brimline.gateway.net.forwarder import Forwarder, ForwarderSettings, OpenListener
from brimline.gateway.net.listening import listening_sockets, passed_sockets
from brimline.gateway.net.loop import EventLoop, Timer
from brimline.wire.in_flight import Expected
from brimline.wire.request_stream import Request
from tests.waiting import PATIENCE_SECONDS, eventually

PRODUCE = 0
PASSES = 1
"""Kinds of requests are API keys. This one is forwarded without a look."""
OWN = 100
"""Answered by the gateway itself."""
HELD = 101
"""So is this one, but later: it says when."""
CHANGED = 102
"""The broker's answer is rewritten."""
CHANGED_LATER = 103
"""… and that takes a moment."""
COLLECTED = 104
"""Forwarded after a look at the whole of it."""
LAST = 105
"""Forwarded, has no answer, and ends the connection."""
BUG = 106
"""The rule fails."""
BUG_IN_ANSWER = 107
"""The rule fails when the answer comes."""
BUG_LATER = 108
"""The rule fails after the answer has come, when it is about to go on with it."""

_HEAD = struct.Struct(">ihhih")
_SIZES = struct.Struct(">II")
_ANSWER_HEAD = struct.Struct(">iiI")
_NOISE = random.Random(1201).randbytes(1 << 20) * 9
"""Where the bytes of bodies come from; longer than the longest body, and never the same at different offsets."""

T = TypeVar("T")


def frame(payload: bytes | bytearray) -> bytes:
    return len(payload).to_bytes(4) + bytes(payload)


def request(kind: int, correlation_id: int, *, body: int = 0, answer: int = 0, version: int = 1) -> bytes:
    """A request with a body of ``body`` bytes that wants an answer with one of ``answer`` bytes.

    ``PRODUCE`` has acks=1; its version must be 0 to 2.
    """
    padding = _noise(correlation_id, body)
    acks = b"\0\1" if kind == PRODUCE else b""
    length = _HEAD.size - 4 + len(acks) + _SIZES.size + body
    # The acks stand where the body begins; the backend skips them.
    return _HEAD.pack(length, kind, version, correlation_id, -1) + acks + _SIZES.pack(answer, body) + padding


def answer_of(sent: bytes) -> bytes:
    """What the backend answers."""
    length, kind, _, correlation_id, _ = _HEAD.unpack_from(sent)
    assert length == len(sent) - 4
    size, _ = _SIZES.unpack_from(sent, _HEAD.size + (2 if kind == PRODUCE else 0))
    head = _ANSWER_HEAD.pack(_ANSWER_HEAD.size - 4 + size, correlation_id, zlib.crc32(sent))
    return head + _noise(correlation_id + 1, size)


def client_gets(sent: bytes) -> bytes:
    """What the client gets for it when ``RulesOfKinds`` are in force."""
    kind = _HEAD.unpack_from(sent)[1]
    if kind in (OWN, HELD):
        return own_answer(sent)
    if kind in (CHANGED, CHANGED_LATER):
        return changed(answer_of(sent)[4:])
    return b"" if kind == LAST else answer_of(sent)


def own_answer(sent: bytes | bytearray) -> bytes:
    return frame(sent[8:12] + b"refused" + zlib.crc32(sent).to_bytes(4))


def changed(payload: bytes | bytearray) -> bytes:
    return frame(bytes(payload[:4]) + b"changed" + bytes(payload[4:]))


def _noise(seed: int, size: int) -> bytes:
    start = seed * 7919 % (1 << 20)
    assert start + size <= len(_NOISE), "a longer body than this module has bytes for"
    return _NOISE[start : start + size]


class RulesOfKinds:
    """Does with a request what its kind says."""

    def __init__(self, loop: EventLoop, held_seconds: float = 0.05) -> None:
        self._loop = loop
        self.held_seconds = held_seconds
        self.judged = 0

    def wants(self, api_key: int, _version: int) -> bool:
        return api_key >= OWN

    def judge(self, connection: Connection, asked: Request) -> None:
        self.judged += 1
        kind, correlation_id = asked.api_key, asked.correlation_id
        if kind == OWN:
            connection.answer(own_answer(asked.frame))
        elif kind == HELD:
            connection.answer(own_answer(asked.frame), after_seconds=self.held_seconds)
        elif kind == BUG:
            raise RuntimeError("a bug in a rule")
        elif kind == LAST:
            connection.forward([asked.frame], None)
            connection.end_after_this()
        elif kind == COLLECTED:
            connection.forward([asked.frame], correlation_id)
        else:
            connection.forward([asked.frame], Expected(correlation_id, self._transform(kind, connection)))

    def _transform(self, kind: int, connection: Connection) -> Callable[[Expected, bytearray], bytes | None]:
        def transform(expected: Expected, payload: bytearray) -> bytes | None:
            if kind == CHANGED:
                return changed(payload)
            if kind == BUG_IN_ANSWER:
                raise RuntimeError("a bug in a transform")

            def finish() -> None:
                if kind == BUG_LATER:
                    raise RuntimeError("a bug after a transform")
                expected.frame = changed(payload)
                connection.resume()

            connection.soon(finish if kind == BUG_LATER else lambda: _unused(self._loop.later(0.01, finish)))
            return None

        return transform


def _unused(_value: object) -> None:
    pass


class Backend:
    """Listens on loopback and serves every connection in a thread, by ``serve``."""

    def __init__(self, serve: Callable[[socket.socket], None] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve or answer_everything
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address: tuple[str, int] = self._listening.getsockname()
        self._serving: dict[threading.Thread, socket.socket] = {}
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def open_connections(self) -> int:
        return len(self._serving)

    def close(self) -> None:
        # A thread that waits in accept() does not notice that its socket is closed.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._acceptor.join(PATIENCE_SECONDS)
        self._listening.close()
        for thread, connection in list(self._serving.items()):
            with contextlib.suppress(OSError):
                # Not the method of a TLS socket, which would take its state away from the thread that uses it.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._run, args=(accepted,), daemon=True)
            self._serving[thread] = accepted
            thread.start()

    def _run(self, accepted: socket.socket) -> None:
        try:
            if self._tls is not None:
                wrapped = self._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
                self._serving[threading.current_thread()] = accepted = wrapped
                wrapped.do_handshake()
            self._serve(accepted)
        except (OSError, StopIteration):
            pass  # the other side has gone, perhaps before it asked anything
        finally:
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
            accepted.close()
            del self._serving[threading.current_thread()]


def answer_everything(sock: socket.socket) -> None:
    """As a broker does: one request after the other, in order, until the client sends no more."""
    for asked in requests_from(sock):
        kind = _HEAD.unpack_from(asked)[1]
        if kind != LAST:
            sock.sendall(answer_of(asked))


def requests_from(sock: socket.socket) -> Iterator[bytes]:
    """Whole frames until the end; one that is cut off is dropped."""
    file = sock.makefile("rb", buffering=1 << 18)
    with file:
        while len(length := file.read(4)) == 4:
            payload = file.read(int.from_bytes(length))
            if len(payload) < int.from_bytes(length):
                return
            yield length + payload


class Client:
    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None = None, source: str | None = None) -> None:
        self.sock = socket.create_connection(
            address, timeout=PATIENCE_SECONDS, source_address=None if source is None else (source, 0)
        )
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        self._numbers = iter(range(1, 1 << 30))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        """Goes away without a word of farewell."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def read(self, size: int) -> bytes:
        """That many bytes, or fewer if the other side ends before."""
        parts = []
        while size and (part := self.sock.recv(min(size, 1 << 20))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def read_frame(self) -> bytes:
        """``b""`` at the end."""
        length = self.read(4)
        return length + self.read(int.from_bytes(length)) if len(length) == 4 else length

    def read_to_end(self) -> bytes:
        parts = []
        with contextlib.suppress(ConnectionResetError):
            while part := self.sock.recv(1 << 20):
                parts.append(part)
        return b"".join(parts)

    def ask(self, kind: int = PASSES, *, body: int = 0, answer: int = 0) -> None:
        """One request and its answer, which must be the right one."""
        sent = request(kind, next(self._numbers), body=body, answer=answer)
        self.send(sent)
        assert self.read_frame() == client_gets(sent)

    def is_ended(self) -> bool:
        """Whether the other side has ended the connection. What it says meanwhile is dropped."""
        try:
            while select.select([self.sock], [], [], 0)[0]:
                if not self.sock.recv(1 << 16):
                    return True
        except (ConnectionResetError, BrokenPipeError):
            return True
        return False


@dataclass
class Running:
    """A forwarder in a thread."""

    loop: "CountedLoop"
    forwarder: Forwarder
    address: tuple[str, int]
    thread: threading.Thread
    rules: RulesOfKinds
    bugs: list[BaseException] = field(default_factory=list)

    @property
    def counters(self) -> Counters:
        return self.forwarder.counters

    @property
    def closed(self) -> dict[str, int]:
        return dict(self.counters.closed)

    def inside(self, ask: Callable[[], T]) -> T:
        """Ask in the loop's thread."""
        answers: list[T] = []
        answered = threading.Event()

        def answer() -> None:
            try:
                answers.append(ask())
            finally:
                answered.set()

        self.loop.call_soon_from_thread(answer)
        assert answered.wait(PATIENCE_SECONDS)
        return answers[0]

    def rounds(self) -> int:
        return self.loop.rounds

    def let_pass(self, seconds: float, clock: "Clock") -> None:
        """At once, and until it has been looked who is late by then."""

        def advance() -> Timer:
            clock.ahead += seconds
            return self.forwarder._sweeper

        before = self.inside(advance)
        eventually(lambda: self.forwarder._sweeper is not before)
        self.inside(lambda: None)  # the round in which it was looked is over


class Clock:
    """The forwarder's clock, which only a test moves far: no machine is so slow that it comes near a deadline."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.monotonic_ns = time.monotonic_ns

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


class CountedLoop(EventLoop):
    """Knows how often it went round."""

    def __init__(self, on_bug: Callable[[BaseException], None]) -> None:
        super().__init__(on_bug)
        self.rounds = 0
        self._epoll = cast("select.epoll", _Counting(self, self._epoll))


class _Counting:
    def __init__(self, loop: CountedLoop, epoll: select.epoll) -> None:
        self._loop = loop
        self._epoll = epoll

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        self._loop.rounds += 1
        return self._epoll.poll(timeout)

    def __getattr__(self, name: str) -> object:
        return getattr(self._epoll, name)


def assert_idle(rounds: Callable[[], int]) -> None:
    """An epoll that keeps reporting what nobody acts on sends its loop round and round, and never lets it rest."""

    def in_a_while() -> int:
        before = rounds()
        time.sleep(0.3)
        return rounds() - before

    eventually(lambda: in_a_while() < 50)


@contextlib.contextmanager
def running(
    upstream: tuple[str, int],
    settings: ForwarderSettings | None = None,
    *,
    source: str | None = None,
    client_tls: ssl.SSLContext | None = None,
    broker_tls: ssl.SSLContext | None = None,
    held_seconds: float = 0.05,
    judge: Callable[[EventLoop, Counters], Judge] | None = None,
    connection_judge: Callable[[Judge, Counters], Callable[[], Judge]] | None = None,
    needs_login: bool = False,
    expects_bugs: bool = False,
) -> Iterator[Running]:
    """Afterwards nothing of it is left: no connection, no kept byte, no descriptor."""
    descriptors = open_descriptors()
    bugs: list[BaseException] = []
    loop = CountedLoop(bugs.append)
    rules = RulesOfKinds(loop, held_seconds=held_seconds)
    counters = Counters()
    judging = rules if judge is None else judge(loop, counters)
    forwarder = Forwarder(loop, settings or ForwarderSettings(), judging, counters)
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    address = listening.getsockname()
    listener = OpenListener(
        name="CLIENT",
        sockets=(listening,),
        upstream_family=socket.AF_INET,
        upstream=upstream,
        source=source,
        needs_login=needs_login,
        judge=None if connection_judge is None else connection_judge(judging, counters),
        client_tls=None if client_tls is None else lambda: client_tls,
        broker_tls=None if broker_tls is None else lambda: broker_tls,
    )
    forwarder.listen([listener])
    thread = threading.Thread(target=loop.run, name="loop", daemon=True)
    thread.start()
    gateway = Running(loop, forwarder, address, thread, rules, bugs)
    try:
        yield gateway
    finally:
        loop.call_soon_from_thread(lambda: forwarder.drain(0.0, loop.stop))
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        forwarder.close()
        loop.close()
    assert forwarder.all_open == 0
    assert forwarder.kept_bytes == 0
    if not expects_bugs:
        assert bugs == []
    eventually(lambda: open_descriptors() <= descriptors)


class GatewayProcess:
    """A forwarder whose memory and descriptors are its own. ``listening`` is passed to it as systemd would."""

    def __init__(
        self, upstream: tuple[str, int], listening: socket.socket | None = None, descriptors: int | None = None
    ) -> None:
        arguments = [f"{upstream[0]}:{upstream[1]}", str(descriptors or 0)]
        # systemd's variables name the process by its id, which only a shell that becomes it knows beforehand.
        shell = f'exec {sys.executable} -m {__name__} "$@"'
        if listening is not None:
            shell = f"exec 3<&{listening.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=client {shell}"
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "gateway", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            pass_fds=() if listening is None else (listening.fileno(),),
        )
        self.address = ("127.0.0.1", self._said_number())

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208  a count, not paths

    def rounds(self) -> int:
        """Of its loop."""
        self.process.send_signal(signal.SIGUSR1)
        return self._said_number()

    def _said_number(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE_SECONDS) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


def main(upstream: str, descriptors: str) -> None:
    if int(descriptors):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(descriptors), int(descriptors)))
    host, _, port = upstream.rpartition(":")
    bugs: list[BaseException] = []
    loop = CountedLoop(bugs.append)
    forwarder = Forwarder(loop, ForwarderSettings(), RulesOfKinds(loop), Counters())
    sockets = tuple(passed_sockets(os.environ).get("CLIENT", ())) or listening_sockets("127.0.0.1", 0)
    forwarder.listen(
        [OpenListener(name="CLIENT", sockets=sockets, upstream_family=socket.AF_INET, upstream=(host, int(port)))]
    )
    signal.signal(
        signal.SIGTERM, lambda *_: loop.call_soon_from_thread(lambda: forwarder.drain(PATIENCE_SECONDS, loop.stop))
    )
    signal.signal(signal.SIGUSR1, lambda *_: print(loop.rounds, flush=True))
    print(sockets[0].getsockname()[1], flush=True)
    loop.run()
    forwarder.close()
    loop.close()
    sys.exit(len(bugs))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  a count, not paths


def wait_until_it_rests(figure: Callable[[], int]) -> None:
    """Until it has stayed the same for a while. On a busy machine too early: then the test sees less, and no error."""
    last, looks = figure(), 0
    while looks < 30:
        time.sleep(0.01)
        looks = looks + 1 if figure() == last else 0
        last = figure()


def in_threads(*tasks: Callable[[], None]) -> None:
    """All at once; raises what the first of them raised."""
    failures: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as failure:  # noqa: BLE001  raised below, where the test sees it
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert failures or not thread.is_alive()
    if failures:
        raise failures[0]


def converse(client: Client, requests: Sequence[bytes], randomness: random.Random) -> None:
    """Pipelines them in random pieces; every answer must come, in order, byte for byte."""
    sizes = (1, 7, 100, 4_000, 70_000, 1 << 20)
    wanted = b"".join(map(client_gets, requests))
    got = exchange(client, b"".join(requests), len(wanted), lambda: randomness.choice(sizes))
    assert len(got) == len(wanted)
    assert zlib.crc32(got) == zlib.crc32(wanted)  # says less than comparing them, which prints megabytes


def exchange(client: Client, data: bytes, size: int, piece: Callable[[], int] = lambda: 1 << 20) -> bytes:
    """Sends and reads at the same time, until so many bytes have come.

    By one thread: two must not use one TLS socket.
    """
    sock, view = client.sock, memoryview(data)
    got = bytearray()
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    sock.setblocking(False)  # noqa: FBT003  the standard library's signature
    at, next_end = 0, piece()
    try:
        while len(got) < size:
            assert time.monotonic() < give_up_at, f"only {len(got)} of {size} bytes came, {at} of {len(view)} went"
            has_more = isinstance(sock, ssl.SSLSocket) and sock.pending() > 0
            writers = [sock] if at < len(view) else []
            readable, writable, _ = select.select([sock], writers, [], 0 if has_more else 1.0)
            if writable:
                with contextlib.suppress(BlockingIOError, ssl.SSLWantWriteError):
                    at += sock.send(view[at:next_end])
                    if at == next_end:
                        next_end = min(at + piece(), len(view))
            if readable or has_more:
                with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
                    part = sock.recv(min(size - len(got), 1 << 20))
                    if not part:
                        break
                    got += part
    finally:
        sock.settimeout(PATIENCE_SECONDS)
    return bytes(got)


if __name__ == "__main__":
    main(*sys.argv[1:])

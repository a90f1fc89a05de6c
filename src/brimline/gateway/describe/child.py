"""The gateway's side of the describe worker: hands over jobs and takes in answers, and never waits for either.

Everything runs in the gateway's one thread. The worker's pipes are watched by an epoll instance of its own, whose one
descriptor, ``fileno``, stays the same however often the worker comes and goes: the gateway watches that for reading,
calls ``on_event`` when it is ready, and ``on_time`` when ``next_deadline`` has passed.

**Invariant.** Every job's callback is called exactly once: with the answer, or with ``None``, upon which the gateway
answers with what it has. A worker that lets a deadline pass is killed, because a file system that does not answer holds
it for ever; with it go all jobs that wait, and the next job starts a new one.

**Bounds.** So many jobs, and so many bytes of them, may wait. A killed process that the kernel cannot end (it hangs in
a dead mount) stays until it can be ended; when there are a few of those, no more are started.
"""

import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fcntl import F_SETPIPE_SZ, fcntl

from brimline.gateway.describe.job import (
    LENGTH,
    BrokerAccess,
    DescribeJob,
    NumberedJob,
    decode_outcome,
    encode_job,
    encode_setup,
)

MOST_JOBS = 64
MOST_BYTES = 256 << 20
MOST_DYING = 4
DEADLINE_SECONDS = 10.0

WORKER = (sys.executable, "-m", "brimline.gateway.describe.worker")

_END_SECONDS = 1.0
_PIPE = 1 << 20
_NUMBERS = 1 << 32
# An answer grows by 16 of 22 bytes per partition, and by what explains it.
_LARGEST_ANSWER = 1 << 30

Callback = Callable[[bytes | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    number: int
    answer_by: float
    size: int
    callback: Callback


class _Child:
    """A running worker and what is on the way to it and from it."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None, setup: bytes) -> None:
        """Raises ``OSError`` if it cannot be started."""
        # A session of its own: the Ctrl-C that a terminal sends to everybody is for the gateway to answer.
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env, start_new_session=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin.fileno(), self.process.stdout.fileno()
        for descriptor in (self.input, self.output):
            os.set_blocking(descriptor, False)
            with suppress(OSError):  # more than this user may have; the usual 64 KiB do as well
                fcntl(descriptor, F_SETPIPE_SZ, _PIPE)
        self.unsent = deque([memoryview(setup)])
        self._received = bytearray()

    def send(self) -> None:
        """As much as goes; raises ``OSError`` if it is gone."""
        while self.unsent:
            try:
                sent = os.write(self.input, self.unsent[0])
            except BlockingIOError:
                return
            if sent < len(self.unsent[0]):
                self.unsent[0] = self.unsent[0][sent:]
                return
            self.unsent.popleft()

    def receive(self) -> list[bytes]:
        """The messages that are complete now; raises ``EOFError`` if it is gone or speaks nonsense."""
        try:
            said = os.read(self.output, _PIPE)
        except BlockingIOError:
            return []
        if not said:
            raise EOFError
        self._received += said
        messages = []
        while len(self._received) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._received)
            if size > _LARGEST_ANSWER:
                raise EOFError
            end = LENGTH.size + size
            if len(self._received) < end:
                break
            messages.append(bytes(memoryview(self._received)[LENGTH.size : end]))
            del self._received[:end]
        return messages

    def kill(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class DescribeWorker:
    """``broker`` is how the worker reaches the broker; without it remote sizes stay unknown."""

    def __init__(
        self,
        broker: BrokerAccess | None,
        *,
        argv: Sequence[str] = WORKER,
        env: Mapping[str, str] | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._setup = encode_setup(broker)
        self._argv = argv
        self._env = env
        self._deadline_seconds = deadline_seconds
        self._clock = clock
        self._epoll = select.epoll()
        self._child: _Child | None = None
        self._dying: list[subprocess.Popen[bytes]] = []
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._next_number = 0
        self.starts = 0
        self.failures = 0
        """Jobs that got no answer."""

    @property
    def restarts(self) -> int:
        return max(self.starts - 1, 0)

    @property
    def pid(self) -> int | None:
        """Of the running worker, if one runs."""
        return None if self._child is None else self._child.process.pid

    def fileno(self) -> int:
        return self._epoll.fileno()

    @property
    def next_deadline(self) -> float | None:
        """On the clock that was given."""
        return self._waiting[0].answer_by if self._waiting else None

    def submit(self, job: DescribeJob, callback: Callback) -> None:
        """Returns at once; ``callback`` may be called before it does."""
        child = self._running() if self._has_room_for(job) else None
        if child is None:
            self._fail([callback])
            return
        self._next_number = (self._next_number + 1) % _NUMBERS
        waiting = _Waiting(
            number=self._next_number,
            answer_by=self._clock() + self._deadline_seconds,
            size=len(job.payload),
            callback=callback,
        )
        self._waiting.append(waiting)
        self._waiting_bytes += waiting.size
        message = encode_job(NumberedJob(number=waiting.number, answer_by=waiting.answer_by, job=job))
        child.unsent.append(memoryview(message))
        self._watch_input(child)

    def on_event(self, _mask: int = select.EPOLLIN) -> None:
        """``fileno`` is ready for reading."""
        child = self._child
        for descriptor, mask in self._epoll.poll(0):
            # A callback may have started another worker, whose descriptors have the same numbers.
            if child is None or self._child is not child:
                return
            try:
                if descriptor == child.output:
                    self._take_in(child)
                elif mask & select.EPOLLERR:
                    raise EOFError
                else:
                    child.send()
                    self._watch_input(child)
            except (OSError, EOFError):
                self._give_up()

    def on_time(self) -> None:
        """A deadline may have passed."""
        self._bury()
        if self._waiting and self._waiting[0].answer_by <= self._clock():
            self._give_up()

    def close(self) -> None:
        """Ends the worker, and waits a moment for its end; whoever waits for an answer gets ``None``."""
        self._give_up()
        for process in self._dying:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
        self._epoll.close()

    def _has_room_for(self, job: DescribeJob) -> bool:
        # One job is let in whatever its size: the broker's answer is there already.
        fits = not self._waiting or self._waiting_bytes + len(job.payload) <= MOST_BYTES
        return fits and len(self._waiting) < MOST_JOBS

    def _running(self) -> _Child | None:
        if self._child is None:
            self._bury()
            if len(self._dying) >= MOST_DYING:
                return None
            try:
                self._child = _Child(self._argv, self._env, self._setup)
            except OSError:
                return None
            self.starts += 1
            self._epoll.register(self._child.output, select.EPOLLIN)
            self._epoll.register(self._child.input, 0)
        return self._child

    def _watch_input(self, child: _Child) -> None:
        self._epoll.modify(child.input, select.EPOLLOUT if child.unsent else 0)

    def _take_in(self, child: _Child) -> None:
        for message in child.receive():
            if self._child is not child:
                return
            outcome = decode_outcome(message)
            if not self._waiting or self._waiting[0].number != outcome.number:
                raise EOFError
            waiting = self._waiting.popleft()
            self._waiting_bytes -= waiting.size
            if outcome.payload is None:
                self.failures += 1
            waiting.callback(outcome.payload)

    def _give_up(self) -> None:
        """Kill the worker. The callbacks come last: they may submit the next job."""
        child, self._child = self._child, None
        if child is not None:
            for descriptor in (child.input, child.output):
                self._epoll.unregister(descriptor)
            child.kill()
            self._dying.append(child.process)
            self._bury()
        waiting, self._waiting = self._waiting, deque()
        self._waiting_bytes = 0
        self._fail([each.callback for each in waiting])

    def _fail(self, callbacks: Sequence[Callback]) -> None:
        for callback in callbacks:
            self.failures += 1
            callback(None)

    def _bury(self) -> None:
        self._dying = [process for process in self._dying if process.poll() is None]

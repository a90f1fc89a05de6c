"""What is held back on a connection: a request that is not judged yet, and answers that leave later."""

import time
from collections import deque
from collections.abc import Callable

from brimline.gateway.net.loop import EventLoop, Timer
from brimline.wire.in_flight import OwnAnswer


class HeldRequest:
    """How large it is, and what the client has sent behind it."""

    __slots__ = ("behind", "is_due", "judge", "size")

    def __init__(self, judge: Callable[[], None], size: int) -> None:
        self.judge = judge
        self.size = size
        self.behind = b""
        self.is_due = False
        """What it was held for is there."""


class DelayedAnswers:
    """Own answers with a moment before which they do not leave; in their order. ``resume`` is called for those due."""

    __slots__ = ("_answers", "_loop", "_resume", "_timer")

    def __init__(self, loop: EventLoop, resume: Callable[[], None]) -> None:
        self._answers: deque[tuple[float, OwnAnswer, bytes]] = deque()
        self._loop = loop
        self._resume = resume
        self._timer: Timer | None = None

    def add(self, own: OwnAnswer, frame: bytes, after_seconds: float) -> None:
        self._answers.append((time.monotonic() + after_seconds, own, frame))
        if self._timer is None:
            self._timer = self._loop.later(after_seconds, self._release)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _release(self) -> None:
        now = time.monotonic()
        answers = self._answers
        while answers and answers[0][0] <= now:
            _, own, frame = answers.popleft()
            own.frame = frame
        self._timer = self._loop.later(answers[0][0] - now, self._release) if answers else None
        self._resume()

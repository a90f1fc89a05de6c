"""Whose request is judged next, and for how long: there is one thread, and a request may name 20,000 partitions.

In one round of the loop requests are judged for ``_AT_ONCE_NS``, and the one more that was begun. Those behind wait for
their turn, in which they get as long again, while everything else on the other connections goes on. Next is always the
connection whose requests have lately taken least of the thread's time: who sends little never waits for more than the
one request that is being judged.
"""

import time
from typing import Protocol

from brimline.gateway.net.loop import EventLoop

_AT_ONCE_NS = 5_000_000
_SHARE = 16
"""Who takes more than this part of the thread's time is behind those that take less."""


class Taker(Protocol):
    judged_until: int
    """In the past for whoever takes its share and no more; the more it has taken, the farther ahead."""

    def take_turn(self) -> None:
        """Judge the request that waits, and those behind it while ``may_judge``."""


class Turns:
    """Everything here runs in the loop's thread."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._round = 0
        self._used_ns = 0
        self._waiting: dict[Taker, None] = {}
        self._whose: Taker | None = None
        self._is_due = False

    def may_judge(self, taker: Taker) -> bool:
        """Whether its next request is judged now. If not, it asks for its turn."""
        if self._round != self._loop.woke_ns:
            self._round = self._loop.woke_ns
            self._used_ns = 0
        if self._used_ns >= _AT_ONCE_NS:
            return False
        if not self._waiting or self._whose is taker:
            return True
        return taker.judged_until <= time.monotonic_ns() + _SHARE * _AT_ONCE_NS

    def took(self, taker: Taker, since: int) -> None:
        """One of its requests was judged."""
        nanoseconds = time.monotonic_ns() - since
        self._used_ns += nanoseconds
        taker.judged_until = max(taker.judged_until, since) + _SHARE * nanoseconds

    def ask(self, taker: Taker) -> None:
        self._waiting[taker] = None
        self._go_on()

    def forget(self, taker: Taker) -> None:
        self._waiting.pop(taker, None)

    def _go_on(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._loop.later(0.0, self._give)

    def _give(self) -> None:
        self._is_due = False
        self._round = self._loop.woke_ns
        self._used_ns = 0
        try:
            while self._waiting and self._used_ns < _AT_ONCE_NS:
                now = time.monotonic_ns()
                # Of those that took no more than their share the one that asked first.
                self._whose = min(self._waiting, key=lambda taker: max(taker.judged_until, now))
                del self._waiting[self._whose]
                self._whose.take_turn()
        finally:  # a bug in one connection costs the others nothing
            self._whose = None
            self._go_on()

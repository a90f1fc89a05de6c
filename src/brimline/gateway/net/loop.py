"""One thread, one epoll: whoever waits for a file descriptor or a moment is called from here.

Other threads hand in work with ``call_soon_from_thread``; it runs here, so that nothing else needs a lock.
"""

import heapq
import itertools
import os
import select
import time
from collections import deque
from collections.abc import Callable

Handler = Callable[[int], None]
"""Told the epoll mask."""

_LONGEST_WAIT = 3600.0


class Timer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class EventLoop:
    def __init__(self, on_bug: Callable[[BaseException], None]) -> None:
        """``on_bug`` is told of an error that no handler expected; the loop goes on with the others."""
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._unwatched: set[int] = set()
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._handed_in: deque[Callable[[], None]] = deque()
        self._on_bug = on_bug
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_running = False
        self.woke_ns = 0
        """When the present round began: what an event has waited since counts as added by us."""
        self.watch(self._wake_fd, select.EPOLLIN, self._take_handed_in)

    def watch(self, fd: int, mask: int, handler: Handler) -> None:
        self._epoll.register(fd, mask)
        self._handlers[fd] = handler

    def change(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, mask)

    def unwatch(self, fd: int) -> None:
        """Before the descriptor is closed."""
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)
            self._unwatched.add(fd)

    def later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), timer))
        return timer

    def call_soon_from_thread(self, callback: Callable[[], None]) -> None:
        """Also from a signal handler."""
        self._handed_in.append(callback)
        os.eventfd_write(self._wake_fd, 1)

    def stop(self) -> None:
        self._is_running = False

    def run(self) -> None:
        """Until ``stop``. Every byte passes through this loop, so that it makes few calls of its own."""
        self._is_running = True
        poll, handlers, unwatched, timers = self._epoll.poll, self._handlers, self._unwatched, self._timers
        while self._is_running:
            wait = timers[0][0] - time.monotonic() if timers else _LONGEST_WAIT
            events = poll(wait if wait > 0.0 else 0.0)
            self.woke_ns = time.monotonic_ns()
            unwatched.clear()
            for fd, mask in events:
                # An earlier handler of this round may have closed it; by now the number may even be somebody else's.
                if fd not in unwatched:
                    try:
                        handlers[fd](mask)
                    except Exception as bug:  # noqa: BLE001  a bug in one connection must not end the others
                        self._on_bug(bug)
            if timers and timers[0][0] * 1e9 <= self.woke_ns:
                self._run_timers()

    def close(self) -> None:
        os.close(self._wake_fd)
        self._epoll.close()

    def _protected(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as bug:  # noqa: BLE001  a bug in one connection must not end the others
            self._on_bug(bug)

    def _run_timers(self) -> None:
        """Those that are due now: what they add for at once waits until sockets had their turn."""
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, timer = heapq.heappop(self._timers)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                self._protected(callback)

    def _take_handed_in(self, _mask: int) -> None:
        os.eventfd_read(self._wake_fd)
        for _ in range(len(self._handed_in)):
            self._protected(self._handed_in.popleft())

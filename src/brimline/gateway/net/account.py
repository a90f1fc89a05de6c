"""One account for all memory that connections hold: requests and answers kept whole, answers of our own that wait for
their turn, and whatever a peer has not taken yet.

**Invariant.** All connections together hold no more than ``bound``, twice ``SMALL`` for each of them, one request of
the largest size, and what one request becomes. Nobody's bytes are dropped for that: who would take more is not read.

- The one that has held something for longest may always go on, so that it ends. What it holds is not counted.
- Any other may take more as long as it holds less than what is left. So however many hold much, there is always about
  as much left for one more as each of them has: one that takes all it can get does not keep the others out.
- A quarter is kept for those that hold no more than an ordinary request (``_ORDINARY``) and have announced no more:
  however much large ones take, and leave half sent, what clients send by default finds room.
- Who holds no more than ``SMALL`` is not concerned: small frames always go on.
- A request that was held is judged only when its connection may take more: what becomes of it may be larger.
- When half is used, everybody is read in pieces of that size, and asks before each.
- While somebody waits, whoever holds most and does not let go of it for a while is given up.
"""

from typing import Protocol

from brimline.gateway.net.loop import EventLoop

SMALL = 1 << 14
_ORDINARY = 1 << 20
"""Clients make no larger requests unless they are told to (``max.request.size``), but for the header."""
_HEADER = 1 << 12
_RESERVED_PART = 4
_READ_AT_ONCE = 1 << 18
_WOKEN_AT_ONCE = 64
_WAKE_SECONDS = 0.01
"""Thousands may wait, and each look at one of them takes a while."""


class Holder(Protocol):
    @property
    def announced_bytes(self) -> int:
        """Of a request that is not there yet as a whole: how large it will be."""

    def look_again(self) -> None:
        """It may be that something is left now."""

    def close(self, reason: str) -> None: ...


class Account:
    def __init__(self, loop: EventLoop, bound: int) -> None:
        self._loop = loop
        self._bound = bound
        self._whole = memoryview(bytearray(_READ_AT_ONCE))
        self.buffer = self._whole
        """What one read goes into, one after the other: whoever keeps something of it copies it."""
        self.used = 0
        self.is_tight = False
        """Half of it is used, or more."""
        self._holding: dict[Holder, int] = {}
        self._waiting: dict[Holder, None] = {}
        self._to_wake = 0
        self._most: Holder | None = None
        self._most_since = 0.0

    @property
    def reused(self) -> object:
        return self._whole.obj

    def holds(self, holder: Holder, size: int) -> None:
        """So many bytes from now on, beyond ``SMALL``."""
        was = self._holding.get(holder, 0)
        if size == was:
            return
        if size:
            self._holding[holder] = size  # keeps its place: the oldest stays first
        else:
            del self._holding[holder]
        self.used += size - was
        is_tight = 2 * self.used >= self._bound
        if is_tight != self.is_tight:
            self.is_tight = is_tight
            self.buffer = self._whole[:SMALL] if is_tight else self._whole
        if size < was and self._waiting:
            self._wake()

    def must_wait(self, holder: Holder) -> bool:
        """Whether it would take more than there is for it."""
        held = self._holding.get(holder)
        if held is None:
            return False
        oldest, exempt = next(iter(self._holding.items()))
        left = self._bound - self.used + exempt
        if max(held, holder.announced_bytes) > _ORDINARY + _HEADER:
            left -= self._bound // _RESERVED_PART
        if oldest is holder or held < left:
            return False
        self._waiting[holder] = None
        return True

    def forget(self, holder: Holder) -> None:
        self._waiting.pop(holder, None)
        self.holds(holder, 0)

    def too_long(self, now: float, patience: float) -> Holder | None:
        """Asked every now and then: who must go, because it has held most for so long while others wait."""
        most = max(self._holding, key=self._holding.__getitem__, default=None) if self._waiting else None
        if most is not self._most:
            self._most, self._most_since = most, now
        if most is None or now - self._most_since < patience:
            return None
        self._most = None
        return most

    def _wake(self) -> None:
        oldest = next(iter(self._holding), None)
        if oldest is not None and oldest in self._waiting:
            del self._waiting[oldest]
            self._loop.later(0.0, oldest.look_again)
        if not self._to_wake:
            self._loop.later(_WAKE_SECONDS, self._wake_some)
        self._to_wake = len(self._waiting)

    def _wake_some(self) -> None:
        """Those that have waited longest. Who must go on waiting is behind the others then."""
        count = min(self._to_wake, _WOKEN_AT_ONCE, len(self._waiting))
        self._to_wake = min(self._to_wake, len(self._waiting)) - count
        for holder in list(self._waiting)[:count]:
            del self._waiting[holder]
            self._loop.later(0.0, holder.look_again)
        if self._to_wake > 0:
            self._loop.later(_WAKE_SECONDS, self._wake_some)

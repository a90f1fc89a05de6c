"""What was refused in the last minute, worked out from counters that only grow.

The gateway counts from its start. Its counts of a minute ago are kept, and the difference is what happened since. A
gateway that was started again counts from 0, so what was kept of the one before is forgotten.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from brimline.guard.gateway_state import GatewayState, Refused
from brimline.model import Bytes

LATELY = 60.0
_APART = 5.0
"""Counts are kept this often: there may be a thousand of them each time."""
_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """``most`` has the rows with the most batches. ``seconds`` is a minute, or less while nobody has looked for one."""

    seconds: float
    batches: int
    bytes: Bytes
    most: tuple[Refused, ...]


NOTHING_YET = Lately(seconds=0.0, batches=0, bytes=Bytes(0), most=())


@dataclass(frozen=True, slots=True)
class _Counts:
    seconds: float
    gateway: tuple[int, object]
    rows: tuple[Refused, ...]


class RefusedLately:
    def __init__(self) -> None:
        self._kept: deque[_Counts] = deque()

    def add(self, state: GatewayState, seconds: float) -> Lately:
        """The newest state, seen at this time of the monotonic clock; returns what happened up to it."""
        now = _Counts(seconds, (state.pid, state.started_at), state.counted)
        if self._kept and self._kept[0].gateway != now.gateway:
            self._kept.clear()
        if not self._kept or seconds >= self._kept[-1].seconds + _APART:
            self._kept.append(now)
        while len(self._kept) > 1 and self._kept[1].seconds <= seconds - LATELY:
            self._kept.popleft()
        return _between(self._kept[0], now)


def _between(then: _Counts, now: _Counts) -> Lately:
    before = {(row.topic, row.partition, row.client): row for row in then.rows}
    grown = [
        row if (old := before.get((row.topic, row.partition, row.client))) is None else _difference(row, old)
        for row in now.rows
    ]
    return Lately(
        seconds=now.seconds - then.seconds,
        batches=sum(row.batches for row in grown),
        bytes=Bytes(sum(row.bytes for row in grown)),
        most=tuple(_largest(row for row in grown if row.batches > 0)),
    )


def _difference(row: Refused, old: Refused) -> Refused:
    return replace(row, batches=row.batches - old.batches, bytes=Bytes(row.bytes - old.bytes))


def _largest(rows: Iterable[Refused]) -> list[Refused]:
    return sorted(rows, key=lambda row: (-row.batches, row.topic, row.partition or 0, row.client))[:_MOST]

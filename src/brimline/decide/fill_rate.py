"""How fast a volume fills, how long until the limit, and when to look again.

**Invariant.** ``next_look`` is never below the floor (100 ms or more) and never above the check interval; where the two
contradict each other the check interval, which is the operator's own word, wins. It is never longer than a fixed share
of the time that is left at the fastest rate the readings support. So as long as the rate does not grow by more than
that share's reciprocal between two looks, the limit is not passed unseen.

Two rates, for two readers:

- The **reported** rate is the median of the slopes between all pairs of the last readings (Theil and Sen): the net
  trend, deletions included, which a few odd readings do not move. File systems allocate late and in lumps, so the slope
  between two neighbours says little; a mean would follow every temporary file.
- The **pacing** rate is the fastest that was seen between two readings in a row, among those that are kept. It is only
  used to look sooner, where a false alarm costs one ``statvfs`` and a missed burst costs a full disk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from brimline.model import Bytes

READINGS_KEPT = 16
SHARE_OF_TIME_LEFT = 0.1
SECONDS_WHILE_RATE_IS_UNKNOWN = 1.0
"""One reading has no slope: the second one comes soon."""
SECONDS_WHILE_FULL = 1.0
"""A full volume refuses writes: its release should be seen within a second."""
FASTEST_DISK = 1 << 30
"""Bytes a second that a burst out of a calm may write, as far as there is reason to fear."""
FASTEST_FILES = 20_000
"""Files a second that a process may make."""


@dataclass(frozen=True, slots=True)
class UsableAt:
    """A reading on the guard's own (monotonic) clock."""

    seconds: float
    usable: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to look. ``fast`` off means: every check interval, as the KIP says. ``bursts``: a disk may begin to
    fill at full speed at any moment, and nobody else would stop that in time."""

    interval: float
    floor: float = 0.1
    fast: bool = True
    bursts: bool = True


def fill_rate(readings: Sequence[UsableAt]) -> float | None:
    """Bytes a second that the usable space shrinks by; negative while it grows; ``None`` below two readings."""
    slopes = [
        (earlier.usable - later.usable) / (later.seconds - earlier.seconds)
        for earlier, later in combinations(readings[-READINGS_KEPT:], 2)
        if later.seconds > earlier.seconds
    ]
    return median(slopes) if slopes else None


def pacing_rate(readings: Sequence[UsableAt]) -> float | None:
    """The fastest rate that there is reason to fear."""
    steps = [fill_rate(pair) for pair in pairwise(readings[-READINGS_KEPT:])]
    return max((step for step in steps if step is not None), default=None)


def seconds_left(distance: Bytes | None, rate: float | None) -> float | None:
    """Time until the limit at this rate; 0 beyond it; ``None`` when there is no limit, no rate, or no filling."""
    if distance is None:
        return None
    if distance <= 0:
        return 0.0
    return distance / rate if rate is not None and rate > 0 else None


def next_look(readings: Sequence[UsableAt], distance: Bytes | None, pace: Pace) -> float:
    """Seconds until the next look. ``distance`` is ``bytes_to_limit`` of the last reading.

    Not every writer builds up: a move between log dirs writes 700 MB/s from its first second on.
    """
    if not pace.fast or distance is None:
        return pace.interval
    rate = pacing_rate(readings)
    if distance < 0:
        wanted = SECONDS_WHILE_FULL
    elif rate is None:
        wanted = SECONDS_WHILE_RATE_IS_UNKNOWN
    else:
        left = seconds_left(distance, rate)
        wanted = pace.interval if left is None else left * SHARE_OF_TIME_LEFT
        wanted = min(wanted, distance / FASTEST_DISK) if pace.bursts else wanted
    return min(max(wanted, pace.floor), pace.interval)


def look_before_inodes_run_out(wait: float, files_left: int, pace: Pace) -> float:
    """``wait``, or sooner. ``files_left``: until their limit; below 0 it is reached, and release is waited for."""
    if not pace.fast:
        return wait
    wanted = SECONDS_WHILE_FULL if files_left < 0 else files_left / FASTEST_FILES
    return min(wait, max(wanted, pace.floor))

"""The arithmetic of a reclaim plan over the segments of a few devices, as columns.

Everything that a rule compares grows along a log: base offsets, the sum of sizes, and age, once it is made monotone. So
a rule is not a look at every segment, but one binary search in every log, all logs at once. And the globally oldest
segments are found without sorting all of them: bytes are summed by coarse age, which leaves only the few around the
cut to be put in order.

Keys are packed into 64 bits: 43 bits of age in milliseconds (until the year 2248) and 20 bits of log. Both bounds are
checked, because a packed key overflows silently.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from brimline.model.scan import BoolColumn, Int64Column

AGE_BITS = 43
LOG_BITS = 20
MOST_LOGS = 1 << LOG_BITS
END_OF_TIME_MS = 1 << AGE_BITS
Each: TypeAlias = int | Int64Column
"""One number for all rows, or one for each."""
_AGE = np.int64(END_OF_TIME_MS - 1)
_BUCKET_BITS = 12
_FEW = 2048
_EXACT_IN_FLOAT = 1 << 53
_NS_PER_MS = 1_000_000


def ages(newest_ms: Int64Column, modified_ns: Int64Column, now_ms: Each, tolerance_ms: Each) -> Int64Column:
    """When the newest record of each segment was made, in milliseconds: the rule for every possible value.

    The largest timestamp, if it is one: not negative, and not later than ``now_ms`` by more than the tolerance.
    Otherwise the time of the last write, held between the epoch and now.
    """
    now, tolerance = np.asarray(now_ms, dtype=np.int64), np.asarray(tolerance_ms, dtype=np.int64)
    _check_times(now)
    _check_times(tolerance)  # each alone first: their sum might overflow
    latest = np.asarray(now + tolerance)
    _check_times(latest)
    age = newest_ms.copy()
    # As an unsigned number anything negative is larger than any time.
    unbelievable = np.flatnonzero(age.view(np.uint64) > latest.view(np.uint64))
    most = now[unbelievable] if now.ndim else now
    age[unbelievable] = np.clip(modified_ns[unbelievable] // _NS_PER_MS, 0, most)
    return age


def _check_times(ms: Int64Column) -> None:
    for each in (ms.min(initial=0), ms.max(initial=0)):
        if not 0 <= each < END_OF_TIME_MS:
            raise ValueError(f"the time {each} ms is outside of what a plan can count with")


def monotone(age: Int64Column, log: Int64Column) -> Int64Column:
    """Packed keys ``log << 43 | age``, where age is the largest so far in its log. ``log`` ascends."""
    if len(log) and not 0 <= int(log[-1]) < MOST_LOGS:
        raise ValueError(f"one device holds {int(log[-1]) + 1} logs: more than {MOST_LOGS} are not planned for")
    keys = log << AGE_BITS
    keys |= age
    return np.maximum.accumulate(keys, out=keys)


def age_of(keys: Int64Column) -> Int64Column:
    return np.bitwise_and(keys, _AGE)


def sums(sizes: Int64Column | BoolColumn) -> Int64Column:
    """``sums[i]`` is what stands before row i, or how many are true; one row longer than ``sizes``."""
    before = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=before[1:])
    return before


def count_up_to(values: Int64Column, begin: Int64Column, end: Int64Column, most: Int64Column) -> Int64Column:
    """In every range of ascending values: how many are at most ``most``. A binary search in all ranges at once."""
    low, high = begin, end
    last = max(len(values) - 1, 0)
    for _ in range(int((end - begin).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        is_counted = (low < high) & (values[np.minimum(middle, last)] <= most)
        low = np.where(is_counted, middle + 1, low)
        high = np.where(is_counted, high, middle)
    return low - begin


def rows_of_ranges(begin: Int64Column, length: Int64Column) -> Int64Column:
    """The rows of all ranges, range after range."""
    before = np.cumsum(length) - length
    return np.repeat(begin - before, length) + np.arange(int(length.sum()), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Candidates, oldest first, cut where their bytes reach an amount.

    ``is_before`` are surely before the cut. ``around`` are rows around it, in order, and ``together`` is the sum of
    everything up to each of them.
    """

    is_before: BoolColumn
    around: Int64Column
    together: Int64Column
    sizes: Int64Column
    amount: int

    def reaching(self) -> BoolColumn:
        """The shortest run of the oldest that has at least the amount; all, if all together have less."""
        is_in = self.is_before.copy()
        is_in[self.around[self.together - self.sizes < self.amount]] = True
        return is_in

    def below(self) -> BoolColumn:
        """The longest run of the oldest that has less than the amount."""
        is_in = self.is_before.copy()
        is_in[self.around[self.together < self.amount]] = True
        return is_in


def cut_oldest(age: Int64Column, rank: Int64Column, sizes: Int64Column, amount: int) -> Cut:
    """Order is by age, then rank, then row."""
    is_before = np.zeros(len(age), dtype=np.bool_)
    total = int(sizes.sum())
    if total < amount:
        is_before[:] = True
        nothing = np.zeros(0, dtype=np.int64)
        return Cut(is_before=is_before, around=nothing, together=nothing, sizes=nothing, amount=amount)
    rows = np.arange(len(age), dtype=np.int64)
    before = 0
    # Sums by bucket are floats: exact below 8 PiB.
    while len(rows) > _FEW and total < _EXACT_IN_FLOAT:
        some = age[rows]
        oldest, span = int(some.min()), int(np.ptp(some))
        if span == 0:
            break
        bucket = (some - oldest) >> max(span.bit_length() - _BUCKET_BITS, 0)
        held = np.cumsum(np.bincount(bucket, weights=sizes[rows]))
        cut = int(np.searchsorted(held, amount - before))
        is_before[rows[bucket < cut]] = True
        before += int(held[cut - 1]) if cut else 0
        rows = rows[bucket == cut]
    around = rows[np.argsort(age[rows] << LOG_BITS | rank[rows], kind="stable")]
    return Cut(
        is_before=is_before,
        around=around,
        together=before + np.cumsum(sizes[around]),
        sizes=sizes[around],
        amount=amount,
    )

"""``decide.disk_state`` as columns: the same rule, in integers, for a fleet of volumes. A test holds the two together.

Its arithmetic of bytes is exact and never overflows: Spark raises an error where 64 bits do not suffice, and one odd
topic with ``retention.bytes`` of 2**63 - 1 would end a job for the whole fleet.

The state before a reading, which the release margin needs, is the guard's own: it is in the snapshot. Without a guard
there is none, and then a volume inside the margin is OK, as after any time without knowledge.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import DecimalType

from brimline.decide.disk_state import BYTES_OFF, PERCENT_OFF, Breach, DiskState
from brimline.decide.forecast import FARTHEST_DAYS
from brimline.fleet.tables import columns as c
from brimline.model.reclaim import CEILING_OFF

_WIDE = DecimalType(19, 0)
"""Every 64-bit number; the product of two such fits into a decimal of 38 digits."""
_LARGEST = 2**63 - 1


def wide(number: Column) -> Column:
    return number.cast(_WIDE)


def hundred_times_over(size: Column, limit: Column) -> Column:
    """``size * 100 // limit`` of numbers that are not negative; the largest number where 64 bits do not hold it."""
    fits = wide(size) < wide(limit) * wide(F.lit(_LARGEST // 100))
    # All but odd sizes: no decimals for them
    in_64_bits = F.when(size < _LARGEST // 100, F.call_function("div", size * 100, limit))
    return in_64_bits.when(fits, F.call_function("div", wide(size) * F.lit(100), wide(limit))).when(
        size.isNotNull() & limit.isNotNull(), F.lit(_LARGEST)
    )


def share_of(total: Column, percent: Column) -> Column:
    """``total * percent // 100``."""
    return F.call_function("div", wide(total) * wide(percent), F.lit(100).cast(_WIDE))


def used_bytes() -> Column:
    """An odd file system reports more usable than total; then nothing is used."""
    used = F.col(c.TOTAL_BYTES) - F.col(c.USABLE_BYTES)
    # Not `greatest`, for which the greatest of nothing and 0 is 0.
    return F.when(used < 0, F.lit(0)).otherwise(used)


def used_percent() -> Column:
    """Of a volume of no bytes everything is used."""
    total = F.col(c.TOTAL_BYTES)
    percent = F.col(c.USED_BYTES) * F.lit(100.0) / total
    return F.when(total.isNull() | F.col(c.USED_BYTES).isNull(), None).when(total <= 0, 100.0).otherwise(percent)


def state() -> Column:
    is_unknown = F.col(c.USED_BYTES).isNull()
    is_breached = _breaches_percent() | _breaches_bytes() | _breaches_reserve() | _breaches_inodes()
    is_held = (F.col(c.GUARD_STATE) == DiskState.FULL.value) & ~_is_released()
    return (
        F.when(_is_offline(), DiskState.OFFLINE.value)
        .when(is_unknown, DiskState.UNKNOWN.value)
        .when(is_breached | F.coalesce(is_held, F.lit(False)), DiskState.FULL.value)  # noqa: FBT003 - a literal column
        .otherwise(DiskState.OK.value)
    )


def breaches() -> Column:
    """The keys of the limits that are breached, with a comma between them; null for none."""
    names = F.concat_ws(
        ", ",
        F.when(_breaches_percent(), Breach.MAX_USED_PERCENT.value),
        F.when(_breaches_bytes(), Breach.MIN_FREE_BYTES.value),
        F.when(_breaches_reserve() & ~_breaches_bytes(), Breach.RESERVE.value),
        F.when(_breaches_inodes(), Breach.INODES.value),
    )
    return F.nullif(names, F.lit(""))


def bytes_to_fence() -> Column:
    """How much may still be written before the nearer limit; null without a limit and for an unknown volume."""
    by_percent = share_of(F.col(c.TOTAL_BYTES), F.col(c.MAX_USED_PERCENT)) - F.col(c.USED_BYTES)
    by_bytes = F.col(c.USABLE_BYTES) - F.col(c.MIN_FREE_BYTES)
    by_reserve = F.col(c.USABLE_BYTES) - F.col(c.RESERVE_BYTES)
    return F.least(
        F.when(~_percent_is_off(), by_percent),
        F.when(~_bytes_is_off(), by_bytes),
        F.when(_has_reserve(), by_reserve),
    )


def bytes_to_ceiling() -> Column:
    has_ceiling = F.col(c.CEILING_PERCENT) < CEILING_OFF
    return F.when(has_ceiling, share_of(F.col(c.TOTAL_BYTES), F.col(c.CEILING_PERCENT)) - F.col(c.USED_BYTES))


def days_to_fence() -> Column:
    """0 beyond it; null without one, without a forecast, and for a volume that does not fill."""
    distance = F.col(c.BYTES_TO_FENCE)
    return F.when(distance <= 0, 0.0).when(distance.isNotNull(), F.col(c.DAYS_TO_FULL))


def days_to_ceiling() -> Column:
    """As ``days_to_fence``, at the same growth, and as far ahead as a forecast looks."""
    distance, growth = F.col(c.BYTES_TO_CEILING), F.col(c.GROWTH_BYTES_PER_DAY)
    days = distance / growth
    return F.when(distance <= 0, 0.0).when((growth > 0) & (days <= FARTHEST_DAYS), days)


def _percent_is_off() -> Column:
    return F.col(c.MAX_USED_PERCENT) >= PERCENT_OFF


def _bytes_is_off() -> Column:
    return F.col(c.MIN_FREE_BYTES) <= BYTES_OFF


def _breaches_percent() -> Column:
    return wide(F.col(c.USED_BYTES)) * 100 > wide(F.col(c.MAX_USED_PERCENT)) * wide(F.col(c.TOTAL_BYTES))


def _breaches_bytes() -> Column:
    return F.col(c.USABLE_BYTES) < F.col(c.MIN_FREE_BYTES)


def _has_reserve() -> Column:
    """It counts only where one of the operator's own limits does."""
    return (F.col(c.RESERVE_BYTES) > 0) & ~(_percent_is_off() & _bytes_is_off())


def _breaches_reserve() -> Column:
    return _has_reserve() & (F.col(c.USABLE_BYTES) < F.col(c.RESERVE_BYTES))


def _breaches_inodes() -> Column:
    return F.coalesce(F.col(c.USABLE_FILES) < F.col(c.FEWEST_FILES), F.lit(False))  # noqa: FBT003 - a literal column


def _is_offline() -> Column:
    """By the broker's word. Guards of before called a disk that hung offline, too, and its state unknown."""
    guard = F.coalesce(F.col(c.GUARD_STATE), F.lit(""))
    return (guard == DiskState.OFFLINE.value) | (F.col(c.IS_OFFLINE) & (guard != DiskState.UNKNOWN.value))


def _is_released() -> Column:
    total, usable, used = (wide(F.col(name)) for name in (c.TOTAL_BYTES, c.USABLE_BYTES, c.USED_BYTES))
    margin = wide(F.col(c.RELEASE_MARGIN_PERCENT)) * total
    percent_holds = _percent_is_off() | (used * 100 + margin <= wide(F.col(c.MAX_USED_PERCENT)) * total)
    bytes_hold = _bytes_is_off() | (usable * 100 >= wide(F.col(c.MIN_FREE_BYTES)) * 100 + margin)
    reserve_holds = ~_has_reserve() | (usable * 100 >= wide(F.col(c.RESERVE_BYTES)) * 100 + margin)
    files, fewest = wide(F.col(c.USABLE_FILES)), wide(F.col(c.FEWEST_FILES))
    files_hold = files.isNull() | (files * 100 >= fewest * (F.col(c.RELEASE_MARGIN_PERCENT) + 100))
    return percent_holds & bytes_hold & reserve_holds & files_hold

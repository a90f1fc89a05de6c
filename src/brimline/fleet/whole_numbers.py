"""Arithmetic of bytes that is exact and never overflows: the rules of ``decide`` are in integers, and so are these.

Spark raises an error where 64 bits do not suffice, and one odd topic with ``retention.bytes`` of 2**63 - 1 would end a
job for the whole fleet.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import DecimalType

_WIDE = DecimalType(19, 0)
"""Every 64-bit number; the product of two such fits into a decimal of 38 digits."""
_LARGEST = 2**63 - 1


def wide(number: Column) -> Column:
    return number.cast(_WIDE)


def hundred_times_over(size: Column, limit: Column) -> Column:
    """``size * 100 // limit`` of numbers that are not negative; the largest number where 64 bits do not hold it."""
    fits = wide(size) < wide(limit) * wide(F.lit(_LARGEST // 100))
    return F.when(fits, F.call_function("div", wide(size) * F.lit(100), wide(limit))).when(
        size.isNotNull() & limit.isNotNull(), F.lit(_LARGEST)
    )


def share_of(total: Column, percent: Column) -> Column:
    """``total * percent // 100``."""
    return F.call_function("div", wide(total) * wide(percent), F.lit(100).cast(_WIDE))

"""Why a snapshot is not used. A bad file is named and set aside; it never stops the others."""

from enum import Enum


class QuarantineReason(Enum):
    """The values are stable: tables of quarantined files keep them."""

    NOT_PARQUET = "not-parquet"
    TRUNCATED = "truncated"
    NO_HEADER = "no-header"
    """Parquet, but without a header of ours, or with one that makes no sense."""
    FUTURE_VERSION = "future-version"
    WRONG_COLUMNS = "wrong-columns"
    WRONG_TYPES = "wrong-types"
    CLOCK_IN_FUTURE = "clock-in-future"
    DUPLICATE = "duplicate"
    INCONSISTENT = "inconsistent"
    """Whole, and its parts contradict each other."""
    TOO_LARGE = "too-large"
    """What it says, or turns out, to hold is more than any broker has: it is not read to the end."""
    CORRUPT = "corrupt"
    """The bytes are not those that were written: a checksum or a decoder says so."""
    UNREADABLE = "unreadable"
    """The place did not give the bytes. The one reason that may pass."""


class BadSnapshot(Exception):
    """Everything that can be wrong with a snapshot; readers raise nothing else."""

    def __init__(self, reason: QuarantineReason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type["BadSnapshot"], tuple[QuarantineReason, str]]:
        return BadSnapshot, (self.reason, self.detail)  # it crosses process borders in Spark

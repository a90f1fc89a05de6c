"""Why a snapshot is not used, and the checksums that tell. A bad file is named and set aside, and stops no other.

Parquet's own checksums do not suffice. The footer that says where pages are has none, and a reader that believes a
damaged one may do worse than fail: pyarrow ends the whole process over some. So the footer is sealed, and nobody looks
into it before the seal has been checked. A page's checksum stands in the page's header, which has none itself: one
byte that ends the header before it, and the page is read unchecked. So there is one over all pages, headers included.
Both stand between the last page and the footer, where other readers see a gap, which Parquet allows::

    PAR1 | pages … | "BRIMPAGE" | crc32 of the pages, 4 bytes
         | "BRIMLINE" | crc32 of what follows, 4 bytes | footer | its length, 4 bytes | PAR1

Snapshots of before have no checksum of all pages, and are read without one.
"""

import zlib
from enum import Enum

import pyarrow as pa


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


_PARQUET = b"PAR1"
_SEAL = b"BRIMLINE"
_PAGES_SEAL = b"BRIMPAGE"
_CRC_BYTES = 4
_TAIL_BYTES = 4 + len(_PARQUET)
_SHORTEST = len(_PARQUET) + _TAIL_BYTES
_LARGEST_FOOTER = 16 << 20
"""Ours are of some ten thousand bytes for each million rows."""


def sealed(parquet: bytes) -> bytes:
    """The same file, its pages and its footer sealed."""
    end = len(parquet) - _TAIL_BYTES - int.from_bytes(parquet[-_TAIL_BYTES : -len(_PARQUET)], "little")
    pages, footer = memoryview(parquet)[:end], memoryview(parquet)[end:]
    return b"".join([pages, _PAGES_SEAL, _crc(pages), _SEAL, _crc(footer), footer])


def check_seal(file: pa.NativeFile) -> int:
    """Where the seal begins. Raises ``BadSnapshot`` unless the file is Parquet, whole at its end, and sealed."""
    size: int = file.size()
    head = bytes(file.read_at(len(_PARQUET), 0)) if size >= len(_PARQUET) else b""
    if head != _PARQUET:
        raise BadSnapshot(QuarantineReason.NOT_PARQUET, f"{size} bytes that do not begin as Parquet does")
    tail = bytes(file.read_at(_TAIL_BYTES, size - _TAIL_BYTES)) if size >= _SHORTEST else b""
    footer_bytes = int.from_bytes(tail[:4], "little")
    if not tail.endswith(_PARQUET) or footer_bytes > size - _SHORTEST:
        raise BadSnapshot(QuarantineReason.TRUNCATED, f"{size} bytes that do not end as Parquet does")
    if footer_bytes > _LARGEST_FOOTER:
        raise BadSnapshot(QuarantineReason.TOO_LARGE, f"a footer of {footer_bytes} bytes")
    begin = size - _TAIL_BYTES - footer_bytes - _CRC_BYTES - len(_SEAL)
    if begin < len(_PARQUET) or bytes(file.read_at(len(_SEAL), begin)) != _SEAL:
        raise BadSnapshot(QuarantineReason.NO_HEADER, "the file is Parquet but not a snapshot")
    rest = memoryview(file.read_at(size - begin - len(_SEAL), begin + len(_SEAL)))
    if bytes(rest[:_CRC_BYTES]) != _crc(rest[_CRC_BYTES:]):
        raise BadSnapshot(QuarantineReason.CORRUPT, "the footer is not as written: damaged")
    return begin


def check_pages(content: memoryview, seal_begins: int) -> None:
    """``content`` is the whole file. Raises ``BadSnapshot``."""
    end = seal_begins - _CRC_BYTES - len(_PAGES_SEAL)
    if end < len(_PARQUET) or bytes(content[end : end + len(_PAGES_SEAL)]) != _PAGES_SEAL:
        return
    if bytes(content[seal_begins - _CRC_BYTES : seal_begins]) != _crc(content[:end]):
        raise BadSnapshot(QuarantineReason.CORRUPT, "the pages are not as written: damaged")


def _crc(data: memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(_CRC_BYTES, "little")

"""What may still be written to a volume after Produce is refused there: the reserve, worked out part by part.

**Invariant.** Everything that no fence stops is in one of these parts, or in docs/reserve.md among what nobody can
stop. The parts come from what the broker and its files say, not from a constant; two numbers are assumed, because
nobody tells them: how fast a cleaner thread writes, and how soon a hold of the cleaner bites.

==============  =====================================================================================================
part            at most
==============  =====================================================================================================
cleaner         the largest groups, one for each thread: a ``.cleaned`` is written whole before it replaces anything
passes          what the cleaner writes before it is held, while what it replaced waits for its deletion; for a log that
                no hold reaches, what it writes during a whole deletion delay
coordinators    offset commits, groups and transactions at their measured rate: until the cleaner has compacted them and
                what it replaced is deleted, and a quarter of an hour of growth, at most a segment of each partition
                that the cleaner keeps short
moves           what moves between log dirs write into this volume until they are paused
index-cache     what the remote index cache may still grow by (tiered storage, in the first log dir)
metadata        one more snapshot of the KRaft metadata log, and a quarter of an hour of it, where it is on this volume
==============  =====================================================================================================

A group is as large as ``segment.bytes`` allows, or as the largest segment there, and never larger than the log; its two
indexes come on top (``segment.index.bytes`` each; an entry of both is a third of the smallest batch). They are sparse
files, so what counts is their entries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from brimline.model import Bytes, counted, human_bytes, human_span

CLEANER_BYTES_PER_SECOND = 160 << 20
"""Of one thread, for as long as a deletion delay, which a disk has to keep up with."""
CLEANER_BURST = 400 << 20
"""For seconds, from and into the page cache: 400 MB/s were seen."""
MOVED_BYTES_PER_SECOND = 700 << 20
"""By two of Kafka's threads, from main memory into main memory: 690 MB/s were seen."""
UNTIL_PAUSED = 0.5
"""Seconds: a look comes every tenth near a limit, and the pause took 0.1 to 0.2 s."""
UNTIL_HELD = 2.0
"""Seconds: a look comes within one when a limit is near, and both changes together took up to 0.3 s."""
UNTIL_COMPACTED = 5.0
"""Seconds, of the coordinators' topics while the cleaner is held: it looks every second, and what it replaced goes
after one more. At 250 MB/s of commits no more than 825 MiB were there at a time."""
REPLACED_SHARE = 2
"""A pass over a coordinator's log begins when half of it is new, so it replaces twice what was appended."""
GROWTH_SPAN = 900.0
_SMALLEST_BATCH_PER_ENTRY = 3
"""61 bytes of a batch for 8 and 12 of its index entries."""
FILES_PER_ROLL = 5
"""``.log``, ``.index``, ``.timeindex``, ``.snapshot``, and a ``.txnindex`` or a checkpoint's ``.tmp``."""
FEWEST_FILES = 10_000
_SIGNIFICANT_BITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedLog:
    """``is_held``: the hold of the cleaner stops it (no ratio and no compaction lag of its own)."""

    bytes: int
    largest_segment: int
    segment_bytes: int
    delete_delay: float
    is_held: bool
    index_bytes: int = 0

    @property
    def group(self) -> int:
        log = min(self.bytes, max(self.segment_bytes, self.largest_segment))
        return log + min(log // _SMALLEST_BATCH_PER_ENTRY, 2 * self.index_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLog:
    """A partition of the coordinators' topics. ``rate``: bytes a second that were appended to it lately;
    ``segment_bytes``: ``None`` where no cleaner keeps it short."""

    segment_bytes: int | None
    rate: float

    @property
    def growth(self) -> float:
        growth = self.rate * GROWTH_SPAN
        return growth if self.segment_bytes is None else min(growth, self.segment_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """Settings of the broker's cleaner. ``can_be_held``: its settings may be borrowed."""

    threads: int = 1
    most_bytes_per_second: float = float("inf")
    """Of all threads together: ``log.cleaner.io.max.bytes.per.second``."""
    delete_delay: float = 60.0
    backoff: float = 15.0
    can_be_held: bool = True

    @property
    def bytes_per_second(self) -> float:
        return min(self.threads * CLEANER_BYTES_PER_SECOND, self.most_bytes_per_second)

    @property
    def burst(self) -> float:
        return min(self.threads * CLEANER_BURST, self.most_bytes_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfencedWriters:
    """Of one volume."""

    cleaner: Cleaner = Cleaner()
    compacted: Sequence[CompactedLog] = ()
    state_logs: Sequence[StateLog] = ()
    index_cache_left: int = 0
    metadata_snapshot: int = 0
    metadata_rate: float = 0.0
    partitions: int = 0
    is_moved_into: bool = False
    is_measured: bool = True
    """Rates are complete, and the cleaner's settings are the broker's own; else both may be too low."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservePart:
    """``what`` is its stable name, ``why`` how it was worked out."""

    what: str
    bytes: Bytes
    why: str = field(default="", compare=False)


def reserve_parts(writers: UnfencedWriters) -> tuple[ReservePart, ...]:
    """Those that are not 0."""
    parts = (
        _groups(writers),
        _passes(writers),
        _coordinators(writers),
        _moves(writers),
        ReservePart(what="index-cache", bytes=Bytes(writers.index_cache_left), why="what the cache may still grow by"),
        _metadata(writers),
    )
    return tuple(part for part in parts if part.bytes > 0)


def reserve_bytes(parts: Iterable[ReservePart]) -> Bytes:
    """Rounded up, so that it does not change with every commit."""
    exact = sum(part.bytes for part in parts)
    step = 1 << max(exact.bit_length() - _SIGNIFICANT_BITS, 0)
    return Bytes(-(-exact // step) * step)


def fewest_files(total_files: int, partitions: int) -> int:
    """Inodes that must be left: every partition may roll a segment before the next look."""
    return max(FILES_PER_ROLL * partitions, min(FEWEST_FILES, total_files // 100))


def _groups(writers: UnfencedWriters) -> ReservePart:
    threads = writers.cleaner.threads
    largest = sorted((log.group for log in writers.compacted), reverse=True)[:threads]
    why = f"{counted(threads, 'cleaner thread')}, largest group {human_bytes(largest[0] if largest else 0)}"
    return ReservePart(what="cleaner", bytes=Bytes(sum(largest)), why=why)


def _passes(writers: UnfencedWriters) -> ReservePart:
    cleaner = writers.cleaner
    held = [log for log in writers.compacted if log.is_held and cleaner.can_be_held]
    others = [log for log in writers.compacted if not (log.is_held and cleaner.can_be_held)]
    until_held = min(sum(log.bytes for log in held), cleaner.burst * UNTIL_HELD)
    delay = max((log.delete_delay for log in others), default=0.0)
    unheld = min(sum(log.bytes for log in others), cleaner.bytes_per_second * delay)
    why = []
    if held:
        why.append(f"{human_bytes(int(cleaner.burst))}/s until it is held ({human_span(UNTIL_HELD)})")
    if others:
        speed, logs = human_bytes(int(cleaner.bytes_per_second)), counted(len(others), "log")
        why.append(f"{logs} that no hold stops at {speed}/s for {human_span(delay)}")
    return ReservePart(what="passes", bytes=Bytes(int(until_held + unheld)), why=", ".join(why))


def _coordinators(writers: UnfencedWriters) -> ReservePart:
    rate = sum(log.rate for log in writers.state_logs)
    cleaner = writers.cleaner
    unheld = REPLACED_SHARE * cleaner.delete_delay + cleaner.backoff
    until_compacted = UNTIL_COMPACTED if cleaner.can_be_held else unheld
    growth = sum(log.growth for log in writers.state_logs)
    why = f"{human_bytes(int(rate))}/s of offset commits, groups and transactions"
    return ReservePart(what="coordinators", bytes=Bytes(int(rate * until_compacted + growth)), why=why)


def _moves(writers: UnfencedWriters) -> ReservePart:
    moved = int(MOVED_BYTES_PER_SECOND * UNTIL_PAUSED) if writers.is_moved_into else 0
    return ReservePart(what="moves", bytes=Bytes(moved), why=f"{UNTIL_PAUSED} s, until they are paused")


def _metadata(writers: UnfencedWriters) -> ReservePart:
    grows = writers.metadata_rate * GROWTH_SPAN
    why = f"one more snapshot, and {human_bytes(int(writers.metadata_rate))}/s for {human_span(GROWTH_SPAN)}"
    return ReservePart(what="metadata", bytes=Bytes(writers.metadata_snapshot + int(grows)), why=why)

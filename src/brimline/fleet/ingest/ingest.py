"""The ingest: every landed file once, however often it is interrupted.

What has landed lately is looked for (``look``), what the tables know already is left out, and the rest is taken in
batch by batch (``batch``), each written down before it is begun (``memory``). A run that ended in the middle of a batch
is followed by one that begins with that batch.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import groupby

import pyarrow as pa
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # has no type marker
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from brimline.fleet.ingest.batch import Batch, take_batch
from brimline.fleet.ingest.judge import FileVerdict
from brimline.fleet.ingest.look import LOOK_THROUGH_MS, LandedFile, has_landed, look_for_new, look_through
from brimline.fleet.ingest.memory import Memory, remember, remembered
from brimline.fleet.session.errors import JobFailed, SparkGone, said_by
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.warehouse import ALL, Wanted, Warehouse, quoted
from brimline.landing.place import PlaceFailed

FILES_PER_BATCH = 2_000
"""What is done again after an interruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    snapshots: int = 0
    rows: int = 0
    """In the landed files, segments included."""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """Files by reason."""

    def with_verdict(self, verdict: FileVerdict) -> "IngestReport":
        reasons = [each.reason for each in verdict.refused]
        counts = {reason: reasons.count(reason) for reason in reasons}
        together = {
            reason: self.quarantined.get(reason, 0) + counts.get(reason, 0) for reason in {*self.quarantined, *counts}
        }
        sections = [section.rows for each in verdict.accepted for section in each.header.sections.values()]
        return IngestReport(
            snapshots=self.snapshots + len(verdict.accepted),
            rows=self.rows + sum(sections),
            quarantined=dict(sorted(together.items())),
        )


def ingest(
    spark: SparkSession,
    landing: str,
    warehouse: Warehouse,
    *,
    tasks: int,
    files_per_batch: int = FILES_PER_BATCH,
    on_files: Callable[[int], None] = lambda files: None,
) -> IngestReport:
    """All files that have landed and were not taken yet. ``on_files`` hears how many, as batches end."""
    if not has_landed(landing):
        return IngestReport()
    run = _Ingest(spark, warehouse, tasks)
    try:
        return run.everything(landing, files_per_batch, on_files)
    except Py4JNetworkError as error:
        raise SparkGone from error
    except (PySparkException, Py4JError, DeltaError, PlaceFailed, OSError, pa.ArrowException) as error:
        raise JobFailed(f"ingest failed, the next run resumes it: {said_by(error)}") from error


class _Ingest:
    def __init__(self, spark: SparkSession, warehouse: Warehouse, tasks: int) -> None:
        self._spark, self._warehouse, self._tasks = spark, warehouse, tasks
        self._memory = remembered(warehouse)
        self._report = IngestReport()
        self._files = 0

    def everything(self, landing: str, files_per_batch: int, on_files: Callable[[int], None]) -> IngestReport:
        if self._memory.begun:
            self._take(self._memory, {})
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        is_due = not 0 <= now_ms - self._memory.looked_through_ms < LOOK_THROUGH_MS
        found = look_through(landing) if is_due else look_for_new(landing, self._memory.marks_ms)
        folders = {each.path: each.folder for each in found}
        for paths in _batches([each.path for each in self._unknown(found)], files_per_batch):
            begun = replace(self._memory, number=self._memory.number + 1, begun=tuple(paths))
            remember(self._warehouse, begun)
            self._take(begun, folders)
            self._files += len(paths)
            on_files(self._files)
        if is_due:
            self._remember(replace(self._memory, looked_through_ms=now_ms))
        return self._report

    def _take(self, begun: Memory, folders: Mapping[str, str]) -> None:
        now = datetime.now(UTC)
        batch = Batch(name=begun.batch, paths=begun.begun, tasks=self._tasks, now=now)
        verdict = take_batch(self._spark, self._warehouse, batch)
        self._report = self._report.with_verdict(verdict)
        marks = dict(begun.marks_ms)
        for each in verdict.accepted:
            folder = folders.get(each.path, "")
            # No clock of another host moves a mark beyond now
            moment = min(each.header.taken_at_ms, int(now.timestamp() * 1000))
            marks[folder] = max(marks.get(folder, 0), moment)
        self._remember(replace(begun, begun=(), marks_ms=marks))

    def _remember(self, memory: Memory) -> None:
        remember(self._warehouse, memory)
        self._memory = memory

    def _unknown(self, found: Sequence[LandedFile]) -> Iterator[LandedFile]:
        """Day by day, so that never more than one day's names are held."""
        refused = self._paths(Table.QUARANTINE, [each.path for each in found]) if found else set()
        for day, of_day in groupby(found, key=lambda each: each.day):
            files = list(of_day)
            taken = self._paths(Table.SNAPSHOTS, [each.path for each in files], day, _since(files))
            yield from (each for each in files if each.path not in taken and each.path not in refused)

    def _paths(self, table: Table, paths: Sequence[str], day: date | None = None, since: str = "") -> set[str]:
        """The moment of a name is that of its snapshot; files with other names are looked for everywhere."""
        wanted = ALL if day is None else Wanted(days=[day])
        is_few = len(paths) <= _FEW
        where = f'"{c.PATH}" IN ({", ".join(map(quoted, paths))})' if is_few else since
        return set(self._warehouse.select(table, [c.PATH], wanted, where).column(0).to_pylist())


_FEW = 1_000
"""Names in a question; beyond, all are asked for, from the oldest moment on."""


def _since(files: Iterable[LandedFile]) -> str:
    """A condition in SQL: without it a look for what is new would read the names of the whole day."""
    moments = [each.moment_ms for each in files]
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(moments):
        return ""
    return f"{c.TAKEN_AT} >= TIMESTAMP '{datetime.fromtimestamp(min(known) / 1000, UTC).isoformat()}'"


def _batches(paths: Iterable[str], size: int) -> Iterator[list[str]]:
    whole = list(paths)
    for begin in range(0, len(whole), size):
        yield whole[begin : begin + size]

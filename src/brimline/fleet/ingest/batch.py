"""One batch of landed files into the bronze tables, exactly once.

Spark's tasks open each file once, examine it, and write its rows to data files; what they found comes back to the
driver, which judges and commits. The order of the commits is what makes it exactly once. First the refused files go to
``quarantine``: from then on they stay refused, whatever the clock says when the batch is done again. Then the rows,
table by table, each commit carrying the batch's number, and what is newest of each broker. Last ``snapshots``: a row
there says that all rows of the file are in the tables. A batch that was cut short anywhere is done again from the
start, with the same files, and every commit that had happened does nothing.

A task cannot know that two files are one snapshot. When it turns out that rows were written which nobody wants, the
files are done again without them: that is rare, and nothing was committed yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from brimline.fleet.ingest.file import SECTION_TABLES, Examined, take_in, taken_at
from brimline.fleet.ingest.judge import Accepted, FileVerdict, Known, RefusedFile, judge
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.data_files import DATA_FILE, DataFile, DataFiles, data_files, described, remove_files
from brimline.fleet.tables.manifest import newest, with_snapshots
from brimline.fleet.tables.schemas import ARROW
from brimline.fleet.tables.warehouse import BatchName, Wanted, Warehouse, quoted
from brimline.landing.header import Header
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.seal import BadSnapshot, QuarantineReason

_EXAMINED = pa.schema(
    [
        pa.field("landed", pa.string()),
        pa.field("file_bytes", pa.int64()),
        pa.field("header", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("is_written", pa.bool_()),
    ]
)
_REPORTED = pa.unify_schemas([_EXAMINED, DATA_FILE])
"""What a task says: a row for each landed file, and one for each data file that it wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    name: BatchName
    paths: Sequence[str]
    tasks: int
    now: datetime


def take_batch(spark: SparkSession, warehouse: Warehouse, batch: Batch) -> FileVerdict:
    """What became of each file of the batch; a file that was known before is in neither list."""
    before = _known_before(warehouse, batch.paths)
    found: dict[str, Examined] = {}
    unwanted: set[str] = set()
    while True:
        paths = [path for path in batch.paths if path not in unwanted]
        report = _run_tasks(spark, warehouse, paths, before, batch) if paths else _Report()
        found |= report.examined
        verdict = judge(found.values(), _with_snapshots(before, warehouse, found.values()), batch.now)
        wrong = report.written - {each.path for each in verdict.accepted}
        if not wrong:
            break
        remove_files(warehouse.place, report.files)
        unwanted |= wrong
    _commit(warehouse, verdict, report.files, batch)
    return verdict


def _commit(warehouse: Warehouse, verdict: FileVerdict, files: Sequence[DataFile], batch: Batch) -> None:
    accepted, refused = verdict.accepted, verdict.refused
    if refused:
        rows = [_quarantine_row(each, batch.now) for each in refused]
        warehouse.write(rows, Table.QUARANTINE, "append", batch.name)
    if not accepted:
        return
    for table in SECTION_TABLES:
        warehouse.commit(table, [each for each in files if each.table is table], "append", batch.name)
    rows = [_snapshot_row(each, batch.now) for each in accepted]
    warehouse.write(with_snapshots(newest(warehouse.place), rows), Table.NEWEST, "overwrite", batch.name)
    warehouse.write(rows, Table.SNAPSHOTS, "append", batch.name)


def _known_before(warehouse: Warehouse, paths: Sequence[str]) -> Known:
    refused = warehouse.select(Table.QUARANTINE, [c.PATH], where=_one_of(c.PATH, paths))
    closed = warehouse.select(Table.THINNED, [c.CLOSED_BEFORE]).column(0).to_pylist()
    return Known(
        snapshots={}, refused=frozenset(refused.column(0).to_pylist()), closed_before=max(closed, default=None)
    )


def _with_snapshots(before: Known, warehouse: Warehouse, found: Iterable[Examined]) -> Known:
    headers = [each.header for each in found if each.header is not None]
    wanted = Wanted(
        days=sorted({taken_at(header).date() for header in headers}), snapshots=[h.snapshot_id for h in headers]
    )
    rows = warehouse.select(Table.SNAPSHOTS, [c.SNAPSHOT_ID, c.PATH], wanted)
    snapshots = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return Known(snapshots=snapshots, refused=before.refused, closed_before=before.closed_before)


def _one_of(column: str, texts: Sequence[str]) -> str:
    return f'"{column}" IN ({", ".join(map(quoted, texts)) or "NULL"})'


class _Report:
    """What the tasks said."""

    def __init__(self, rows: Sequence[dict[str, object]] = ()) -> None:
        landed = [row for row in rows if row["landed"] is not None]
        self.examined = {each.path: each for each in map(_examined, landed)}
        self.written = {str(row["landed"]) for row in landed if row["is_written"]}
        names = DATA_FILE.names
        self.files = data_files({name: row[name] for name in names} for row in rows if row["table"] is not None)


def _run_tasks(spark: SparkSession, warehouse: Warehouse, paths: Sequence[str], before: Known, batch: Batch) -> _Report:
    """As many tasks as cores, each with every n-th file, and so one new data file each for a table and a day."""
    tasks = max(min(batch.tasks, len(paths)), 1)
    shares = [paths[task::tasks] for task in range(tasks)]
    work = partial(_share, warehouse.place, shares, before, batch.now)
    rows = spark.range(0, tasks, 1, tasks).mapInArrow(work, from_arrow_schema(_REPORTED))
    return _Report(rows.toArrow().to_pylist())


def _share(
    place: str, shares: Sequence[Sequence[str]], before: Known, now: datetime, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a task does: its files, one after the other."""
    for number in numbers:
        for task in number.column(0).to_pylist():
            files = DataFiles(place, {table: ARROW[table] for table in SECTION_TABLES})
            examined = []
            for path in shares[task]:
                taken = take_in(path)
                is_written = bool(judge([taken.examined], before, now).accepted)
                for table, rows in taken.rows.items() if is_written else ():
                    files.add(table, rows)
                examined.append(_examined_row(taken.examined, is_written=is_written))
            yield _reported(pa.RecordBatch.from_pylist(examined, schema=_EXAMINED))
            yield _reported(described(files.finished()))


def _reported(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        rows.column(field.name) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
        for field in _REPORTED
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_REPORTED)


def _examined_row(found: Examined, *, is_written: bool) -> dict[str, object]:
    return {
        "landed": found.path,
        "file_bytes": found.file_bytes,
        "header": None if found.header is None else found.header.to_json(),
        "reason": None if found.failure is None else found.failure.reason.value,
        "detail": None if found.failure is None else found.failure.detail,
        "is_written": is_written,
    }


def _examined(row: dict[str, object]) -> Examined:
    header, reason = row["header"], row["reason"]
    return Examined(
        path=str(row["landed"]),
        file_bytes=int(str(row["file_bytes"])),
        header=None if header is None else Header.from_json(str(header)),
        failure=None if reason is None else BadSnapshot(QuarantineReason(reason), str(row["detail"])),
    )


def _of_snapshot(header: Header) -> dict[str, object]:
    moment = taken_at(header)
    return {
        c.CLUSTER_ID: header.cluster_id,
        c.BROKER_ID: header.broker_id,
        c.TAKEN_AT: moment,
        c.SNAPSHOT_ID: header.snapshot_id,
        c.SOURCE: header.source.value,
        c.TAKEN_ON: moment.date(),
    }


def _snapshot_row(file: Accepted, now: datetime) -> dict[str, object]:
    sections = file.header.sections
    return _of_snapshot(file.header) | {
        c.PATH: file.path,
        c.FILE_BYTES: file.file_bytes,
        c.MADE_BY: file.header.made_by,
        c.INGESTED_AT: now,
        c.VOLUMES_ROWS: sections[VOLUMES].rows,
        c.TOPICS_ROWS: sections[TOPICS].rows,
        c.LOGS_ROWS: sections[LOGS].rows,
        c.SEGMENTS_ROWS: sections[SEGMENTS].rows,
    }


def _quarantine_row(file: RefusedFile, now: datetime) -> dict[str, object]:
    known = {} if file.header is None else _of_snapshot(file.header)
    row = {name: known.get(name) for name in ARROW[Table.QUARANTINE].names}
    return row | {c.PATH: file.path, c.REASON: file.reason, c.DETAIL: file.detail, c.SEEN_AT: now}

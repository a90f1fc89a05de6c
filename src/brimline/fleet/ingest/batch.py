"""One batch of landed files, exactly once; files without a byte with it.

One batch of landed files into the bronze tables, exactly once.

The order is what makes it so. First the refused files go to ``quarantine``: from then on they stay refused, whatever
the clock says when the batch is done again. Then the rows, table by table, each append carrying the batch's number.
Last ``snapshots``: a row there says that all of the file's rows are in the tables. A batch that was cut short
anywhere is done again from the start, with the same files, and every append that had happened does nothing.

Files without a byte: Spark leaves them out when it reads, so the stream never shows them. They are named here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
from pyarrow import fs
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import StructType

from brimline.fleet.ingest.file import SECTION_TABLES, rows_of, taken_at
from brimline.fleet.ingest.judge import (
    EXAMINED,
    Accepted,
    FileVerdict,
    Known,
    RefusedFile,
    examined_from_rows,
    examined_rows,
    judge,
)
from brimline.fleet.session.errors import LandingFailed
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.landing_paths import for_pyarrow, is_uri
from brimline.fleet.tables.schemas import ARROW, BRONZE
from brimline.fleet.tables.warehouse import BatchName, Warehouse, file_system
from brimline.landing.header import ROOT, SUFFIX, Header
from brimline.landing.schema import LOGS, SEGMENTS, TOPICS, VOLUMES
from brimline.landing.seal import QuarantineReason

_AT_ONCE = 4
"""Appends side by side: most of an append is waiting for the one before it in the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIngest:
    """What ``foreachBatch`` calls. It is sent to the server by Spark Connect, so it holds names and numbers only."""

    warehouse: Warehouse
    stream: str
    tasks: int

    def __call__(self, files: DataFrame, number: int) -> None:
        spark = files.sparkSession
        batch = BatchName(stream=self.stream, number=number)
        paths = sorted(for_pyarrow(row[0]) for row in files.select(c.PATH).collect())
        found = examined_from_rows(self._mapped(spark, paths, examined_rows, EXAMINED).collect())
        now = datetime.now(UTC)
        verdict = judge(found, self._known(spark, [each.header for each in found if each.header], paths), now)
        self._refuse(spark, verdict, batch, now)
        if verdict.accepted:
            self._accept(spark, verdict.accepted, batch, now)

    def _known(self, spark: SparkSession, headers: Sequence[Header], paths: Sequence[str]) -> Known:
        days = sorted({taken_at(header).date() for header in headers})
        snapshots = self.warehouse.read(spark, Table.SNAPSHOTS).where(F.col(c.TAKEN_ON).isin(days))
        mine = F.col(c.SNAPSHOT_ID).isin([header.snapshot_id for header in headers])
        refused = self.warehouse.read(spark, Table.QUARANTINE).where(F.col(c.PATH).isin(list(paths)))
        closed = self.warehouse.read(spark, Table.THINNED).agg(F.max(c.CLOSED_BEFORE)).collect()
        return Known(
            snapshots={row[0]: row[1] for row in snapshots.where(mine).select(c.SNAPSHOT_ID, c.PATH).collect()},
            refused={row[0] for row in refused.select(c.PATH).collect()},
            closed_before=closed[0][0],
        )

    def _refuse(self, spark: SparkSession, verdict: FileVerdict, batch: BatchName, now: datetime) -> None:
        if verdict.refused:
            rows = local_rows(spark, Table.QUARANTINE, [quarantine_row(each, now) for each in verdict.refused])
            self.warehouse.append_once(rows, Table.QUARANTINE, batch)

    def _accept(self, spark: SparkSession, accepted: Sequence[Accepted], batch: BatchName, now: datetime) -> None:
        paths = [each.path for each in accepted]
        appends = {
            table: self._mapped(spark, paths, partial(rows_of, table), BRONZE[table]) for table in SECTION_TABLES
        }
        with_segments = [each for each in accepted if each.header.sections[SEGMENTS].rows]
        if with_segments:
            manifest = [_segment_snapshot_row(each) for each in with_segments]
            appends[Table.SEGMENT_SNAPSHOTS] = local_rows(spark, Table.SEGMENT_SNAPSHOTS, manifest)
        else:
            del appends[Table.TOPIC_AGES]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            append = inheritable_thread_target(spark)(partial(self.warehouse.append_once, batch=batch))
            for done in [pool.submit(append, rows, table) for table, rows in appends.items()]:
                done.result()
        done_with = local_rows(spark, Table.SNAPSHOTS, [_snapshot_row(each, now) for each in accepted])
        self.warehouse.append_once(done_with, Table.SNAPSHOTS, batch)

    def _mapped(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        rows: Callable[[str], pa.RecordBatch],
        schema: StructType,
    ) -> DataFrame:
        """The files' rows: as many tasks as cores, each with every n-th file, and so one new data file each."""
        tasks = max(min(self.tasks, len(paths)), 1)
        shares = [paths[task::tasks] for task in range(tasks)]
        return spark.range(0, tasks, 1, tasks).mapInArrow(partial(_rows_of_shares, shares, rows), schema)


def _rows_of_shares(
    shares: Sequence[Sequence[str]], rows: Callable[[str], pa.RecordBatch], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for task in batch.column(0).to_pylist():
            yield from map(rows, shares[task])


def local_rows(spark: SparkSession, table: Table, rows: Sequence[dict[str, object]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=ARROW[table]), BRONZE[table])


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


def _segment_snapshot_row(file: Accepted) -> dict[str, object]:
    rows = {c.PATH: file.path, c.FILE_BYTES: file.file_bytes, c.ROWS: file.header.sections[SEGMENTS].rows}
    return _of_snapshot(file.header) | rows


def quarantine_row(file: RefusedFile, now: datetime) -> dict[str, object]:
    known = {} if file.header is None else _of_snapshot(file.header)
    row = {name: known.get(name) for name in ARROW[Table.QUARANTINE].names}
    return row | {c.PATH: file.path, c.REASON: file.reason, c.DETAIL: file.detail, c.SEEN_AT: now}


def refuse_empty(spark: SparkSession, landing: str, warehouse: Warehouse) -> int:
    """How many are new. Looked up first, and only one run is at work: so each is named once."""
    found = empty_files(landing)
    if not found:
        return 0
    refused = warehouse.read(spark, Table.QUARANTINE).where(F.col(c.PATH).isin(found)).select(c.PATH).collect()
    new = sorted(set(found) - {row[0] for row in refused})
    if new:
        now, reason = datetime.now(UTC), QuarantineReason.NOT_PARQUET.value
        rows = [
            quarantine_row(RefusedFile(path=path, reason=reason, detail="the file is empty", header=None), now)
            for path in new
        ]
        warehouse.append(local_rows(spark, Table.QUARANTINE, rows), Table.QUARANTINE)
    return len(new)


def empty_files(landing: str) -> list[str]:
    files, root = file_system(landing)
    try:
        listed = files.get_file_info(fs.FileSelector(f"{root.rstrip('/')}/{ROOT}", recursive=True))
    except (OSError, pa.ArrowException) as error:
        raise LandingFailed(f"the landing place {landing} cannot be listed: {error}") from error
    names = (info.path for info in listed if info.is_file and info.size == 0 and _is_listed_by_spark(info.base_name))
    prefix = landing.rstrip("/") + "/" if is_uri(landing) else ""
    return [prefix + name.removeprefix(root.rstrip("/") + "/") if prefix else name for name in names]


def _is_listed_by_spark(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith((".", "_"))

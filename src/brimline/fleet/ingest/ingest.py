"""The ingest: a stream of landed files, and whose batches are counted.

Whose batches are counted: the stream's name, and what happens when its memory was lost.

An append is told apart by the stream's name and the number of its batch, and the numbers begin anew with a new
checkpoint. So the name lives beside the checkpoint and goes with it. A warehouse that has tables and no checkpoint
any more may hold rows of a batch that was never finished; those are taken out before their files are read again. The
files of finished batches are known by the tables ``snapshots`` and ``quarantine``.

Landed snapshots into the bronze tables: a file stream that takes every file once, however often it is interrupted.

The stream lists names and reads no contents: ``binaryFile`` without its column ``content``. What is in the files is
the business of ``fleet.ingest.batch``. Which files were taken is in the stream's checkpoint, inside the warehouse.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # has no type marker
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from brimline.fleet.ingest.batch import BatchIngest, refuse_empty
from brimline.fleet.ingest.file import SECTION_TABLES
from brimline.fleet.session.errors import FleetError, JobFailed, LandingFailed, SparkGone, said_by
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.landing_paths import for_spark, listed
from brimline.fleet.tables.warehouse import Warehouse, file_system
from brimline.landing.header import ROOT, SUFFIX

_NAME_FILE = "brimline-stream"


def has_landed(landing: str) -> bool:
    """Whether there is anything to list; a place that does not exist at all is a mistake."""
    try:
        files, root = file_system(landing)
        found = files.get_file_info([root, f"{root.rstrip('/')}/{ROOT}"])
    except (OSError, pa.ArrowException, ValueError) as error:
        raise LandingFailed(f"the landing place {landing} cannot be looked at: {_one_line(error)}") from error
    place, snapshots = (bool(info.type != fs.FileType.NotFound) for info in found)
    if not place and not snapshots:
        raise LandingFailed(f"there is no landing place {landing}: name the one that the guards write to")
    return snapshots


def stream_name(spark: SparkSession, warehouse: Warehouse) -> str:
    """The name of the stream that this checkpoint belongs to, a new one for a new checkpoint."""
    try:
        files, checkpoint = file_system(warehouse.checkpoint)
        path = f"{checkpoint}/{_NAME_FILE}"
        if files.get_file_info(path).type == fs.FileType.File:
            with files.open_input_stream(path) as stream:
                return str(stream.read().decode())
        remove_unfinished(spark, warehouse)
        if files.get_file_info(checkpoint).type != fs.FileType.NotFound:
            files.delete_dir(checkpoint)
        files.create_dir(checkpoint, recursive=True)
        name = f"brimline-{uuid4().hex}"
        with files.open_output_stream(f"{path}.new") as stream:
            stream.write(name.encode())
        files.move(f"{path}.new", path)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise FleetError(f"the warehouse {warehouse.place} cannot be written to: {_one_line(error)}") from error
    return name


def remove_unfinished(spark: SparkSession, warehouse: Warehouse) -> None:
    """Rows of snapshots that ``snapshots`` does not have: it is written last, so their batch was never finished."""
    finished = warehouse.read(spark, Table.SNAPSHOTS).select(c.SNAPSHOT_ID)
    for table in (*SECTION_TABLES, Table.SEGMENT_SNAPSHOTS):
        if not warehouse.exists(spark, table):
            continue
        held = warehouse.read(spark, table).select(c.SNAPSHOT_ID).distinct()
        unfinished = [row[0] for row in held.join(finished, on=c.SNAPSHOT_ID, how="left_anti").collect()]
        if unfinished:
            names = ", ".join(f"'{name}'" for name in unfinished)  # hexadecimal digits, by the header's own rule
            spark.sql(f"DELETE FROM delta.`{warehouse.path(table)}` WHERE {c.SNAPSHOT_ID} IN ({names})")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


FILES_PER_BATCH = 500
"""A batch costs some seconds of commits whatever is in it; its rows wait for nothing else."""
_LOOK_SECONDS = 1
# As Spark fixes it
_BINARY_FILE = StructType(
    [
        StructField("path", StringType(), nullable=False),
        StructField("modificationTime", TimestampType(), nullable=False),
        StructField("length", LongType(), nullable=False),
        StructField("content", BinaryType(), nullable=True),
    ]
)
_LISTING = {
    "recursiveFileLookup": "true",
    "pathGlobFilter": f"*{SUFFIX}",
    # What the stream forgets it also overlooks: a file that was changed longer before the newest one than this
    "maxFileAge": "30d",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    snapshots: int
    rows: int
    """In the landed files, segments included."""
    quarantined: Mapping[str, int]
    """Files by reason."""


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
    began = datetime.now(UTC)
    if not has_landed(landing):
        return IngestReport(snapshots=0, rows=0, quarantined={})
    handle = BatchIngest(warehouse=warehouse, stream=stream_name(spark, warehouse), tasks=tasks)
    files = spark.readStream.format("binaryFile").schema(_BINARY_FILE).options(**_LISTING)
    try:
        query = (
            files.option("maxFilesPerTrigger", files_per_batch)
            .load(listed(landing))
            .select(c.PATH)
            .writeStream.foreachBatch(handle)
            .option("checkpointLocation", for_spark(warehouse.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        taken = _follow(query, on_files)
    except Py4JNetworkError as error:
        raise SparkGone from error
    except (PySparkException, Py4JError) as error:
        raise JobFailed(f"the ingest failed, and will go on where it was: {said_by(error)}") from error
    taken += refuse_empty(spark, landing, warehouse)
    return _report(spark, warehouse, began) if taken else IngestReport(snapshots=0, rows=0, quarantined={})


def _follow(query: StreamingQuery, on_files: Callable[[int], None]) -> int:
    """To the end of the stream; an interruption from outside ends it too, between two batches or within one."""
    taken: dict[int, int] = {}
    is_over = False
    try:
        while not is_over:
            is_over = query.awaitTermination(_LOOK_SECONDS) or False
            for progress in query.recentProgress:
                taken[progress["batchId"]] = sum(source["numInputRows"] for source in progress["sources"])
            on_files(sum(taken.values()))
    except BaseException:
        with suppress(PySparkException, Py4JError):  # the connection may be the one that was interrupted
            query.stop()
        raise
    return sum(taken.values())


def _report(spark: SparkSession, warehouse: Warehouse, began: datetime) -> IngestReport:
    accepted = _since(warehouse.read(spark, Table.SNAPSHOTS), c.INGESTED_AT, began)
    rows = sum(F.col(name) for name in (c.TOPICS_ROWS, c.LOGS_ROWS, c.SEGMENTS_ROWS)) + F.col(c.VOLUMES_ROWS)
    refused = _since(warehouse.read(spark, Table.QUARANTINE), c.SEEN_AT, began)
    found = (
        accepted.select(F.lit("").alias(c.REASON), rows.alias(c.ROWS))
        .unionByName(refused.select(c.REASON, F.lit(0).cast("long").alias(c.ROWS)))
        .groupBy(c.REASON)
        .agg(F.count("*").alias("files"), F.sum(c.ROWS).alias(c.ROWS))
        .collect()
    )
    files = {row[c.REASON]: row["files"] for row in found}
    return IngestReport(
        snapshots=files.pop("", 0), rows=sum(row[c.ROWS] for row in found), quarantined=dict(sorted(files.items()))
    )


def _since(rows: DataFrame, column: str, moment: datetime) -> DataFrame:
    return rows.where(F.col(column) >= F.lit(moment))

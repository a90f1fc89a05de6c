"""Whose batches are counted: the stream's name, and what happens when its memory was lost.

An append is told apart by the stream's name and the number of its batch, and the numbers begin anew with a new
checkpoint. So the name lives beside the checkpoint and goes with it. A warehouse that has tables and no checkpoint
any more may hold rows of a batch that was never finished; those are taken out before their files are read again. The
files of finished batches are known by the tables ``snapshots`` and ``quarantine``.
"""

from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from brimline.fleet import columns as c
from brimline.fleet.catalogue import Table
from brimline.fleet.errors import FleetError, LandingFailed
from brimline.fleet.ingest_file import SECTION_TABLES
from brimline.fleet.warehouse import Warehouse, file_system
from brimline.landing.header import ROOT

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

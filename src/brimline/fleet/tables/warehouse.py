"""A warehouse, and the lock that lets one run at a time use it.

One run at a time on a warehouse: two would take the same files in, and one of them would fail over it.

The lock is the kernel's, on a file, and goes with the last process that has the file open: this one, or the JVM that
was given it (``jvm.py``). A warehouse in an object store is locked by a file in this user's cache: that keeps the
runs of one machine apart; across machines Spark's checkpoint and Delta's log refuse the second one, with a worse
sentence.

A warehouse: one folder or URI with a Delta table per name.

Two ways to write, both atomic. A gold table is **overwritten**: readers see the old one or the new one. A bronze
table is **appended to exactly once**: the append carries the name of the stream and the number of its batch, Delta
keeps both in the table's own log, and a second append of the same pair does nothing. So a batch that was interrupted
anywhere is simply done again.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import ArrayType, StringType, StructType

from brimline.fleet.session.errors import FleetError, WarehouseBusy
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import GOLD
from brimline.fleet.tables.landing_paths import for_spark, is_uri
from brimline.fleet.tables.schemas import BRONZE, INDEXED_COLUMNS
from brimline.sandbox.jars.cache import cache_dir

PATIENCE_SECONDS = 15.0
"""A run that was killed takes some seconds to be gone with its JVM."""


@contextmanager
def only_run(warehouse: str, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[int]:
    """The lock's file descriptor, for whoever must keep it too."""
    path = lock_file(warehouse)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise FleetError(f"the warehouse {warehouse} cannot be written to: {error.strerror}") from error
    with file:
        deadline = time.monotonic() + patience_seconds
        while not _locked(file.fileno()):
            if time.monotonic() > deadline:
                file.seek(0)
                raise WarehouseBusy(
                    f"another run (pid {file.read().strip() or 'unknown'}) is at work on the warehouse {warehouse}"
                )
            time.sleep(0.1)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file.fileno()


def lock_file(warehouse: str) -> Path:
    if is_uri(warehouse):
        return cache_dir() / "fleet" / f"{hashlib.sha256(warehouse.encode()).hexdigest()[:16]}.lock"
    return Path(warehouse).absolute() / ".brimline-run.lock"


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_MISSING = ("DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
_CREATED_WITH = {"delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchName:
    """Which batch of which stream an append belongs to."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True)
class Warehouse:
    place: str
    """A folder or a URI, as pyarrow takes it."""

    def path(self, table: Table) -> str:
        """As Spark takes it."""
        return f"{for_spark(self.place).rstrip('/')}/{table.value}"

    @property
    def checkpoint(self) -> str:
        """Where the ingest remembers which files it has taken: it lives and dies with the tables."""
        return f"{self.place.rstrip('/')}/_checkpoints/ingest"

    def exists(self, spark: SparkSession, table: Table) -> bool:
        return self._load(spark, table) is not None

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """A table that was never written is empty."""
        found = self._load(spark, table)
        return spark.createDataFrame([], schema_of(table)) if found is None else found

    def overwrite(self, rows: DataFrame, table: Table) -> None:
        plain_strings(rows).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
            self.path(table)
        )

    def append(self, rows: DataFrame, table: Table) -> None:
        plain_strings(rows).write.format("delta").mode("append").save(self.path(table))

    def append_once(self, rows: DataFrame, table: Table, batch: BatchName) -> None:
        """Does nothing if this batch is in the table already."""
        writer = plain_strings(rows).write.format("delta").mode("append")
        for key, value in self._options(batch).items():
            writer = writer.option(key, value)
        if c.TAKEN_ON in rows.columns:
            writer = writer.partitionBy(c.TAKEN_ON)
        writer.save(self.path(table))

    def _options(self, batch: BatchName) -> Mapping[str, str]:
        return _CREATED_WITH | {"txnAppId": batch.stream, "txnVersion": str(batch.number)}

    def _load(self, spark: SparkSession, table: Table) -> DataFrame | None:
        try:
            found = spark.read.format("delta").load(self.path(table))
            # Spark Connect looks for the table only when it must
            _ = found.schema
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise
        return found


def plain_strings(rows: DataFrame) -> DataFrame:
    """The same rows, in tables that everybody can read.

    Spark Connect sends a text's type with its collation, even the usual one, and Delta writes that down. A type that is
    told by its name has none.
    """
    return rows.select(
        *(
            F.col(field.name).cast(field.dataType.simpleString()).alias(field.name)
            if isinstance(field.dataType, StringType | ArrayType)
            else F.col(field.name)
            for field in rows.schema.fields
        )
    )


def file_system(place: str) -> tuple[fs.FileSystem, str]:
    """Of a folder or a URI, and the path in it."""
    if is_uri(place):
        files, path = fs.FileSystem.from_uri(place)
        return files, path
    return fs.LocalFileSystem(), str(Path(place).absolute())


def schema_of(table: Table) -> StructType:
    return BRONZE[table] if table in BRONZE else GOLD[table]

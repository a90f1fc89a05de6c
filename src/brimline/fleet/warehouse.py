"""A warehouse: one folder or URI with a Delta table per name.

Two ways to write, both atomic. A gold table is **overwritten**: readers see the old one or the new one. A bronze
table is **appended to exactly once**: the append carries the name of the stream and the number of its batch, Delta
keeps both in the table's own log, and a second append of the same pair does nothing. So a batch that was interrupted
anywhere is simply done again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import ArrayType, StringType, StructType

from brimline.fleet import columns as c
from brimline.fleet.catalogue import Table
from brimline.fleet.gold_schemas import GOLD
from brimline.fleet.landing_paths import for_spark, is_uri
from brimline.fleet.schemas import BRONZE, INDEXED_COLUMNS

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

"""A warehouse: one folder or URI with a Delta table per name.

Every write is one commit, by delta-rs, of data files that Spark's tasks have written (``data_files``). A gold table is
**overwritten**: readers see the old one or the new one. A bronze table is **appended to exactly once**: the commit
carries the name of the ingest and the number of its batch, Delta keeps both in the table's own log, and a second commit
of the same pair does nothing. So a batch that was interrupted anywhere is simply done again.

A table is read by Spark itself, or, where few bytes are asked for, by delta-rs, which hands the rows to Spark: Spark
would start jobs to find out what is in a small table. In an object store Spark reads nothing by itself: its
tasks do, with pyarrow. Whoever reads, Spark computes.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial, reduce
from itertools import pairwise, repeat
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Field, QueryBuilder, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.data_files import (
    DATA_FILE,
    DataFile,
    DataFiles,
    StoredFile,
    data_files,
    read_by_task,
    remove_files,
    shared_out,
    written_by_task,
)
from brimline.fleet.tables.dictionary import meaning
from brimline.fleet.tables.gold_schemas import GOLD
from brimline.fleet.tables.landing_paths import for_delta, for_spark
from brimline.fleet.tables.schemas import ARROW, BRONZE, INDEXED_COLUMNS, NOT_NEGATIVE
from brimline.model.secrets import is_uri

_CREATED_WITH = {"delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS)}
OLD_VERSIONS_HOURS = 6
"""For readers that began before a table was made anew."""
_TIDY_EVERY = 12
_REWRITTEN = {
    "delta.deletedFileRetentionDuration": f"interval {OLD_VERSIONS_HOURS} hours",
    "delta.logRetentionDuration": "interval 1 days",
}
"""Of tables that are written whole by each run: their history answers no question."""
SMALL_BYTES = 16 << 20
"""Of data files: below it the rows pass through this process. Some ten times as much in memory."""
LARGE_FILE_BYTES = 512 << 10
"""Of a folder's data files on average: larger ones Spark reads quicker itself, and only the columns that it needs."""
_SPANS = 16
FEW_ROWS = 50_000
"""Up to here one task is quicker than two with a shuffle between them."""
_NAME = "rows"
_COMMIT = "brimline.commit"
_CONSTRAINT = "not_negative"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchName:
    """Which batch of which ingest a commit belongs to."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows of a table of snapshots: all, unless something is said."""

    days: Sequence[date] | None = None
    since: date | None = None
    snapshots: Sequence[str] | None = None
    spans: Sequence[tuple[datetime, datetime]] | None = None
    """Of ``taken_at``: a file has its first and last moment, and a day has 288 files of a run every five minutes."""

    @classmethod
    def of(cls, snapshots: Mapping[str, datetime]) -> "Wanted":
        """Some snapshots, with the moment of each."""
        days = {moment.astimezone(UTC).date() for moment in snapshots.values()}
        return cls(days=sorted(days), snapshots=list(snapshots), spans=_spans(snapshots.values()))

    def includes(self, file: StoredFile) -> bool:
        is_in_days = self.days is None or file.day is None or file.day in self.days
        is_since = self.since is None or file.day is None or file.day >= self.since
        return is_in_days and is_since and (self.spans is None or any(file.may_hold(*span) for span in self.spans))


def _spans(moments: Iterable[datetime]) -> list[tuple[datetime, datetime]]:
    """A few spans that hold them all, without the longest gaps: brokers are silent since different moments."""
    ordered = sorted(set(moments))
    gaps = sorted(range(1, len(ordered)), key=lambda place: ordered[place] - ordered[place - 1])
    starts = sorted([0, *gaps[-_SPANS + 1 :]])
    return [(ordered[a], ordered[b - 1]) for a, b in pairwise([*starts, len(ordered)])] if ordered else []


ALL = Wanted()


@dataclass(frozen=True, slots=True)
class Warehouse:
    place: str
    """A folder or a URI, as pyarrow takes it."""
    _open: dict[Table, DeltaTable] = field(default_factory=dict, init=False, compare=False, repr=False)

    def path(self, table: Table) -> str:
        """As Spark takes it."""
        return f"{for_spark(self.place).rstrip('/')}/{table.value}"

    @property
    def memory(self) -> str:
        """Where the ingest remembers what it is about to do: it lives and dies with the tables."""
        return f"{self.place.rstrip('/')}/_checkpoints/ingest"

    def is_small(self) -> bool:
        """Whether the whole history is: then every table that follows from it is, too."""
        found = map(self.opened, BRONZE)
        files = (file for each in found if each is not None for file in _stored_files(each, ALL))
        return sum(file.size for file in files) <= SMALL_BYTES

    def exists(self, table: Table) -> bool:
        return self.opened(table) is not None

    def opened(self, table: Table) -> DeltaTable | None:
        """As it is now, without Spark; ``None`` for a table that was never written.

        One that was open before is followed from there: to open it reads all commits since its last checkpoint, and a
        round asks some fifty times.
        """
        found = self._open.get(table)
        try:
            if found is None:
                found = self._open[table] = DeltaTable(f"{for_delta(self.place)}/{table.value}")
            else:
                found.update_incremental()
        except TableNotFoundError:
            return None
        return found

    def select(self, table: Table, columns: Sequence[str], wanted: Wanted = ALL, where: str = "") -> pa.Table:
        """Some columns of some rows, each once, without Spark; ``where`` is a condition in SQL."""
        found = self.opened(table)
        schema = to_arrow_schema(_of_columns(schema_of(table), columns), timezone="UTC")
        return schema.empty_table() if found is None else _selected(found, schema, wanted, where, "DISTINCT ")

    def read(self, spark: SparkSession, table: Table, wanted: Wanted = ALL) -> DataFrame:
        """A table that was never written is empty."""
        found, schema = self.opened(table), schema_of(table)
        if found is None:
            return spark.createDataFrame([], schema)
        files, is_far = _stored_files(found, wanted), is_uri(self.place)
        most = SMALL_BYTES if is_far else min(SMALL_BYTES, len(files) * LARGE_FILE_BYTES)
        if sum(file.size for file in files) <= most:
            rows = _selected(found, to_arrow_schema(schema, timezone="UTC"), wanted)
            if not len(rows):
                return spark.createDataFrame([], schema)
            return together(spark.createDataFrame(rows.combine_chunks(), nullable(schema)), len(rows))
        if is_far:
            return _read_by_tasks(spark, self.place, table, files, wanted)
        if found.protocol().min_reader_version > 1:
            # Somebody has given it deletion vectors or other names for its columns: the files alone are not the table
            return _of_wanted(spark.read.format("delta").load(self.path(table)), wanted)
        return _read_by_spark(spark, self.path(table), schema, files, wanted)

    def told(self, table: Table) -> Mapping[str, object]:
        """What the last commit of a table says of itself; nothing for a table that was never written."""
        found = self.opened(table)
        return {} if found is None else found.history(1)[0]

    def overwrite(
        self, rows: DataFrame, table: Table, told: Mapping[str, str] | None = None, *, is_small: bool = False
    ) -> int:
        """Written by Spark's tasks, or here if they are few, and committed at once; how many rows.

        ``told``: what the commit says of itself.
        """
        schema = to_arrow_schema(schema_of(table), timezone="UTC")
        write = partial(written_by_task, self.place, table, schema)
        if is_small:
            written = [row for batch in write(rows.toArrow().to_batches()) for row in batch.to_pylist()]
        else:
            written = rows.mapInArrow(write, from_arrow_schema(DATA_FILE)).toArrow().to_pylist()
        files = data_files(written)
        self.commit(table, files, "overwrite", told=told)
        return sum(each.rows for each in files)

    def write(
        self, rows: Sequence[Mapping[str, object]], table: Table, mode: str, batch: BatchName | None = None
    ) -> None:
        """A few rows from this process."""
        schema = ARROW[table]
        files = DataFiles(self.place, {table: schema})
        whole = pa.Table.from_pylist(list(rows), schema=schema)
        for part in _by_day(whole):
            for piece in part.combine_chunks().to_batches():
                files.add(table, piece)
        self.commit(table, files.finished(), mode, batch)

    def commit(
        self,
        table: Table,
        files: Sequence[DataFile],
        mode: str,
        batch: BatchName | None = None,
        told: Mapping[str, str] | None = None,
    ) -> None:
        """Make these files the table's. Does nothing if this batch is in the table already.

        An object store may carry a commit out and say that it failed. Asked again, it says that this version is there
        already, and a commit that has happened looks like a conflict: so every commit has a name of its own.
        """
        found = self.opened(table)
        if found is not None and batch is not None and (found.transaction_version(batch.stream) or 0) >= batch.number:
            remove_files(self.place, files)
            return
        name = uuid4().hex
        done = [] if batch is None else [Transaction(batch.stream, batch.number)]
        properties = CommitProperties(app_transactions=done, custom_metadata={**(told or {}), _COMMIT: name})
        try:
            self._commit(found, table, list(map(_action, files)), mode, properties)
        except DeltaError:
            if self.told(table).get(_COMMIT) != name:
                raise

    def _commit(
        self, found: DeltaTable | None, table: Table, actions: list[AddAction], mode: str, properties: CommitProperties
    ) -> None:
        schema = Schema.from_json(_with_comments(table).json())
        parted = [c.TAKEN_ON] if table in BRONZE and c.TAKEN_ON in schema_of(table).names else []
        if found is None:
            create_table_with_add_actions(
                f"{for_delta(self.place)}/{table.value}",
                schema,
                actions,
                partition_by=parted,
                name=table.value,
                description=table.sentence,
                configuration=_CREATED_WITH if mode == "append" else _CREATED_WITH | _REWRITTEN,
                commit_properties=properties,
            )
            return
        if mode == "append":
            _add_missing(found, schema)
            _constrain(found, table)
        else:
            _tidy(found)
        found.create_write_transaction(list(actions), mode, schema, partition_by=parted, commit_properties=properties)


def _add_missing(found: DeltaTable, schema: Schema) -> None:
    """A table of an older brimline gets the columns that were added since; its rows have nothing in them."""
    missing = _missing(found, schema)
    if not missing:
        return
    try:
        found.alter.add_columns(missing)
    except DeltaError:  # it may have happened all the same
        found.update_incremental()
        if _missing(found, schema):
            raise


def _constrain(found: DeltaTable, table: Table) -> None:
    """For others who write: our own files are named to Delta, which does not look into them.

    From the second commit on, because delta-rs takes no constraint for a table that it creates.
    """
    wanted = " AND ".join(f"({name} IS NULL OR {name} >= 0)" for name in NOT_NEGATIVE.get(table, ()))
    if wanted and f"delta.constraints.{_CONSTRAINT}" not in found.metadata().configuration:
        with suppress(DeltaError):  # rows of an older brimline may be in its way
            found.alter.add_constraint({_CONSTRAINT: wanted})


def _missing(found: DeltaTable, schema: Schema) -> list[Field]:
    there = {each.name for each in found.schema().fields}
    return [each for each in schema.fields if each.name not in there]


def _tidy(found: DeltaTable) -> None:
    """Now and then: a run every five minutes would leave 2,000 old versions of a table in a week.

    Before the next commit, because the last one says what the table was made from. Only files that a commit has taken
    out go; what was never committed is left to upkeep.
    """
    if (found.version() + 1) % _TIDY_EVERY:
        return
    with suppress(DeltaError):  # the next time will do
        if not found.metadata().configuration.keys() >= _REWRITTEN.keys():
            found.alter.set_table_properties(_REWRITTEN)
        found.vacuum(OLD_VERSIONS_HOURS, dry_run=False, enforce_retention_duration=False)


def _action(file: DataFile) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={} if file.day is None else {c.TAKEN_ON: file.day},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=file.stats,
    )


def _by_day(rows: pa.Table) -> Iterator[pa.Table]:
    if c.TAKEN_ON not in rows.column_names:
        yield rows
        return
    for day in sorted(set(rows.column(c.TAKEN_ON).to_pylist())):
        yield rows.filter(pc.equal(rows.column(c.TAKEN_ON), pa.scalar(day)))


def _stored_files(found: DeltaTable, wanted: Wanted) -> list[StoredFile]:
    added = pa.table(found.get_add_actions(flatten=True))
    names = ("path", f"partition.{c.TAKEN_ON}", "size_bytes", f"min.{c.TAKEN_AT}", f"max.{c.TAKEN_AT}")
    columns = (added.column(name).to_pylist() if name in added.column_names else repeat(None) for name in names)
    files = (
        StoredFile(path=path, day=day, size=size, first=first, last=last)
        for path, day, size, first, last in zip(*columns, strict=False)
    )
    return [file for file in files if wanted.includes(file)]


def _selected(found: DeltaTable, schema: pa.Schema, wanted: Wanted, where: str = "", once: str = "") -> pa.Table:
    terms = [*_terms(wanted), *([where] if where else [])]
    condition = f" WHERE {' AND '.join(terms)}" if terms else ""
    # A table of before may lack a column that was added since
    there = {each.name for each in found.schema().fields}
    columns = ", ".join(f'"{name}"' for name in schema.names if name in there)
    query = f"SELECT {once}{columns} FROM {_NAME}{condition}"
    read = pa.table(QueryBuilder().register(_NAME, found).execute(query).read_all())
    for each in schema:
        if each.name not in there:
            read = read.append_column(each.name, pa.nulls(len(read), each.type))
    plain = pa.schema([pa.field(each.name, each.type) for each in schema])
    return read.select(schema.names).cast(plain)


def _terms(wanted: Wanted) -> Iterable[str]:
    if wanted.since is not None:
        yield f"{c.TAKEN_ON} >= DATE '{wanted.since.isoformat()}'"
    if wanted.days is not None:
        days = ", ".join(f"DATE '{day.isoformat()}'" for day in wanted.days)
        yield f"{c.TAKEN_ON} IN ({days or 'NULL'})"
    if wanted.spans:
        spans = (f"{c.TAKEN_AT} BETWEEN {_time(first)} AND {_time(last)}" for first, last in wanted.spans)
        yield f"({' OR '.join(spans)})"
    if wanted.snapshots is not None:
        yield f"{c.SNAPSHOT_ID} IN ({', '.join(map(quoted, wanted.snapshots)) or 'NULL'})"


def _time(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.isoformat()}'"


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _read_by_tasks(
    spark: SparkSession, place: str, table: Table, files: Sequence[StoredFile], wanted: Wanted
) -> DataFrame:
    """Where Spark has no way in: pyarrow reads the data files in Spark's tasks, and no jar of a store is needed."""
    shares = shared_out(files, SMALL_BYTES)
    schema = to_arrow_schema(schema_of(table), timezone="UTC")
    work = partial(read_by_task, f"{place.rstrip('/')}/{table.value}", shares, schema, wanted.snapshots)
    return spark.range(0, len(shares), 1, max(len(shares), 1)).mapInArrow(work, nullable(schema_of(table)))


def _read_by_spark(
    spark: SparkSession, path: str, schema: StructType, files: Sequence[StoredFile], wanted: Wanted
) -> DataFrame:
    """The files that delta-rs names, as Parquet: Delta's own reader starts several jobs to find them once more."""
    # By their very names: a folder may be called [a]
    read = spark.read.schema(nullable(schema)).options(basePath=path, __globPaths__=False)
    rows = read.parquet(*(f"{path}/{unquote(file.path)}" for file in files)).select(*schema.names)
    return rows if wanted.snapshots is None else rows.where(F.col(c.SNAPSHOT_ID).isin(list(wanted.snapshots)))


def _of_wanted(rows: DataFrame, wanted: Wanted) -> DataFrame:
    """The day and the moment first, because they choose files."""
    if wanted.since is not None:
        rows = rows.where(F.col(c.TAKEN_ON) >= F.lit(wanted.since))
    if wanted.days is not None:
        rows = rows.where(F.col(c.TAKEN_ON).isin(list(wanted.days)))
    if wanted.spans:
        spans = (F.col(c.TAKEN_AT).between(F.lit(first), F.lit(last)) for first, last in wanted.spans)
        rows = rows.where(reduce(Column.__or__, spans))
    if wanted.snapshots is not None:
        rows = rows.where(F.col(c.SNAPSHOT_ID).isin(list(wanted.snapshots)))
    return rows


def together(frame: DataFrame, rows: int) -> DataFrame:
    """Few rows in one place: then nothing that groups or joins them moves them, or starts another stage."""
    return frame.coalesce(1) if rows <= FEW_ROWS else frame


def _of_columns(schema: StructType, columns: Sequence[str]) -> StructType:
    return StructType([schema[name] for name in columns])


def nullable(schema: StructType) -> StructType:
    """As the tables have always been: what a schema here says of nulls is for whoever makes the rows."""
    return StructType([StructField(each.name, each.dataType, nullable=True) for each in schema.fields])


def _with_comments(table: Table) -> StructType:
    fields = nullable(schema_of(table)).fields
    said = {each.name: {"comment": meaning(table, each.name)} for each in fields}
    return StructType([StructField(each.name, each.dataType, metadata=said[each.name]) for each in fields])


def schema_of(table: Table) -> StructType:
    return BRONZE[table] if table in BRONZE else GOLD[table]

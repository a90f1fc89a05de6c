"""The data files of Delta tables, as Spark's tasks write them: Parquet, beside the table's other files.

A file that was written is not the table's yet. It becomes so by a commit that names it (``Warehouse.commit``); one that
is never named, because its task or its run ended, disturbs nobody and goes with the next vacuum. So a task may write
before anybody knows whether its rows are wanted, and every landed file is opened once.

Whoever writes holds few rows at a time, and few files open: rows come day by day, and a day is a folder of its own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import INDEXED_COLUMNS
from brimline.landing.file_systems import file_system

_ROWS_PER_GROUP = 100_000
"""Held before they are written: some ten megabytes."""
COMPRESSION: Final = "ZSTD"
"""A quarter less than Parquet's usual Snappy for a tenth more work; reading costs the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that a commit can make a table's."""

    table: Table
    path: str
    """Below the table's folder."""
    day: str | None
    """``taken_on`` of all its rows, where a table is parted by it: the rows themselves do not say it."""
    size: int
    rows: int
    stats: str
    """As Delta's log has it."""


DATA_FILE = pa.schema(
    [
        pa.field("table", pa.string()),
        pa.field("path", pa.string()),
        pa.field("day", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("stats", pa.string()),
    ]
)


class DataFiles:
    """What one task writes, to any tables of a warehouse."""

    def __init__(self, place: str, schemas: Mapping[Table, pa.Schema]) -> None:
        """``place``: the warehouse, as pyarrow takes it; ``schemas``: of the rows that come, in the tables' order."""
        self._files, self._root = file_system(place)
        self._schemas = schemas
        self._open: dict[tuple[Table, str | None], _OpenFile] = {}
        self._written: list[DataFile] = []

    def add(self, table: Table, rows: pa.RecordBatch) -> None:
        """Rows of a table that is parted by days are of one day."""
        if not rows.num_rows:
            return
        day = _day(rows) if c.TAKEN_ON in rows.schema.names else None
        key = (table, day)
        if key not in self._open:
            for other in [each for each in self._open if each[1] != day]:
                self._finish(other)
            self._open[key] = _OpenFile(self._files, f"{self._root.rstrip('/')}/{table.value}", day, table)
        self._open[key].add(rows.cast(self._schemas[table]))

    def finished(self) -> list[DataFile]:
        for key in list(self._open):
            self._finish(key)
        return self._written

    def _finish(self, key: tuple[Table, str | None]) -> None:
        self._written.append(self._open.pop(key).finished())


@dataclass(slots=True)
class _OpenFile:
    files: fs.FileSystem
    folder: str
    day: str | None
    table: Table
    rows: int = 0
    _held: list[pa.RecordBatch] = field(default_factory=list)
    _held_rows: int = 0
    _bounds: dict[str, tuple[object, object]] = field(default_factory=dict)
    _nulls: dict[str, int] = field(default_factory=dict)
    _writer: pq.ParquetWriter | None = None
    _path: str = ""

    def add(self, rows: pa.RecordBatch) -> None:
        kept = rows.drop_columns([c.TAKEN_ON]) if self.day is not None else rows
        self._held.append(kept)
        self._held_rows += kept.num_rows
        if self._held_rows >= _ROWS_PER_GROUP:
            self._write()

    def finished(self) -> DataFile:
        self._write()
        assert self._writer is not None, "it was opened for a row"
        self._writer.close()
        size = self.files.get_file_info(f"{self.folder}/{self._path}").size
        return DataFile(
            table=self.table, path=self._path, day=self.day, size=int(size or 0), rows=self.rows, stats=self._stats()
        )

    def _write(self) -> None:
        if not self._held:
            return
        rows = pa.Table.from_batches(self._held)
        if self._writer is None:
            below = "" if self.day is None else f"{c.TAKEN_ON}={self.day}/"
            self._path = f"{below}part-{uuid4()}.parquet"
            self.files.create_dir(f"{self.folder}/{below}".rstrip("/"), recursive=True)
            self._writer = pq.ParquetWriter(
                f"{self.folder}/{self._path}", rows.schema, filesystem=self.files, compression=COMPRESSION
            )
        self._writer.write_table(rows)
        for name in rows.column_names[:INDEXED_COLUMNS]:
            self._bound(name, rows.column(name))
        self.rows += len(rows)
        self._held, self._held_rows = [], 0

    def _bound(self, name: str, column: pa.ChunkedArray) -> None:
        self._nulls[name] = self._nulls.get(name, 0) + column.null_count
        if pa.types.is_nested(column.type) or column.null_count == len(column):
            return
        found = pc.min_max(column).as_py()
        low, high = self._bounds.get(name, (found["min"], found["max"]))
        self._bounds[name] = min(low, found["min"]), max(high, found["max"])

    def _stats(self) -> str:
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: _plain(low) for name, (low, _) in self._bounds.items()},
                "maxValues": {name: _plain(high, is_upper=True) for name, (_, high) in self._bounds.items()},
                "nullCount": self._nulls,
            }
        )


def _plain(value: object, *, is_upper: bool = False) -> object:
    """As Delta writes it, in milliseconds: an upper bound is rounded up."""
    if isinstance(value, datetime):
        rounded = value + timedelta(microseconds=-value.microsecond % 1000) if is_upper else value
        return rounded.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _day(rows: pa.RecordBatch) -> str:
    day = rows.column(rows.schema.get_field_index(c.TAKEN_ON))[0].as_py()
    return str(day.isoformat())


def described(files: Iterable[DataFile]) -> pa.RecordBatch:
    """On their way from a task to the driver."""
    rows = [
        {
            "table": each.table.value,
            "path": each.path,
            "day": each.day,
            "size": each.size,
            "rows": each.rows,
            "stats": each.stats,
        }
        for each in files
    ]
    return pa.RecordBatch.from_pylist(rows, schema=DATA_FILE)


def data_files(rows: Iterable[Mapping[str, object]]) -> list[DataFile]:
    return [DataFile(**{**row, "table": Table(row["table"])}) for row in rows]  # type: ignore[arg-type] # by DATA_FILE


def written_by_task(
    place: str, table: Table, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of one task into a file."""
    files = DataFiles(place, {table: schema})
    for batch in batches:
        files.add(table, batch)
    yield described(files.finished())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file that is a table's."""

    path: str
    day: date | None
    size: int
    first: datetime | None = None
    """``taken_at`` of its rows, from here to there; unknown of a table that has no such column."""
    last: datetime | None = None

    def may_hold(self, first: datetime, last: datetime) -> bool:
        return (self.last is None or self.last >= first) and (self.first is None or self.first <= last)


def shared_out(files: Iterable[StoredFile], most_bytes: int) -> list[list[StoredFile]]:
    """For tasks, each with files of about that many bytes."""
    shares: list[list[StoredFile]] = []
    held = most_bytes
    for file in files:
        if held >= most_bytes:
            shares.append([])
            held = 0
        shares[-1].append(file)
        held += file.size
    return shares


def read_by_task(
    folder: str,
    shares: Sequence[Sequence[StoredFile]],
    schema: pa.Schema,
    snapshots: Sequence[str] | None,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of a task's files. A column that was added to the table since is null."""
    files, root = file_system(folder)
    chosen = None if snapshots is None else ds.field(c.SNAPSHOT_ID).isin(list(snapshots))
    for task in (task for batch in numbers for task in batch.column(0).to_pylist()):
        for file in shares[task]:
            stored = ds.dataset(f"{root}/{unquote(file.path)}", filesystem=files, format="parquet")
            for rows in stored.scanner(filter=chosen).to_batches():
                columns = [_stored(rows, field, file.day) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, names=schema.names)


def _stored(rows: pa.RecordBatch, field: pa.Field, day: date | None) -> pa.Array:
    if field.name in rows.schema.names:
        return rows.column(field.name).cast(field.type)
    value = day if field.name == c.TAKEN_ON else None
    return pa.repeat(pa.scalar(value, field.type), rows.num_rows)


def remove_files(place: str, files: Sequence[DataFile]) -> None:
    """Files that no commit will name; one that stays behind goes with the next vacuum."""
    system, root = file_system(place)
    for each in files:
        try:
            system.delete_file(f"{root.rstrip('/')}/{each.table.value}/{each.path}")
        except OSError:
            continue

"""From a snapshot file to tables, or to the reason why not.

**Invariant.** Whatever the bytes are, a reader here returns what a writer put in or raises ``BadSnapshot``. Checked
before a row is read: Parquet's marks and the footer's seal, the header, that its sections are the file's row groups,
all columns and their types, and that no more is in it than a broker has, and than a broker's rows can be in a file of
that size: one of a thousand bytes may hold millions of equal rows. Checked while reading: the checksum of every page,
the number of rows, the length of texts before they are repeated, and nulls where none may be. What the rows say
together is checked in ``tables``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from brimline.landing.schema import (
    FILE_SCHEMA,
    HEADER_KEY,
    LOGS,
    SECTION_COLUMN,
    SECTIONS,
    SEGMENTS,
    TOPICS,
    VOLUMES,
    BadHeader,
    Header,
    Section,
    UnknownVersion,
    column_in_file,
    is_added,
)
from brimline.landing.seal import BadSnapshot, QuarantineReason, check_pages, check_seal

__all__ = ["BadSnapshot", "QuarantineReason", "Snapshot", "Source", "read_header", "read_section"]

Source: TypeAlias = "str | Path | bytes | pa.Buffer | pa.NativeFile | Snapshot"
"""A local path, the bytes themselves, an open file of pyarrow's, or a snapshot that is open already."""

MOST_ROWS: Mapping[str, int] = {VOLUMES: 10_000, TOPICS: 1_000_000, LOGS: 1_000_000, SEGMENTS: 8_000_000}
"""Many times what the largest broker has: it opens three files for each segment."""
MOST_BYTES = 4 << 30
"""Of all pages, as they are before compression; and of all rows, as they are in memory."""
MOST_FILE_BYTES = 1 << 30
"""As they are in the file: a million segments take ten million."""
_ROOM, _TIMES = 64 << 20, 64
"""Of both, whatever the file's size, and for each of its bytes. Segments take five times their bytes in the file; two
million that are as alike as a clock's ticks would still have room."""

_TEXTS = frozenset(
    column_in_file(name, each.name) for name, schema in SECTIONS.items() for each in schema if each.type == pa.string()
)
_WIDTHS = {
    name: sum(4 if each.type == pa.string() else -(-each.type.bit_width // 8) for each in schema)
    for name, schema in SECTIONS.items()
}
"""Bytes of a row, without its texts."""
_ALL_COLUMNS: Mapping[str, int] = {name: place for place, name in enumerate(FILE_SCHEMA.names)}


class Snapshot:
    """An open snapshot: its header is known to be right. Closes what it opened itself."""

    def __init__(self, source: "str | Path | bytes | pa.Buffer | pa.NativeFile") -> None:
        with _judged(QuarantineReason.UNREADABLE):
            self._file = _opened(source)
        self._is_ours = self._file is not source
        with _judged():
            try:
                self._seal_begins = check_seal(self._file)
                self._most = min(_ROOM + _TIMES * self._file.size(), MOST_BYTES)
                self._held: dict[str, int] = {}
                self._parquet = _parquet(self._file, _ALL_COLUMNS)
                self.header = _header(self._parquet.metadata.metadata or {})
                self._columns = _check_columns(self._parquet.metadata.schema)
                _check_groups(self.header, self._parquet.metadata, self._most)
                for name, section in self.header.sections.items():
                    self.hold(name, section.rows * _WIDTHS[name])
                self._are_pages_checked = False
            except BaseException:
                self.close()
                raise

    def hold(self, what: str, size: int) -> None:
        """Before it is unfolded. Raises ``BadSnapshot`` where all together is more than such a file can stand for."""
        self._held[what] = size
        held = sum(self._held.values())
        if held > self._most:
            raise BadSnapshot(QuarantineReason.TOO_LARGE, f"{held} bytes of rows, with {what}, in a file that small")

    def read(self, section: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A section's columns, or some of them, under their plain names."""
        found = self.columns(section, columns)
        return pa.table(list(found.values()), schema=_asked(section, tuple(found))[0])

    def columns(self, section: str, columns: Sequence[str] | None = None) -> dict[str, pa.Array | pa.ChunkedArray]:
        """The same without a table around them, for those who read thousands of files."""
        schema, names, watched = _asked(section, tuple(SECTIONS[section].names if columns is None else columns))
        place = self.header.sections[section]
        if not place.rows:
            return dict(zip(schema.names, schema.empty_table().columns, strict=True))
        with _judged():
            there = [name for name in names if name in self._columns]
            # Without threads: a fleet's files are read side by side, and one broker's is small.
            read = self._pages().read_row_groups(
                range(place.first_group, place.first_group + place.groups),
                column_indices=[self._columns[name] for name in there],
                use_threads=False,
            )
            if len(read) != place.rows:
                raise BadSnapshot(QuarantineReason.CORRUPT, f"{section} has {len(read)} rows instead of {place.rows}")
            found = read.columns
            if len(there) < len(names):
                by_name = dict(zip(there, found, strict=True))
                found = [
                    by_name[name] if name in by_name else pa.nulls(place.rows, field.type)
                    for name, field in zip(names, schema, strict=True)
                ]
            for each, is_text, is_sure in watched:
                if is_text and names[each] in self._columns:
                    self.hold(names[each], _text_bytes(found[each]))
                    found[each] = _plain(found[each])
                if is_sure and found[each].null_count:
                    raise BadSnapshot(QuarantineReason.INCONSISTENT, f"{section}.{schema.names[each]} has nulls")
            return dict(zip(schema.names, found, strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._is_ours:
            self._file.close()

    def _pages(self) -> pq.ParquetReader:
        """Read once, as a whole: their checksum is one, and what lies far away is not fetched twice."""
        if not self._are_pages_checked:
            size = self._file.size()
            if size > MOST_FILE_BYTES:
                raise BadSnapshot(QuarantineReason.TOO_LARGE, f"a file of {size} bytes")
            content = self._file.read_at(size, 0)
            check_pages(memoryview(content), self._seal_begins)
            # What was opened is read on if it is these very bytes, and of the usual columns.
            if not isinstance(self._file, pa.BufferReader) or self._columns is not _ALL_COLUMNS:
                self._parquet = _parquet(pa.BufferReader(content), self._columns, self._parquet.metadata)
            self._are_pages_checked = True
        return self._parquet


def read_header(source: Source) -> Header:
    with opened(source) as snapshot:
        return snapshot.header


def read_section(source: Source, header: Header, section: str, columns: Sequence[str] | None = None) -> pa.Table:
    """``header`` is the one that was read from ``source``: a file that was replaced meanwhile is not read."""
    with opened(source) as snapshot:
        if snapshot.header != header:
            raise BadSnapshot(QuarantineReason.INCONSISTENT, "the file's header has changed")
        return snapshot.read(section, columns)


@contextmanager
def opened(source: Source) -> Iterator[Snapshot]:
    if isinstance(source, Snapshot):
        yield source
        return
    with Snapshot(source) as snapshot:
        yield snapshot


@contextmanager
def _judged(reason: QuarantineReason = QuarantineReason.CORRUPT) -> Iterator[None]:
    """What pyarrow raises over bytes that are not right, as a reason."""
    try:
        yield
    except BadSnapshot:
        raise
    except (OSError, pa.ArrowException, ValueError, TypeError, OverflowError, MemoryError, KeyError) as error:
        # pyarrow says "corrupt" with an OSError too, but only the operating system gives a number.
        is_of_the_system = isinstance(error, OSError) and error.errno is not None
        raise BadSnapshot(QuarantineReason.UNREADABLE if is_of_the_system else reason, _one_line(error)) from None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__


def _opened(source: "str | Path | bytes | pa.Buffer | pa.NativeFile") -> pa.NativeFile:
    if isinstance(source, (bytes, pa.Buffer)):
        return pa.BufferReader(source)
    if isinstance(source, (str, Path)):
        return pa.OSFile(str(source), "r")
    return source


def _parquet(
    file: pa.NativeFile, columns: Mapping[str, int], metadata: pq.FileMetaData | None = None
) -> pq.ParquetReader:
    """``columns`` by their places, because a file that was not looked into yet may have others."""
    reader = pq.ParquetReader()  # a ParquetFile lists all columns' paths every time: a tenth of opening a small file
    texts = [columns[name] for name in _TEXTS if name in columns]
    reader.open(file, metadata=metadata, page_checksum_verification=True, read_dictionary=texts, pre_buffer=False)
    return reader


@lru_cache(maxsize=64)
def _asked(section: str, columns: tuple[str, ...]) -> tuple[pa.Schema, tuple[str, ...], list[tuple[int, bool, bool]]]:
    """Some columns of a section, their names in a file, and which of them are texts or may not be null."""
    schema = pa.schema([SECTIONS[section].field(name) for name in columns])
    names = tuple(column_in_file(section, name) for name in columns)
    kinds = [(place, name in _TEXTS, not schema.field(place).nullable) for place, name in enumerate(names)]
    return schema, names, [(place, is_text, is_sure) for place, is_text, is_sure in kinds if is_text or is_sure]


def _header(metadata: Mapping[bytes, bytes]) -> Header:
    text = metadata.get(HEADER_KEY)
    if text is None:
        raise BadSnapshot(QuarantineReason.NO_HEADER, "the file is Parquet but not a snapshot")
    try:
        return Header.from_json(text.decode())
    except UnknownVersion as error:
        raise BadSnapshot(QuarantineReason.FUTURE_VERSION, str(error)) from None
    except (BadHeader, UnicodeDecodeError) as error:
        raise BadSnapshot(QuarantineReason.NO_HEADER, str(error)) from None


def _check_columns(columns: pq.ParquetSchema) -> Mapping[str, int]:
    """The names that are there, and their places."""
    schema = columns.to_arrow_schema()
    if schema.equals(FILE_SCHEMA):
        return _ALL_COLUMNS
    found = {field.name: field.type for field in schema}
    wanted = {SECTION_COLUMN: pa.string()}
    for name, section in SECTIONS.items():
        for field in section:
            column = column_in_file(name, field.name)
            if column in found or not is_added(field):
                wanted[column] = field.type
    if missing := sorted(set(wanted) - set(found)):
        raise BadSnapshot(QuarantineReason.WRONG_COLUMNS, f"has no column {', '.join(missing)}")
    if len(found) != len(schema):
        raise BadSnapshot(QuarantineReason.WRONG_COLUMNS, "has two columns of one name")
    wrong = [f"{name} is {found[name]}, not {kind}" for name, kind in wanted.items() if found[name] != kind]
    if wrong:
        raise BadSnapshot(QuarantineReason.WRONG_TYPES, "; ".join(wrong))
    return {columns.column(place).path: place for place in range(len(columns))}


def _check_groups(header: Header, metadata: pq.FileMetaData, most: int) -> None:
    if set(header.sections) != set(SECTIONS):
        raise BadSnapshot(QuarantineReason.INCONSISTENT, f"has the sections {sorted(header.sections)}")
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    if size > most:
        raise BadSnapshot(QuarantineReason.TOO_LARGE, f"{size} bytes before compression")
    expected = 0
    for name, section in sorted(header.sections.items(), key=lambda each: (each[1].first_group, each[1].groups)):
        rows = sum(group.num_rows for group in groups[section.first_group : section.first_group + section.groups])
        if rows > MOST_ROWS[name]:
            raise BadSnapshot(QuarantineReason.TOO_LARGE, f"{name} has {rows} rows")
        if section.first_group != expected or rows != section.rows or rows < 0:
            raise BadSnapshot(
                QuarantineReason.INCONSISTENT, f"the row groups of {name} are not those that the header says"
            )
        _check_section_column(name, section, groups)
        expected += section.groups
    if expected != len(groups):
        raise BadSnapshot(QuarantineReason.INCONSISTENT, "has row groups outside of any section")


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Texts come as numbers and what they stand for: one long text may stand in every row."""
    # Even if every row were all texts together it is little, nearly always
    if column.nbytes * len(column) <= _ROOM // 64:
        return 0
    return sum(pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0 for chunk in column.chunks)


def _plain(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    plain = [chunk.dictionary_decode() for chunk in column.chunks]
    return plain[0] if len(plain) == 1 else pa.chunked_array(plain, column.type.value_type)


def _check_section_column(name: str, section: Section, groups: Sequence[pq.RowGroupMetaData]) -> None:
    for group in groups[section.first_group : section.first_group + section.groups]:
        column = group.column(0)
        bounds = column.statistics
        if column.path_in_schema != SECTION_COLUMN or bounds is None or not bounds.has_min_max:
            raise BadSnapshot(QuarantineReason.INCONSISTENT, f"a row group of {name} does not say whose it is")
        if (bounds.min, bounds.max) != (name, name):
            raise BadSnapshot(QuarantineReason.INCONSISTENT, f"a row group of {name} says that it is another's")

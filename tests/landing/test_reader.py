"""Whatever the bytes are, a reader gives what was written or says ``BadSnapshot``."""

import io
import json
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimline.landing import reader, seal
from brimline.landing.reader import (
    MOST_ROWS,
    BadSnapshot,
    QuarantineReason,
    Snapshot,
    Source,
    read_header,
    read_section,
)
from brimline.landing.schema import FILE_SCHEMA, HEADER_KEY, LOGS, SECTIONS, SEGMENTS, VOLUMES
from brimline.landing.seal import sealed
from brimline.landing.tables import reclaim_tables
from brimline.landing.writer import encode
from tests.landing.snapshots import HEADER, encoded, sections_as_tables, some_tables

WHOLE = encoded(some_tables())
SECTION_TABLES = sections_as_tables()


def reason_of(source: Source) -> QuarantineReason:
    with pytest.raises(BadSnapshot) as refused:
        reclaim_tables(source)
    assert refused.value.detail
    assert "\n" not in refused.value.detail
    return refused.value.reason


def test_sections_come_back() -> None:
    header = read_header(WHOLE)

    assert replace(header, sections={}) == HEADER
    for name, table in SECTION_TABLES.items():
        assert read_section(WHOLE, header, name).equals(table)
        assert header.sections[name].rows == len(table)


def test_some_columns_in_the_order_that_was_asked_for() -> None:
    read = read_section(WHOLE, read_header(WHOLE), SEGMENTS, ["log_bytes", "log"])

    assert read.equals(SECTION_TABLES[SEGMENTS].select(["log_bytes", "log"]))


def test_an_empty_section_is_an_empty_table() -> None:
    empty = encode(HEADER, {})
    header = read_header(empty)

    assert all(read_section(empty, header, name).equals(schema.empty_table()) for name, schema in SECTIONS.items())


def test_a_path_and_an_open_file_are_sources_too(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.parquet"
    path.write_bytes(WHOLE)
    with pa.OSFile(str(path)) as file:
        assert read_header(file) == read_header(path) == read_header(str(path)) == read_header(WHOLE)
        assert not file.closed  # it is the caller's


def test_rows_of_other_sections_can_be_skipped_by_statistics() -> None:
    """What other readers of Parquet, such as Spark, rely on."""
    read = pq.read_table(io.BytesIO(WHOLE), columns=["logs_partition"], filters=[("section", "=", LOGS)])

    assert read.column(0).to_pylist() == SECTION_TABLES[LOGS].column("partition").to_pylist()


def test_a_section_of_several_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brimline.landing.writer.GROUP_ROWS", 3)
    small_groups = encode(HEADER, SECTION_TABLES)
    header = read_header(small_groups)

    assert header.sections[SEGMENTS].groups == -(-len(SECTION_TABLES[SEGMENTS]) // 3) > 1
    assert read_section(small_groups, header, SEGMENTS).equals(SECTION_TABLES[SEGMENTS])


# Wrong bytes ---------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_bytes_that_are_no_parquet(data: bytes) -> None:
    assert reason_of(data) in (QuarantineReason.NOT_PARQUET, QuarantineReason.TRUNCATED)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_is_cut_off(length: int) -> None:
    cut = QuarantineReason.TRUNCATED if length >= 4 else QuarantineReason.NOT_PARQUET

    assert reason_of(WHOLE[:length]) is cut


@given(st.integers(0, len(WHOLE) * 8 - 1))
@settings(max_examples=300)
def test_a_flipped_bit_is_noticed_or_changes_nothing(bit: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[bit // 8] ^= 1 << bit % 8
    try:
        with Snapshot(bytes(damaged)) as snapshot:
            header = snapshot.header
            tables = {name: snapshot.read(name) for name in SECTIONS}
    except BadSnapshot:
        return
    assert header == read_header(WHOLE)
    assert all(tables[name].equals(table) for name, table in SECTION_TABLES.items())


def test_a_zero_anywhere_is_noticed_or_changes_nothing() -> None:
    """It may end a page's header before its checksum, which is then not checked."""
    for place in range(4, 1200):
        damaged = WHOLE[:place] + b"\0" + WHOLE[place + 1 :]
        try:
            with Snapshot(damaged) as snapshot:
                tables = {name: snapshot.read(name) for name in SECTIONS}
        except BadSnapshot:
            continue
        assert all(tables[name].equals(table) for name, table in SECTION_TABLES.items()), place


@given(st.data())
def test_a_stretch_of_garbage_is_noticed_or_changes_nothing(data: st.DataObject) -> None:
    start = data.draw(st.integers(4, len(WHOLE) - 9))
    garbage = data.draw(st.binary(min_size=1, max_size=64))
    damaged = WHOLE[:start] + garbage + WHOLE[start + len(garbage) :]
    try:
        with Snapshot(damaged) as snapshot:
            tables = {name: snapshot.read(name) for name in SECTIONS}
    except BadSnapshot:
        return
    assert all(tables[name].equals(table) for name, table in SECTION_TABLES.items())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert reason_of(tmp_path / "absent.parquet") is QuarantineReason.UNREADABLE
    assert reason_of(tmp_path) is QuarantineReason.UNREADABLE


def test_a_file_that_was_replaced_between_two_reads() -> None:
    other = encode(replace(HEADER, snapshot_id="ff"), SECTION_TABLES)

    with pytest.raises(BadSnapshot, match="header has changed"):
        read_section(other, read_header(WHOLE), LOGS)


# Foreign Parquet -----------------------------------------------------------------------------------------------------


def parquet(table: pa.Table, header: str | None = None, **options: Any) -> bytes:
    """Whatever is in it, its footer is sealed."""
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({} if header is None else {HEADER_KEY: header}), sink, **options)
    return sealed(sink.getvalue())


def flat(rows: Mapping[str, list[object]] | None = None) -> pa.Table:
    """One row of ``volumes`` in the schema of a file."""
    row = {"section": "volumes", "volumes_log_dir": "/a", "volumes_device": "8:1", "volumes_is_offline": False}
    table = pa.Table.from_pylist([row], schema=FILE_SCHEMA)
    for name, values in (rows or {}).items():
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table


def header_for(rows: int = 1, **sections: tuple[int, int, int]) -> str:
    document = json.loads(HEADER.to_json())
    places = dict.fromkeys(SECTIONS, (1, 0, 0)) | {VOLUMES: (0, 1, rows)} | sections
    document["sections"] = {
        name: dict(zip(("first_group", "groups", "rows"), place, strict=True)) for name, place in places.items()
    }
    return json.dumps(document)


def test_a_file_written_by_others_to_the_letter_is_read() -> None:
    assert len(reclaim_tables(parquet(flat(), header_for())).devices) == 1


def volumes(count: int, text: str = "/a") -> bytes:
    """So many equal rows, which take hardly a byte each, here and in the file."""
    row = {"section": "volumes", "volumes_log_dir": text, "volumes_device": "8:1", "volumes_is_offline": False}
    one = pa.Table.from_pylist([row], schema=FILE_SCHEMA)
    zeros = pa.array([0] * count, pa.int32())
    columns = [
        pa.DictionaryArray.from_arrays(zeros, column.combine_chunks())
        if column.type == pa.string() and not column.null_count
        else pa.repeat(column[0], count)
        for column in one.columns
    ]
    table, sink = pa.table(columns, FILE_SCHEMA.names), io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({HEADER_KEY: header_for(count).encode()})
    return sealed(sink.getvalue())


def test_a_small_file_with_more_rows_than_a_broker_has_is_not_read() -> None:
    bomb = volumes(MOST_ROWS[VOLUMES] + 1)

    assert len(bomb) < 100_000
    assert reason_of(bomb) is QuarantineReason.TOO_LARGE


def test_a_long_text_in_every_row_is_not_repeated() -> None:
    """A file of some thousand bytes, and gigabytes of text."""
    bomb = volumes(MOST_ROWS[VOLUMES], "x" * 1_000_000)
    before = pa.default_memory_pool().max_memory()

    assert len(bomb) < 100_000
    assert reason_of(bomb) is QuarantineReason.TOO_LARGE
    assert pa.default_memory_pool().max_memory() - before < 100_000_000


def logs(count: int) -> bytes:
    """So many equal logs, which take a sixth of a byte each in a file that our own writer has made."""
    nothing = {pa.string(): "x", pa.bool_(): False}
    columns = [pa.repeat(pa.scalar(nothing.get(each.type, 0), each.type), count) for each in SECTIONS[LOGS]]
    return encode(HEADER, {LOGS: pa.table(columns, schema=SECTIONS[LOGS])})


def test_more_logs_than_a_broker_has_are_not_read() -> None:
    assert MOST_ROWS[LOGS] < 2_000_000
    assert MOST_ROWS[SEGMENTS] < 10_000_000


def test_rows_that_a_file_so_small_cannot_have_are_not_read() -> None:
    """Of a broker, that is: all of these are one row."""
    bomb = logs(600_000)
    before = pa.default_memory_pool().max_memory()

    assert len(bomb) < 200_000
    assert MOST_ROWS[LOGS] > 600_000
    assert reason_of(bomb) is QuarantineReason.TOO_LARGE
    assert pa.default_memory_pool().max_memory() - before < 10_000_000
    with Snapshot(logs(300_000)) as snapshot:
        assert snapshot.header.sections[LOGS].rows == 300_000


def test_texts_of_several_columns_are_counted_together() -> None:
    text = "x" * (reader._ROOM // 15_000)
    row = {"log_dir": text, "device": text, "is_offline": False}
    table = pa.Table.from_pylist([row], schema=pa.schema([SECTIONS[VOLUMES].field(name) for name in row]))
    whole = encode(HEADER, {VOLUMES: pa.concat_tables([table] * 9_000)})

    with Snapshot(whole) as snapshot:
        assert len(snapshot.read(VOLUMES, ["log_dir"])) == len(snapshot.read(VOLUMES, ["log_dir"])) == 9_000
        with pytest.raises(BadSnapshot, match="too-large"):
            snapshot.read(VOLUMES, ["device"])


def test_more_bytes_than_a_broker_has_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_BYTES", 1000)

    assert reason_of(volumes(10)) is QuarantineReason.TOO_LARGE


def test_a_large_footer_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "_LARGEST_FOOTER", 100)

    assert reason_of(WHOLE) is QuarantineReason.TOO_LARGE


def test_columns_that_a_later_writer_added_are_ignored() -> None:
    table = flat().append_column("volumes_colour", pa.array(["blue"]))

    assert len(reclaim_tables(parquet(table, header_for())).devices) == 1


def test_columns_that_stand_elsewhere_in_the_file_are_found() -> None:
    """A column of two parts has two places in a file, and moves all that follow."""
    parts = pa.array([{"a": 1, "b": "x"}])
    table = flat().add_column(1, "volumes_parts", parts).append_column("volumes_colour", pa.array(["blue"]))

    with Snapshot(parquet(table, header_for())) as snapshot:
        read = snapshot.read(VOLUMES, ["is_offline", "device", "log_dir"])

    assert read.to_pylist() == [{"is_offline": False, "device": "8:1", "log_dir": "/a"}]


def test_parquet_without_a_header() -> None:
    assert reason_of(parquet(pa.table({"a": [1]}))) is QuarantineReason.NO_HEADER
    assert reason_of(parquet(flat(), "[]")) is QuarantineReason.NO_HEADER


def test_parquet_without_a_seal_is_not_looked_into() -> None:
    sink = io.BytesIO()
    pq.write_table(flat().replace_schema_metadata({HEADER_KEY: header_for()}), sink)

    assert reason_of(sink.getvalue()) is QuarantineReason.NO_HEADER


def test_a_damaged_footer_is_not_looked_into() -> None:
    """Some would end the process: a column chunk of another type than its column."""
    footer = int.from_bytes(WHOLE[-8:-4], "little")
    for place in range(len(WHOLE) - 8 - footer, len(WHOLE) - 8, 97):
        damaged = bytearray(WHOLE)
        damaged[place] ^= 0xFF
        assert reason_of(bytes(damaged)) is QuarantineReason.CORRUPT


@pytest.mark.parametrize("read", ["duckdb", "polars"])
def test_other_readers_do_not_mind_the_seal(read: str, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.parquet"
    path.write_bytes(WHOLE)
    query = "SELECT segments_base_offset FROM '{}' WHERE section = 'segments'"
    if read == "duckdb":
        found = [row[0] for row in duckdb.connect().execute(query.format(path)).fetchall()]
    else:
        frame = pl.read_parquet(path).filter(pl.col("section") == "segments")
        found = frame["segments_base_offset"].to_list()

    assert found == SECTION_TABLES[SEGMENTS].column("base_offset").to_pylist()


def test_a_later_version_is_not_read_whatever_its_columns_are() -> None:
    later = json.dumps(json.loads(header_for()) | {"version": 2})

    assert reason_of(parquet(pa.table({"a": [1]}), later)) is QuarantineReason.FUTURE_VERSION


@pytest.mark.parametrize("column", ["section", "volumes_log_dir", "segments_base_offset"])
def test_a_missing_column(column: str) -> None:
    assert reason_of(parquet(flat().drop_columns([column]), header_for())) is QuarantineReason.WRONG_COLUMNS


@pytest.mark.parametrize("column", FILE_SCHEMA.names)
def test_a_column_of_another_type(column: str) -> None:
    kind = pa.date32()
    table = flat()
    place = table.schema.get_field_index(column)
    wrong = table.set_column(place, pa.field(column, kind), pa.nulls(1, kind))

    assert reason_of(parquet(wrong, header_for())) is QuarantineReason.WRONG_TYPES


@pytest.mark.parametrize(
    "header",
    [
        header_for(rows=2),
        header_for(logs=(1, 1, 1)),
        header_for(volumes=(0, 0, 0)),
        header_for(volumes=(1, 1, 1)),
        header_for(volumes=(0, 1, 0), logs=(0, 1, 1)),
        header_for(volumes=(0, 0, 0), logs=(0, 1, 1)),
        header_for(segments=(5, 0, 0)),
        header_for(colours=(1, 0, 0)),
    ],
)
def test_row_groups_that_are_not_those_of_the_header(header: str) -> None:
    assert reason_of(parquet(flat(), header)) is QuarantineReason.INCONSISTENT


def test_a_row_group_that_does_not_say_whose_it_is() -> None:
    assert reason_of(parquet(flat(), header_for(), write_statistics=False)) is QuarantineReason.INCONSISTENT


def test_a_null_where_none_may_be() -> None:
    table = flat({"volumes_device": pa.nulls(1, pa.string())})

    assert reason_of(parquet(table, header_for())) is QuarantineReason.INCONSISTENT


def test_a_reason_crosses_a_process_border() -> None:
    bad = pickle.loads(pickle.dumps(BadSnapshot(QuarantineReason.CORRUPT, "a bit flipped")))

    assert (bad.reason, bad.detail, str(bad)) == (QuarantineReason.CORRUPT, "a bit flipped", "corrupt: a bit flipped")


# Writing -------------------------------------------------------------------------------------------------------------


def test_a_writer_refuses_what_it_could_not_read_again() -> None:
    nulls = pa.Table.from_pylist([{"log_dir": None, "device": "8:1", "is_offline": False}])
    for tables, words in (
        ({"colours": pa.table({})}, "no section colours"),
        ({VOLUMES: pa.table({"colour": ["blue"]})}, "no column colour"),
        ({VOLUMES: nulls}, "log_dir"),
        ({VOLUMES: pa.table({"log_dir": ["/a"]})}, "nulls"),
    ):
        with pytest.raises(ValueError, match=words):
            encode(HEADER, tables)


@given(st.integers(0, 2**32))
@settings(max_examples=10)
def test_every_snapshot_is_readable_by_any_parquet_reader(seed: int) -> None:
    tables = sections_as_tables(seed)
    whole = pq.read_table(io.BytesIO(encode(HEADER, tables)))

    assert whole.schema.names == FILE_SCHEMA.names
    assert len(whole) == sum(map(len, tables.values()))

"""The file by which the guard hands its columns to the writer."""

import io

import numpy as np
import pytest
from hypothesis import given

from brimline.landing.sections import read_columns, write_columns
from brimline.landing.writer import tables_of
from brimline.model.reclaim import ReclaimTables
from tests.decide.reclaim.worlds import worlds
from tests.landing.snapshots import sections, some_tables, with_devices_apart


@given(worlds.map(with_devices_apart))
def test_what_is_handed_over_arrives(tables: ReclaimTables) -> None:
    given_sections = sections(tables)
    file = io.BytesIO()
    write_columns(file, {"uri": "/somewhere", "seconds": 3}, given_sections)
    file.seek(0)

    instructions, read = read_columns(file)

    assert instructions == {"uri": "/somewhere", "seconds": 3}
    assert file.read() == b""
    expected = tables_of(given_sections)
    assert all(table.equals(expected[name]) for name, table in tables_of(read).items())
    assert set(read) == set(expected)


def test_a_file_that_is_cut_off_is_refused() -> None:
    file = io.BytesIO()
    write_columns(file, {}, sections(some_tables()))
    whole = file.getvalue()

    for length in range(0, len(whole), 101):
        with pytest.raises((ValueError, EOFError)):
            read_columns(io.BytesIO(whole[:length]))


def test_objects_are_not_handed_over() -> None:
    with pytest.raises(ValueError, match="pickle"):
        write_columns(io.BytesIO(), {}, {"logs": {"volume": np.array([object()])}})

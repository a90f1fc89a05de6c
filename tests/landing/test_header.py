"""The header in the file's metadata, and the file's name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.landing.delivery import Spool
from brimline.landing.header import NAME, BadHeader, Header, Section, Source, UnknownVersion
from tests.landing.snapshots import HEADER

numbers = st.integers(0, 2**40)
sections = st.builds(Section, first_group=numbers, groups=numbers, rows=numbers)
headers = st.builds(
    Header,
    snapshot_id=st.text("0123456789abcdef", min_size=1, max_size=64),
    cluster_id=st.text(min_size=1, max_size=10),
    broker_id=st.integers(0, 2**31 - 1),
    source=st.sampled_from(Source),
    taken_at_ms=st.integers(0, 10**13 - 1),
    made_by=st.text(max_size=20),
    sections=st.dictionaries(st.sampled_from(["volumes", "logs"]), sections),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(headers)
def test_a_header_comes_back_from_its_json(header: Header) -> None:
    assert Header.from_json(header.to_json()) == header


@given(headers)
def test_every_header_names_a_file_that_is_found_again(header: Header) -> None:
    assert NAME.fullmatch(header.name)
    assert ".." not in header.name.split("/")


@pytest.mark.parametrize("cluster_id", ["", "\ud800", "a\udfff", "é" * 200, "/" * 43, "a" * 129, "." * 43])
def test_a_cluster_id_that_can_name_no_folder_is_refused_written_and_read(cluster_id: str) -> None:
    with pytest.raises(BadHeader, match="cluster id"):
        replace(HEADER, cluster_id=cluster_id)
    with pytest.raises(BadHeader, match="cluster"):
        Header.from_json(json.dumps(json.loads(HEADER.to_json()) | {"cluster_id": cluster_id}))


def test_the_longest_cluster_id_waits_under_a_name_that_a_file_can_have(tmp_path: Path) -> None:
    longest = replace(HEADER, cluster_id="a" * 128, broker_id=2**31 - 1, snapshot_id=uuid4().hex)
    spool = Spool(tmp_path, 1000)

    spool.add(longest.name, b"data")

    assert [each.name for each in spool.waiting()] == [longest.name]


def test_half_a_letter_is_no_text() -> None:
    with pytest.raises(BadHeader, match="made_by"):
        Header.from_json(json.dumps(json.loads(HEADER.to_json()) | {"made_by": "\ud800"}))


def test_names_are_in_the_order_of_time() -> None:
    times = [0, 999, 1_700_000_000_000, 10**13 - 1]
    names = [replace(HEADER, taken_at_ms=time).name for time in times]

    assert names == sorted(names)
    assert names[2] == "snapshots/MkU3OEVBNTcwNTJENDM2Qk/7/2023-11-14/1700000000000-0123456789abcdef.parquet"


def test_a_name_of_before_there_were_folders_of_days_is_still_one() -> None:
    assert NAME.fullmatch("snapshots/MkU3OEVBNTcwNTJENDM2Qk/7/1700000000000-0123456789abcdef.parquet")


@given(st.text(max_size=50) | anything.map(json.dumps))
def test_anything_else_is_a_bad_header(text: str) -> None:
    with pytest.raises(BadHeader):
        Header.from_json(text)


@given(st.sampled_from(sorted(json.loads(HEADER.to_json()))), anything)
def test_a_wrong_value_is_refused_or_is_a_right_one(key: str, value: Any) -> None:
    document = json.loads(HEADER.to_json()) | {key: value}
    try:
        header = Header.from_json(json.dumps(document))
    except BadHeader:
        return
    assert json.loads(header.to_json())[key] == value


def test_a_later_version_is_told_apart() -> None:
    document = json.loads(HEADER.to_json()) | {"version": 2}

    with pytest.raises(UnknownVersion, match="version 2"):
        Header.from_json(json.dumps(document))

"""kafka-python is the oracle for Kafka's own layouts; KIP-1187's has an encoder of the tests' own."""

from collections.abc import Sequence
from dataclasses import replace
from struct import pack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import Reason
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED
from brimline.wire import describe_log_dirs as wire
from brimline.wire.describe_log_dirs import decode_layout
from brimline.wire.describe_log_dirs_answer import (
    LARGEST,
    read_payload,
    with_remote_sizes,
    with_volume,
    without_additions,
    write_payload,
)
from brimline.wire.describe_log_dirs_request import KIP_1187, MAX_VERSION, MIN_VERSION, Layout
from brimline.wire.primitives import Reader, WireError
from tests.wire.log_dirs_answers import Dir, LayoutWriter, Row, dirs, encoded, tag_section

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)
UNKNOWN_TAGS = tag_section((0, b"zero"), (9, b""))
some_dirs = st.lists(dirs, min_size=1, max_size=3, unique_by=lambda log_dir: log_dir.path)
sizes = st.just(-1) | st.integers(0, LARGEST)


def payload(log_dirs: Sequence[Dir], version: int, error_code: int = 0) -> bytes:
    return pack(">i", 7) + (b"\0" if version >= 2 else b"") + encoded(log_dirs, version, error_code)


def as_told_by(log_dirs: Sequence[Dir], version: int) -> list[Dir]:
    """What is left of the facts when a broker of this version tells them."""
    known = [log_dir if version >= 5 else replace(log_dir, cordoned=False) for log_dir in log_dirs]
    return known if version >= 4 else [replace(log_dir, total=-1, usable=-1) for log_dir in known]


@given(log_dirs=some_dirs, data=st.data())
def test_an_answer_becomes_a_newer_one_of_kafkas_own(log_dirs: list[Dir], data: st.DataObject) -> None:
    asked = data.draw(st.integers(2, MAX_VERSION))
    spoken = data.draw(st.integers(MIN_VERSION, asked))
    error_code = data.draw(st.sampled_from([0, 31])) if spoken >= 3 else 0

    answer = without_additions(payload(log_dirs, spoken, error_code), spoken, Layout(asked))

    assert answer == payload(as_told_by(log_dirs, spoken), asked, error_code)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refusal_stays_one(version: int) -> None:
    """Versions before 3 have no word for it, and answer without log dirs."""
    refusal = payload([], version, CLUSTER_AUTHORIZATION_FAILED)

    assert without_additions(refusal, version, KIP_1187) == LayoutWriter(5, remote=True).payload(
        [], error_code=CLUSTER_AUTHORIZATION_FAILED
    )


@given(version=st.sampled_from(VERSIONS), log_dirs=some_dirs)
def test_without_additions_remote_sizes_are_unknown(version: int, log_dirs: list[Dir]) -> None:
    answer = without_additions(payload(log_dirs, version), version, KIP_1187)

    assert answer == LayoutWriter(5, remote=True).payload(as_told_by(log_dirs, version))


@given(version=st.sampled_from(VERSIONS), log_dirs=some_dirs, data=st.data())
def test_added_numbers_stand_where_kip_1187_has_them(version: int, log_dirs: list[Dir], data: st.DataObject) -> None:
    added = [
        replace(
            log_dir,
            total=data.draw(sizes),
            usable=data.draw(sizes),
            rows=[
                replace(row, size=row.size // 2, remote_size=data.draw(sizes), only_local_size=data.draw(sizes))
                for row in by_topic(log_dir.rows)
            ],
        )
        for log_dir in log_dirs
    ]
    header, answer = read_payload(payload(log_dirs, version), Layout(version))

    answer = replace(
        answer,
        log_dirs=tuple(
            with_remote_sizes(
                with_volume(log_dir, new.total, new.usable),
                np.array([row.size for row in new.rows], dtype=np.int64),
                np.array([row.remote_size for row in new.rows], dtype=np.int64),
                np.array([row.only_local_size for row in new.rows], dtype=np.int64),
            )
            for log_dir, new in zip(answer.log_dirs, added, strict=True)
        ),
    )

    assert write_payload(header, answer, KIP_1187) == LayoutWriter(5, remote=True).payload(added)


def by_topic(rows: Sequence[Row]) -> list[Row]:
    """In the order of the wire, where the partitions of a topic stand together."""
    topics = list(dict.fromkeys(row.topic for row in rows))
    return sorted(rows, key=lambda row: topics.index(row.topic))


@given(log_dirs=some_dirs)
def test_a_kip_1187_answer_is_read_with_all_its_numbers(log_dirs: list[Dir]) -> None:
    known = [
        replace(log_dir, rows=[replace(row, remote_size=row.size, only_local_size=-1) for row in log_dir.rows])
        for log_dir in log_dirs
    ]
    body = LayoutWriter(5, remote=True).payload(known)[5:]

    decoded = decode_layout(body, KIP_1187)

    assert decoded.explanation is None
    for log_dir, told in zip(decoded.log_dirs, known, strict=True):
        infos = log_dir.replica_infos
        assert {(tp.topic, tp.partition, info.remote_size) for tp, info in infos.items()} == {
            (row.topic, row.partition, row.size) for row in told.rows
        }
        assert {info.only_local_size_reason for info in infos.values()} <= {Reason.NO_ANSWER}
        assert log_dir.is_cordoned is None


TWO_DIRS = [
    Dir("/a", 0, [Row("t", 0, 5, 0, is_future=False), Row("t", 1, 6, -1, is_future=True)], 90, 30, cordoned=True),
    Dir("/b", 56, [], -1, -1, cordoned=False),
]


@pytest.mark.parametrize("spoken", [2, 3, 4, 5])
@pytest.mark.parametrize("asked", [Layout(4), Layout(5), KIP_1187])
def test_tagged_fields_that_nobody_knows_are_kept_in_every_place(spoken: int, asked: Layout) -> None:
    told = LayoutWriter(spoken, tags=UNKNOWN_TAGS).payload(TWO_DIRS)

    answer = without_additions(told, spoken, asked)

    wanted = LayoutWriter(asked.version, remote=asked.has_remote_sizes, tags=UNKNOWN_TAGS)
    assert answer == wanted.payload(as_told_by(TWO_DIRS, spoken))


def test_more_bytes_than_a_long_holds_are_the_largest_long() -> None:
    _, answer = read_payload(payload(TWO_DIRS, 3), Layout(3))

    log_dir = with_volume(answer.log_dirs[0], 2**64, 2**63)

    assert (log_dir.total_bytes, log_dir.usable_bytes) == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_shortened_answer_is_refused_and_so_is_a_longer_one(version: int) -> None:
    whole = payload(TWO_DIRS, version)

    for length in range(len(whole)):
        with pytest.raises(WireError):
            without_additions(whole[:length], version, KIP_1187)
    with pytest.raises(WireError):
        without_additions(whole + b"\0", version, KIP_1187)


@given(
    spoken=st.sampled_from(VERSIONS),
    asked=st.sampled_from([Layout(5), KIP_1187]),
    position=st.integers(0, 10_000),
    byte=st.integers(0, 255),
)
def test_a_damaged_answer_is_written_again_the_same_way_or_refused(
    spoken: int, asked: Layout, position: int, byte: int
) -> None:
    damaged = bytearray(payload(TWO_DIRS, spoken))
    damaged[position % len(damaged)] = byte

    assert rewritten(damaged, spoken, asked) == rewritten(damaged, spoken, asked, carefully=True)


def rewritten(message: bytearray, spoken: int, asked: Layout, *, carefully: bool = False) -> bytes | None:
    """``None`` when it is refused. Any other error is a bug and shows as one."""
    quick = wire._read_topics_quickly
    if carefully:
        wire._read_topics_quickly = _never
    try:
        return without_additions(message, spoken, asked)
    except WireError:
        return None
    finally:
        wire._read_topics_quickly = quick


def _never(reader: Reader, layout: Layout, body: bytes, text: str) -> wire.AnsweredTopics:
    raise wire._NotPlain

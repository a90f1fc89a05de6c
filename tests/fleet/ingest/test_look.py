"""Which files a look finds, and which folders it need not open."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyarrow import fs

from brimline.fleet.ingest.look import LandedFile, has_landed, look_for_new, look_through
from brimline.fleet.session.errors import LandingFailed
from tests.waiting import PATIENCE_SECONDS

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def put(place: Path, name: str) -> str:
    path = place / "snapshots" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return str(path)


def named(ago: timedelta, folder: str = "c/1", *, has_day: bool = True) -> str:
    moment = NOW - ago
    day = f"{moment.date().isoformat()}/" if has_day else ""
    return f"{folder}/{day}{int(moment.timestamp() * 1000):013d}-ab.parquet"


def paths(found: list[LandedFile]) -> list[str]:
    return [each.path for each in found]


def mark(ago: timedelta) -> int:
    return int((NOW - ago).timestamp() * 1000)


def test_looked_through_everything_is_found_by_day_and_name(tmp_path: Path) -> None:
    late, early = put(tmp_path, named(timedelta(0))), put(tmp_path, named(timedelta(days=9), "d/2"))
    odd = put(tmp_path, "c/1/copy.parquet")
    for hidden in ("c/1/.x.parquet.unfinished", "c/1/_x.parquet", "c/.hidden/x.parquet", "c/1/x.txt"):
        put(tmp_path, hidden)

    found = look_through(str(tmp_path))

    assert paths(found) == [odd, early, late]
    assert [each.folder for each in found] == ["snapshots/c/1", "snapshots/d/2", "snapshots/c/1"]


def test_behind_its_mark_only_the_last_hour_of_a_broker_is_looked_at(tmp_path: Path) -> None:
    for ago in (timedelta(days=2), timedelta(days=1), timedelta(hours=3)):
        put(tmp_path, named(ago))
    recent, new = put(tmp_path, named(timedelta(minutes=30))), put(tmp_path, named(timedelta(0)))
    unmarked = put(tmp_path, named(timedelta(days=2), "c/2"))
    odd = put(tmp_path, "c/1/copy.parquet")

    found = look_for_new(str(tmp_path), {"snapshots/c/1": mark(timedelta(minutes=10))})

    assert paths(found) == [odd, unmarked, recent, new]


def test_a_cluster_whose_id_begins_with_a_line_is_found(tmp_path: Path) -> None:
    """As those of one Kafka cluster in 64 do: they are random, in URL-safe base64."""
    file = put(tmp_path, named(timedelta(0), "_9cIzcCCTkCHCNrtAOIxyQ/1"))
    put(tmp_path, "_x.parquet")
    put(tmp_path, "_9cIzcCCTkCHCNrtAOIxyQ/1/_x.parquet")

    assert paths(look_through(str(tmp_path))) == paths(look_for_new(str(tmp_path), {})) == [file]


def test_without_folders_of_days_names_alone_tell(tmp_path: Path) -> None:
    put(tmp_path, named(timedelta(days=2), has_day=False))
    new = put(tmp_path, named(timedelta(0), has_day=False))

    assert paths(look_for_new(str(tmp_path), {"snapshots/c/1": mark(timedelta(hours=1))})) == [new]


def test_folders_of_earlier_days_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in range(30):
        put(tmp_path, named(timedelta(days=days)))
    listed = []

    class Listing:
        def get_file_info(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
            listed.append(selector.base_dir.removeprefix(str(tmp_path)))
            return list(fs.LocalFileSystem().get_file_info(selector))

    monkeypatch.setattr("brimline.fleet.ingest.look.file_system", lambda place: (Listing(), place))
    look_for_new(str(tmp_path), {"snapshots/c/1": mark(timedelta(0))})

    assert listed == ["/snapshots", "/snapshots/c", "/snapshots/c/1", "/snapshots/c/1/2026-01-31"]


def test_folders_of_brokers_are_listed_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits here for the other: one after the other they would wait in vain."""
    files = sorted(put(tmp_path, named(timedelta(0), f"c/{broker}")) for broker in (1, 2))
    both = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    class Meeting:
        def get_file_info(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
            if selector.base_dir.endswith(("/c/1", "/c/2")):
                both.wait()
            return list(fs.LocalFileSystem().get_file_info(selector))

    monkeypatch.setattr("brimline.fleet.ingest.look.file_system", lambda place: (Meeting(), place))

    assert paths(look_for_new(str(tmp_path), {})) == files


def test_a_place_that_is_nowhere_is_a_mistake_and_an_empty_one_is_not(tmp_path: Path) -> None:
    assert not has_landed(str(tmp_path))
    with pytest.raises(LandingFailed, match="no landing place"):
        has_landed(str(tmp_path / "nowhere"))

"""Where snapshots land: whole files or none, and one kind of failure."""

import os
from pathlib import Path

import pytest

from brimline.landing.place import LandingPlace, PlaceFailed
from tests.landing.snapshots import HEADER

NAME = HEADER.name


@pytest.fixture(params=["path", "file URI", "other file system"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LandingPlace:
    if request.param == "path":
        return LandingPlace(str(tmp_path))
    found = LandingPlace(tmp_path.as_uri())
    if request.param == "other file system":  # the way of HDFS: no names of the local disk, but names that can change
        from pyarrow import fs

        monkeypatch.setattr(found, "_files", fs.SubTreeFileSystem("/", fs.LocalFileSystem()))
    return found


def test_what_was_put_is_listed_and_opened(place: LandingPlace) -> None:
    assert place.names() == []
    place.put(NAME, b"one")
    place.put(NAME.replace("1700", "1600"), b"two")

    assert place.names() == [NAME.replace("1700", "1600"), NAME]
    with place.open(NAME) as file:
        assert file.read() == b"one"


def test_a_name_that_is_there_is_replaced(place: LandingPlace) -> None:
    place.put(NAME, b"a long content")
    place.put(NAME, b"short")

    with place.open(NAME) as file:
        assert file.read() == b"short"


def test_nothing_but_snapshots_is_listed(place: LandingPlace, tmp_path: Path) -> None:
    place.put(NAME, b"")
    folder = (tmp_path / NAME).parent
    for other in ("README", f".{Path(NAME).name}.{'0' * 32}.unfinished", "1700000000000-xyz.parquet"):
        (folder / other).touch()

    assert place.names() == [NAME]


def test_a_place_that_cannot_be_written_to_leaves_nothing_behind(tmp_path: Path) -> None:
    in_the_way = tmp_path / "snapshots"
    in_the_way.write_text("a file where a folder must be")

    with pytest.raises(PlaceFailed, match=str(tmp_path)):
        LandingPlace(str(tmp_path)).put(NAME, b"data")

    assert list(tmp_path.iterdir()) == [in_the_way]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlaceFailed, match="No space left"):
        LandingPlace(str(tmp_path)).put(NAME, b"data")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_killed_writer_left_is_swept_away_when_it_is_old(tmp_path: Path) -> None:
    folder = (tmp_path / NAME).parent
    folder.mkdir(parents=True)
    old, new = folder / ".a.unfinished", folder / ".b.unfinished"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))

    LandingPlace(str(tmp_path)).put(NAME, b"data")

    assert sorted(folder.iterdir()) == [new, tmp_path / NAME]


def test_a_missing_file_and_a_bad_uri_fail_in_the_same_way(tmp_path: Path) -> None:
    with pytest.raises(PlaceFailed):
        LandingPlace(str(tmp_path)).open(NAME)
    with pytest.raises(PlaceFailed, match="nowhere"):
        LandingPlace("nowhere://a/b")


def test_nobody_reads_the_keys_in_a_uri() -> None:
    with pytest.raises(PlaceFailed) as failed:
        LandingPlace("nowhere://user:secret@bucket/folder")

    assert "secret" not in str(failed.value)

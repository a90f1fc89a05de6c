"""Upkeep without Spark: which landed files are still there."""

from pathlib import Path

import pytest
from pyarrow import fs

from brimline.fleet.tables.maintain import still_landed


def test_files_that_are_there_are_found_by_listing_each_brokers_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["c/1/2026-01-30/a", "c/1/2026-01-31/b", "c/1/2026-01-31/gone", "c/2/2026-01-31/c", "c/3/d", "c/4/gone"]
    paths = [str(tmp_path / f"{name}.parquet") for name in names]
    for path in paths:
        if "gone" not in path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch()
    asked: list[str] = []

    def file_system(place: str) -> tuple[fs.FileSystem, str]:
        asked.append(place)
        return fs.LocalFileSystem(), place

    monkeypatch.setattr("brimline.fleet.tables.maintain.file_system", file_system)
    found = still_landed((path, 7) for path in paths)

    assert found == [(path, 7) for path in paths if "gone" not in path]
    folders = [str(tmp_path / "c" / broker) for broker in ("1", "2", "3", "4")]
    assert asked == folders


def test_files_below_a_uri_are_found(tmp_path: Path) -> None:
    """Where a name holds a percent sign, it is escaped once more."""
    (tmp_path / "2026-01-31").mkdir()
    (tmp_path / "2026-01-31" / "a%41.parquet").touch()
    uri = f"{tmp_path.as_uri()}/2026-01-31/a%2541.parquet"

    assert still_landed([(uri, 1), (uri.replace("a%2541", "aA"), 1)]) == [(uri, 1)]

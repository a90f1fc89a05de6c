"""Looks at real folders; only what cannot be had for the asking is told by hand."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.model import Bytes, FailureKind
from brimline.observe.volumes import LogDirReading, by_volume, look_at, mount_points, stalled

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_bytes_are_those_of_statvfs(tmp_path: Path) -> None:
    reading = look_at(str(tmp_path), None, NOW, 1.0)

    facts = os.statvfs(tmp_path)
    assert reading.failure is None
    assert reading.total_bytes == facts.f_blocks * facts.f_frsize
    assert reading.reserved_bytes == (facts.f_bfree - facts.f_bavail) * facts.f_frsize


def test_usable_is_what_others_than_root_may_still_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks of 512 bytes; file systems count in fragments. The reserved ones count as used."""
    facts = os.statvfs_result((4096, 512, 1000, 300, 250, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: facts)

    reading = look_at(str(tmp_path), None, NOW, 1.0)

    assert (reading.total_bytes, reading.usable_bytes, reading.reserved_bytes) == (512_000, 128_000, 25_600)


@pytest.mark.parametrize(("files", "left", "found"), [(1000, 7, (1000, 7)), (0, 0, (None, None))])
def test_inodes_are_unknown_where_the_file_system_counts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, left: int, found: tuple[int | None, int | None]
) -> None:
    facts = os.statvfs_result((4096, 512, 1000, 300, 250, files, left, left, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: facts)

    reading = look_at(str(tmp_path), None, NOW, 1.0)

    assert (reading.total_files, reading.usable_files) == found


def test_a_folder_that_is_not_there_is_gone(tmp_path: Path) -> None:
    reading = look_at(str(tmp_path / "missing"), "8:1", NOW, 1.0)

    assert reading.failure is not None
    assert reading.failure.kind is FailureKind.GONE
    assert reading.device == "8:1"


def test_a_log_dir_on_another_device_than_before_is_gone(tmp_path: Path) -> None:
    """What is left of an unmounted volume: an empty folder, on the root file system, with plenty of room."""
    reading = look_at(str(tmp_path), "250:99", NOW, 1.0)

    assert reading.failure is not None
    assert reading.failure.kind is FailureKind.GONE
    assert "not mounted" in reading.failure.message


def test_a_replaced_volume_with_a_log_dir_on_it_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()

    reading = look_at(str(tmp_path), "250:99", NOW, 1.0)

    assert reading.failure is None
    assert reading.device != "250:99"


def reading(path: str, device: str, seconds: float, usable: int) -> LogDirReading:
    return LogDirReading(
        path=path,
        device=device,
        observed_at=NOW,
        seconds=seconds,
        total_bytes=Bytes(100),
        usable_bytes=Bytes(usable),
        reserved_bytes=Bytes(0),
    )


def test_one_device_is_one_volume_with_its_newest_reading() -> None:
    (volume,) = by_volume([reading("/a", "8:1", 2.0, 40), reading("/b", "8:1", 1.0, 50)])

    assert volume.log_dirs == ("/a", "/b")
    assert volume.usable_bytes == 40


def test_a_stalled_log_dir_stands_alone() -> None:
    volumes = by_volume([reading("/a", "8:1", 1.0, 40), stalled("/b", "8:1", NOW, 1.0, 12.0)])

    assert [volume.log_dirs for volume in volumes] == [("/a",), ("/b",)]
    assert volumes[1].failure is not None


def test_mount_points_know_the_root() -> None:
    device = os.stat("/").st_dev  # noqa: PTH116

    points = mount_points()

    assert points.get(f"{os.major(device)}:{os.minor(device)}", "/") == "/"

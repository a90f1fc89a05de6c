"""Sizes of a log, and how fast it is appended to."""

import os
from pathlib import Path

from brimline.observe.scan.growth import NO_LOG, AppendRates, log_size

KIB = 1024


def segment(folder: Path, base_offset: int, kib: int, ending: str = ".log") -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{base_offset:020d}{ending}").write_bytes(b"x" * kib * KIB)


def rate(rates: AppendRates, folder: Path, seconds: float) -> float:
    return rates.look(str(folder), log_size(str(folder)), seconds)


def test_a_log_is_its_segments_and_nothing_that_waits_for_its_deletion(tmp_path: Path) -> None:
    segment(tmp_path, 0, 8)
    segment(tmp_path, 100, 4)
    segment(tmp_path, 0, 400, ".log.deleted")
    segment(tmp_path, 0, 400, ".log.cleaned")

    found = log_size(str(tmp_path))

    assert (found.bytes, found.largest, found.active) == (12 * KIB, 8 * KIB, f"{100:020d}.log")


def test_no_folder_no_log(tmp_path: Path) -> None:
    assert log_size(str(tmp_path / "gone")) == NO_LOG


def test_what_is_allocated_ahead_is_not_written(tmp_path: Path) -> None:
    segment(tmp_path, 0, 8)
    os.truncate(tmp_path / f"{0:020d}.log", 1 << 30)

    assert log_size(str(tmp_path)).bytes == 8 * KIB


def test_a_rate_is_what_came_behind_the_active_segment_whatever_compaction_did(tmp_path: Path) -> None:
    rates = AppendRates()
    segment(tmp_path, 0, 400)
    segment(tmp_path, 100, 8)
    assert rate(rates, tmp_path, 0) == 0

    segment(tmp_path, 0, 4)
    segment(tmp_path, 100, 48)
    segment(tmp_path, 200, 20)

    assert rate(rates, tmp_path, 10) == 6 * KIB


def test_the_fastest_of_late_counts_and_no_burst_of_a_moment(tmp_path: Path) -> None:
    rates = AppendRates()
    segment(tmp_path, 0, 8)
    rate(rates, tmp_path, 0)
    segment(tmp_path, 0, 408)

    assert rate(rates, tmp_path, 1) == 0
    assert rate(rates, tmp_path, 10) == 40 * KIB
    assert rate(rates, tmp_path, 20) == 40 * KIB
    assert [rate(rates, tmp_path, 30 + 10 * n) for n in range(30)][-1] == 0

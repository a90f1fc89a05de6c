"""Whether a ballast can be made where it is wanted, and whether it should be that large."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.act.ballast import NAME
from brimline.decide.disk_state import DiskState
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Weight
from brimline.guard.ballast.findings import explain_ballast, explain_ledger
from brimline.guard.feature import Finding
from brimline.model import Bytes, Failure, FailureKind
from brimline.observe.volumes import VolumeReading
from brimline.settings.config import GuardConfig
from tests.guard.files import config

MIB = 1 << 20
NO_FENCE = "disk.max.used.percent=100\ndisk.min.free.bytes=0\n"


def report(settings: GuardConfig, log_dir: Path, usable: int = 900 * MIB, device: str = "0:0") -> DiskReport:
    """Of a log dir that a broker uses."""
    if log_dir.is_dir():
        (log_dir / "meta.properties").touch()
    reading = VolumeReading(
        device=device,
        log_dirs=(str(log_dir),),
        total_bytes=Bytes(1000 * MIB),
        usable_bytes=Bytes(usable),
        reserved_bytes=Bytes(50 * MIB),
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.0,
    )
    volume = VolumeStatus(
        reading=reading,
        fullness=DiskState.OK,
        breaches=(),
        bytes_to_limit=None,
        fill_rate=None,
        seconds_left=None,
        next_look=60.0,
    )
    return DiskReport(volumes=(volume,), limits=settings.limits)


def wanting(megabytes: int, added: str = NO_FENCE) -> GuardConfig:
    return config(f"brimline.ballast.bytes={megabytes * MIB}\n{added}")


def findings(megabytes: int, log_dir: Path, *, usable: int = 900 * MIB, added: str = NO_FENCE) -> list[Finding]:
    settings = wanting(megabytes, added)
    return list(explain_ballast(settings, report(settings, log_dir, usable)))


def test_none_wanted_nothing_said(tmp_path: Path) -> None:
    assert findings(0, tmp_path) == []


def test_a_folder_that_no_broker_uses_gets_none(tmp_path: Path) -> None:
    settings = wanting(20)
    found = report(settings, tmp_path)
    (tmp_path / "meta.properties").unlink()

    (_, problem) = explain_ballast(settings, found)

    assert problem.weight is Weight.PROBLEM
    assert f"no ballast is made in {tmp_path}: it has no meta.properties" in problem.sentence


def test_a_sensible_one_is_explained(tmp_path: Path) -> None:
    (finding,) = findings(20, tmp_path)

    assert finding.weight is Weight.FINE
    assert finding.sentence == (
        "every volume has a ballast of 20.0 MiB (server.properties line 8), released below 5.00 MiB usable"
    )


def test_a_log_dir_that_may_not_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_arguments: False)

    problem = findings(20, tmp_path)[-1]

    assert problem.weight is Weight.PROBLEM
    assert f"no ballast can be made in {tmp_path}: it cannot be written to by this user" in problem.sentence
    assert "ReadWritePaths=" in problem.sentence


@pytest.mark.parametrize(
    ("megabytes", "added"), [(600, NO_FENCE), (20, f"disk.max.used.percent=100\ndisk.min.free.bytes={940 * MIB}\n")]
)
def test_one_that_can_never_be_made(megabytes: int, added: str, tmp_path: Path) -> None:
    problem = findings(megabytes, tmp_path, added=added)[-1]

    assert problem.weight is Weight.PROBLEM
    assert "never fits: the volume of 0.98 GiB" in problem.sentence


def test_one_that_takes_much_of_the_volume(tmp_path: Path) -> None:
    warning = findings(150, tmp_path)[-1]

    assert warning.weight is Weight.WARNING
    assert "takes 15.0 % of the volume" in warning.sentence


def test_one_without_room_at_the_moment_unless_it_is_there(tmp_path: Path) -> None:
    without = findings(20, tmp_path, usable=30 * MIB)[-1]
    (tmp_path / NAME).write_bytes(b"x")
    with_one = findings(20, tmp_path, usable=30 * MIB)[-1]

    assert (without.weight, with_one.weight) == (Weight.NOTE, Weight.FINE)


def test_a_guard_that_looks_seldom_may_be_too_late(tmp_path: Path) -> None:
    warning = findings(20, tmp_path, added=f"{NO_FENCE}brimline.disk.fast.sampling=false\n")[1]

    assert warning.weight is Weight.WARNING
    assert "volumes are checked every 60 s" in warning.sentence


def test_a_volume_that_cannot_be_read_is_explained_elsewhere(tmp_path: Path) -> None:
    settings = wanting(20, f"{NO_FENCE}brimline.state.dir={tmp_path}\n")
    readable = report(settings, tmp_path)
    gone = replace(readable.volumes[0].reading, failure=Failure(kind=FailureKind.GONE, message="gone"))
    unreadable = replace(readable, volumes=(replace(readable.volumes[0], reading=gone),))

    assert len(list(explain_ballast(settings, unreadable))) == 1
    assert list(explain_ledger(settings, unreadable)) == []


# The ledger ----------------------------------------------------------------------------------------------------------


def ledger_in(folder: Path, added: str) -> GuardConfig:
    return config(f"brimline.state.dir={folder}\n{added}")


@pytest.mark.parametrize("added", ["log.retention.disk.usage.percent=80\n", "brimline.ballast.bytes=1048576\n"])
def test_a_ledger_that_cannot_be_written(added: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ledger_in(tmp_path, added)
    monkeypatch.setattr(os, "access", lambda *_arguments: False)

    (problem,) = explain_ledger(settings, report(settings, tmp_path))

    assert (problem.topic, problem.weight) == ("permissions", Weight.PROBLEM)
    assert f"brimline.state.dir={tmp_path} cannot be written to" in problem.sentence


def test_a_ledger_on_the_volume_that_it_is_for(tmp_path: Path) -> None:
    settings = ledger_in(tmp_path / "not" / "yet", "log.retention.disk.usage.percent=80\n")
    number = tmp_path.stat().st_dev
    same = f"{os.major(number)}:{os.minor(number)}"

    (warning,) = explain_ledger(settings, report(settings, tmp_path, device=same))
    elsewhere = list(explain_ledger(settings, report(settings, tmp_path, device="0:0")))

    assert warning.weight is Weight.WARNING
    assert f"is on the same volume as {tmp_path}" in warning.sentence
    assert elsewhere == []


def test_nobody_needs_a_ledger_who_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ledger_in(tmp_path, "")
    monkeypatch.setattr(os, "access", lambda *_arguments: False)

    assert list(explain_ledger(settings, report(settings, tmp_path))) == []

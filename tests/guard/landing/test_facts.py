"""What a snapshot says of the disks: inodes and limits of each, and offline by the broker's word alone."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import numpy as np

from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.landing.facts import snapshot_sections
from brimline.guard.percent.task import PercentReport
from brimline.guard.survey import Survey
from brimline.landing.sections import VOLUMES, Columns
from brimline.model import BrokerId, Bytes, Failure, FailureKind
from brimline.model.reclaim import DeviceFacts, ReclaimPolicy
from brimline.observe.volumes import VolumeReading
from tests.decide.reclaim.scenarios import tables_of

LIMITS = DiskLimits(reserve=Bytes(20), min_free_files=3)


def status(log_dir: str, *, offline: bool = False, hangs: bool = False) -> VolumeStatus:
    reading = VolumeReading(
        device=f"of {log_dir}",
        log_dirs=(log_dir,),
        total_bytes=None if hangs else Bytes(100),
        usable_bytes=None if hangs else Bytes(50),
        reserved_bytes=None if hangs else Bytes(0),
        total_files=None if hangs else 1000,
        usable_files=None if hangs else 7,
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.0,
        failure=Failure(kind=FailureKind.TIMED_OUT, message="it hangs") if hangs else None,
    )
    return VolumeStatus(
        reading=reading,
        fullness=DiskState.UNKNOWN if hangs else DiskState.OK,
        breaches=(),
        bytes_to_limit=None,
        fill_rate=None,
        seconds_left=None,
        next_look=1.0,
        limits=LIMITS,
        offline=frozenset([log_dir] if offline else []),
    )


def volumes_of(surveyed: VolumeStatus, *others: VolumeStatus) -> Columns:
    (path,) = surveyed.log_dirs
    device = DeviceFacts(name="8:1", total_bytes=None, usable_bytes=None, now_ms=1, policy=ReclaimPolicy())
    tables = replace(tables_of({"devices": [], "topics": [], "logs": [], "segments": []}), devices=[device])
    error = object() if surveyed.offline else None
    seen = SimpleNamespace(
        volumes=(surveyed.reading,),
        tables=SimpleNamespace(tables=tables, log_dirs=(path,), ends=np.array([0])),
        facts=SimpleNamespace(
            answer=SimpleNamespace(
                log_dirs={path: SimpleNamespace(error=error, replicas=SimpleNamespace(is_future=np.zeros(0)))}
            ),
            topics={},
            rules={},
        ),
    )
    disks = DiskReport(volumes=(surveyed, *others), limits=DiskLimits())
    return snapshot_sections(cast(Survey, seen), disks, PercentReport(), BrokerId(1))[VOLUMES]


def test_inodes_and_the_limits_of_the_volume_are_in_it() -> None:
    found = volumes_of(status("/a"), status("/b", hangs=True))

    names = ("reserve_bytes", "fewest_files", "total_files", "usable_files")
    assert {name: np.ma.asarray(found[name]).tolist() for name in names} == {
        "reserve_bytes": [20, 20],
        "fewest_files": [3, 3],
        "total_files": [1000, None],
        "usable_files": [7, None],
    }


def test_a_log_dir_that_the_broker_holds_offline_is_offline_and_one_that_hangs_is_unknown() -> None:
    found = volumes_of(status("/a", offline=True), status("/b", hangs=True), status("/c", hangs=True, offline=True))

    assert found["state"] == ["offline", "unknown", "offline"]
    assert np.asarray(found["is_offline"]).tolist() == [True, False, True]

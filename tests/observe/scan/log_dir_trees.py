"""Log dirs made of real files, in Kafka's layout, for the tests of the scan."""

import os
import struct
import subprocess
import time
from dataclasses import fields
from pathlib import Path

import numpy as np

from brimline.model.scan import FolderColumns, LogDirScan, SegmentColumns

TOPIC_ID = "6RlVuFSQQ7mV1P0fBRNaVA"
INDEX_BYTES = 10_485_760
TIME_INDEX_BYTES = 10_485_756
_COARSE_CLOCK = 5  # CLOCK_REALTIME_COARSE of Linux, which file times are taken from
A_DAY_NS = 86_400 * 1_000_000_000


def later() -> int:
    """A clock by which everything in a tree has long settled."""
    return time.time_ns() + A_DAY_NS


def wait_for_a_tick() -> None:
    """Until the file system's clock has moved on: milliseconds, and never a sleep."""
    begin = time.clock_gettime_ns(_COARSE_CLOCK)
    while time.clock_gettime_ns(_COARSE_CLOCK) == begin:
        pass


def entries(*timestamps: int) -> bytes:
    return b"".join(struct.pack(">qi", timestamp, offset) for offset, timestamp in enumerate(timestamps, 1))


def make_replica(folder: Path, *base_offsets: int, log_bytes: int = 5000) -> Path:
    """Closed segments and, last, the active one. A segment's newest timestamp is its base offset and 7."""
    folder.mkdir(parents=True)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for base_offset in base_offsets:
        make_segment(folder, base_offset, log_bytes)
    for base_offset in base_offsets[:-1]:
        close_segment(folder, base_offset)
    return folder


def make_segment(folder: Path, base_offset: int, log_bytes: int = 5000) -> None:
    file = folder / f"{base_offset:020d}"
    file.with_suffix(".log").write_bytes(b"x" * log_bytes)
    file.with_suffix(".index").write_bytes(bytes(range(1, 9)))
    os.truncate(file.with_suffix(".index"), INDEX_BYTES)
    file.with_suffix(".timeindex").write_bytes(entries(base_offset + 3, base_offset + 7))
    os.truncate(file.with_suffix(".timeindex"), TIME_INDEX_BYTES)


def close_segment(folder: Path, base_offset: int) -> None:
    """As a roll does it: the indexes are trimmed to what is used."""
    file = folder / f"{base_offset:020d}"
    os.truncate(file.with_suffix(".index"), 8)
    os.truncate(file.with_suffix(".timeindex"), 24)


def du(path: Path) -> int:
    """What the system's own tool counts, in bytes."""
    counted = subprocess.run(["du", "-s", "-B1", str(path)], capture_output=True, text=True, check=False)
    return int(counted.stdout.split()[0])


def assert_same(one: LogDirScan, other: LogDirScan) -> None:
    assert one.state is other.state
    for columns in (FolderColumns, SegmentColumns):
        ours, theirs = (scan.folders if columns is FolderColumns else scan.segments for scan in (one, other))
        for field in fields(columns):
            np.testing.assert_array_equal(
                getattr(ours, field.name), getattr(theirs, field.name), err_msg=field.name, strict=False
            )

"""40,000 segments on a real, warm file system: the scan against ``du -s``, first and again."""

import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.ratio import Comparison, compare_calls
from brimline.observe.scan.scanner import LogDirScanner

FOLDERS = 2_000
SEGMENTS = 20
CHANGED_FOLDERS = FOLDERS // 100
ROUNDS = 9
# A broker's files are mostly old; these were just made, so the scanner's clock is set ahead.
AN_HOUR_NS = 3_600 * 1_000_000_000


def comparisons() -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory(prefix="brimline-bench-") as folder:
        root = Path(folder)
        make_log_dir(root)

        def du() -> None:
            subprocess.run(["du", "-s", folder], stdout=subprocess.DEVNULL, check=True)

        def clock_ns() -> int:
            return time.time_ns() + AN_HOUR_NS

        scanner = LogDirScanner(root, clock_ns=clock_ns)

        def first_scan() -> None:
            scanner.forget()
            scanner.scan()

        def timestamps_too() -> None:
            scanner.forget()
            scanner.scan(timestamps=True)

        turn = 0

        def change() -> None:
            nonlocal turn
            turn += 1
            for number in range(CHANGED_FOLDERS):
                partition = root / f"payments.orders.v1-{number * (FOLDERS // CHANGED_FOLDERS)}"
                checkpoint = partition / "leader-epoch-checkpoint"
                checkpoint.with_suffix(".tmp").write_text(f"0\n1\n{turn} 0\n")
                checkpoint.with_suffix(".tmp").rename(checkpoint)

        def change_and_scan() -> None:
            change()
            scanner.scan()

        def change_and_scan_timestamps() -> None:
            change()
            scanner.scan(timestamps=True)

        files = f"{FOLDERS * SEGMENTS:,} segments ({FOLDERS * (4 * SEGMENTS + 2):,} files)"
        yield compare_calls(f"first scan of {files}", du, first_scan, ROUNDS)
        yield compare_calls("first scan, newest timestamps too", du, timestamps_too, ROUNDS)
        scanner.scan(timestamps=True)
        yield compare_calls("repeat scan, nothing changed", du, scanner.scan, ROUNDS)
        # Making the change counts on our side.
        yield compare_calls("repeat scan, 1 % of the folders changed", du, change_and_scan, ROUNDS)
        yield compare_calls("the same, newest timestamps too", du, change_and_scan_timestamps, ROUNDS)


def make_log_dir(root: Path) -> None:
    """The files of a broker in their usual number a segment; small, since a scan does not read them."""
    for number in range(FOLDERS):
        partition = root / f"payments.orders.v1-{number}"
        partition.mkdir()
        fd = os.open(partition, os.O_RDONLY | os.O_DIRECTORY)
        for segment in range(SEGMENTS):
            is_active = segment == SEGMENTS - 1
            base_offset = f"{segment * 1_000:020d}"
            newest = struct.pack(">qi", 1_700_000_000_000 + segment, 999)
            _write(fd, base_offset + ".log", b"x" * 200)
            _write(fd, base_offset + ".index", b"x" * 8, length=10_485_760 if is_active else 8)
            _write(fd, base_offset + ".timeindex", newest, length=10_485_756 if is_active else len(newest))
            _write(fd, base_offset + ".snapshot", b"x" * 10)
        _write(fd, "leader-epoch-checkpoint", b"0\n1\n0 0\n")
        _write(fd, "partition.metadata", b"version: 0\ntopic_id: 6RlVuFSQQ7mV1P0fBRNaVA")
        os.close(fd)


def _write(folder_fd: int, name: str, content: bytes, length: int | None = None) -> None:
    fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=folder_fd)
    os.write(fd, content)
    if length is not None:
        os.ftruncate(fd, length)
    os.close(fd)

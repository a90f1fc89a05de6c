"""A scan that remembers equals one that does not, whatever a broker and its neighbours did in between."""

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from brimline.model.scan import TimestampSource
from brimline.observe.scan.scanner import LogDirScanner
from tests.observe.scan.log_dir_trees import (
    assert_same,
    close_segment,
    du,
    entries,
    later,
    make_replica,
    make_segment,
    wait_for_a_tick,
)

NUMBERS = st.integers(0, 3)
HEX = "0123456789abcdef0123456789abcdef"


class LiveLogDir(RuleBasedStateMachine):
    """Every rule is something that Kafka, an operator or a backup does to the files."""

    def __init__(self) -> None:
        super().__init__()
        self._keep = tempfile.TemporaryDirectory()
        self.root = Path(self._keep.name)
        self.scanner = LogDirScanner(self.root, clock_ns=later, forget_after=timedelta(days=1))
        self.deleted = 0

    def teardown(self) -> None:
        self._keep.cleanup()

    @initialize()
    def some_replicas(self) -> None:
        for number in range(3):
            make_replica(self.root / f"orders-{number}", 0, 100)

    def replica(self, number: int) -> Path:
        """The replica of this number; it is created when it is not there."""
        folder = self.root / f"orders-{number}"
        return folder if folder.exists() else make_replica(folder, 0)

    def bases(self, number: int) -> list[int]:
        return sorted(int(file.name[:20]) for file in self.replica(number).glob("*.log"))

    def file(self, number: int, base_offset: int, suffix: str) -> Path:
        return self.replica(number) / f"{base_offset:020d}{suffix}"

    @rule(number=NUMBERS)
    def append(self, number: int) -> None:
        active = self.bases(number)[-1]
        with self.file(number, active, ".log").open("ab") as log:
            log.write(b"y" * 5000)
        with self.file(number, active, ".index").open("r+b") as index:
            index.seek(64 * 1024)
            index.write(b"filled")
        with self.file(number, active, ".timeindex").open("r+b") as time_index:
            time_index.write(entries(active + 3, active + 7, active + 50))

    @rule(number=NUMBERS)
    def roll(self, number: int) -> None:
        active = self.bases(number)[-1]
        close_segment(self.replica(number), active)
        make_segment(self.replica(number), active + 100)
        self.file(number, active + 100, ".snapshot").write_bytes(b"s")

    @rule(number=NUMBERS)
    def delete_the_oldest_segment(self, number: int) -> None:
        bases = self.bases(number)
        if len(bases) > 1:
            for suffix in (".log", ".index", ".timeindex"):
                file = self.file(number, bases[0], suffix)
                file.rename(f"{file}.deleted")

    @rule(number=NUMBERS)
    def remove_deleted_files(self, number: int) -> None:
        for file in self.replica(number).glob("*.deleted"):
            file.unlink()

    @rule(number=NUMBERS)
    def compact(self, number: int) -> None:
        base = self.bases(number)[0]
        cleaned = self.file(number, base, ".log.cleaned")
        if cleaned.exists():
            cleaned.rename(self.file(number, base, ".log"))
        else:
            cleaned.write_bytes(b"c" * 100)

    @rule(number=NUMBERS)
    def compaction_writes_on(self, number: int) -> None:
        for cleaned in self.replica(number).glob("*.cleaned"):
            with cleaned.open("ab") as file:
                file.write(b"c" * 5000)

    @rule(number=NUMBERS)
    def write_a_checkpoint(self, number: int) -> None:
        temporary = self.replica(number) / "leader-epoch-checkpoint.tmp"
        temporary.write_text("0\n2\n0 0\n1 100\n" * 500)
        temporary.rename(temporary.with_suffix(""))

    @rule(number=NUMBERS)
    def delete_the_replica(self, number: int) -> None:
        self.deleted += 1
        self.replica(number).rename(self.root / f"orders-{number}.{HEX[:-4]}{self.deleted:04d}-delete")

    @rule()
    def remove_deleted_replicas(self) -> None:
        for folder in self.root.glob("*-delete"):
            shutil.rmtree(folder)

    @rule(number=NUMBERS)
    def swap_in_another_folder_of_the_same_name(self, number: int) -> None:
        """AlterReplicaLogDirs, at its end."""
        self.deleted += 1
        make_replica(self.root / f"orders-{number}.{HEX}-future", 0, 300)
        self.replica(number).rename(self.root / f"orders-{number}.{HEX[:-4]}{self.deleted:04d}-delete")
        (self.root / f"orders-{number}.{HEX}-future").rename(self.root / f"orders-{number}")

    @rule(number=NUMBERS)
    def change_and_set_the_folders_time_back(self, number: int) -> None:
        folder = self.replica(number)
        before = folder.stat()
        (folder / f"{999:020d}.snapshot").write_bytes(b"s" * 5000)
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(number=NUMBERS)
    def a_foreign_file_grows(self, number: int) -> None:
        for folder in (self.root, self.replica(number)):
            with (folder / "core").open("ab") as file:
                file.write(b"z" * 5000)

    @rule(number=NUMBERS)
    def a_foreign_folder_grows(self, number: int) -> None:
        for folder in (self.root / "backup", self.replica(number) / "backup"):
            (folder / "deep").mkdir(parents=True, exist_ok=True)
            with (folder / "deep" / "file").open("ab") as file:
                file.write(b"z" * 5000)

    @rule(number=NUMBERS, into=NUMBERS)
    def link_a_segment(self, number: int, into: int) -> None:
        link = self.replica(into) / f"link to {number}"
        link.unlink(missing_ok=True)
        os.link(self.file(number, self.bases(number)[0], ".log"), link)

    @invariant()
    def memory_makes_no_difference(self) -> None:
        wait_for_a_tick()
        scan = self.scanner.scan(timestamps=True, topic_ids=True)
        wait_for_a_tick()
        assert_same(scan, LogDirScanner(self.root, clock_ns=later).scan(timestamps=True, topic_ids=True))
        assert scan.allocated_bytes == du(self.root)
        assert scan.vanished == 0


TestLiveLogDir = LiveLogDir.TestCase
TestLiveLogDir.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)


def test_only_what_changed_is_read(tmp_path: Path) -> None:
    for number in range(10):
        make_replica(tmp_path / f"orders-{number}", 0, 100)
    scanner = LogDirScanner(tmp_path, clock_ns=later)

    first, second = scanner.scan(), scanner.scan()
    (tmp_path / "orders-3" / "leader-epoch-checkpoint").unlink()
    third = scanner.scan()

    assert (first.folders_read, second.folders_read, third.folders_read) == (10, 0, 1)


def test_a_folder_changed_just_now_is_read_again(tmp_path: Path) -> None:
    """By the real clock: a second change in the same tick would leave the same times."""
    make_replica(tmp_path / "orders-0", 0)
    scanner = LogDirScanner(tmp_path)

    assert (scanner.scan().folders_read, scanner.scan().folders_read) == (1, 1)


def test_a_clock_that_was_set_back_forgets(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0)
    now_ns = later()
    scanner = LogDirScanner(tmp_path, clock_ns=lambda: now_ns)
    scanner.scan()
    now_ns -= 1

    assert scanner.scan().folders_read == 1


def test_memory_ends(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0)
    now_ns = later()
    scanner = LogDirScanner(tmp_path, clock_ns=lambda: now_ns, forget_after=timedelta(minutes=10))
    read = [scanner.scan().folders_read]
    now_ns += 599 * 10**9
    read.append(scanner.scan().folders_read)
    now_ns += 10**9
    read.append(scanner.scan().folders_read)

    assert read == [1, 0, 1]


def test_timestamps_of_closed_segments_are_read_once(tmp_path: Path) -> None:
    replica = make_replica(tmp_path / "orders-0", 0, 100)
    scanner = LogDirScanner(tmp_path, clock_ns=later)
    scanner.scan(timestamps=True)
    wait_for_a_tick()
    (replica / f"{0:020d}.timeindex").write_bytes(entries(1, 2))
    (replica / "leader-epoch-checkpoint").unlink()  # the folder must be read again, the segment is the same

    remembered = scanner.scan().segments

    assert remembered.newest_timestamp_ms.tolist() == [7, -1]
    assert remembered.timestamp_source.tolist() == [TimestampSource.TIME_INDEX, TimestampSource.NOT_READ]


def test_an_earlier_answer_does_not_change(tmp_path: Path) -> None:
    replica = make_replica(tmp_path / "orders-0", 0)
    scanner = LogDirScanner(tmp_path, clock_ns=later)
    before = scanner.scan()
    with (replica / f"{0:020d}.log").open("ab") as log:
        log.write(b"more")
    after = scanner.scan()

    assert (before.segments.log_bytes.tolist(), after.segments.log_bytes.tolist()) == ([5000], [5004])

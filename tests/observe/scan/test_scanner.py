import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from brimline.model.scan import FileKind, FolderKind, FolderState, LogDirScan, TimestampSource
from brimline.observe.scan import folders as scan_folders
from brimline.observe.scan import scanner as scan
from brimline.observe.scan.folders import list_open
from brimline.observe.scan.scanner import LogDirScanner
from brimline.observe.scan.timestamps import read_timestamps
from tests.observe.scan.log_dir_trees import INDEX_BYTES, TOPIC_ID, assert_same, du, entries, later, make_replica

HEX = "0123456789abcdef0123456789abcdef"


def rich_log_dir(root: Path) -> Path:
    """One of everything."""
    make_replica(root / "orders-0", 0, 100, 200)
    make_replica(root / "orders-1", 0)
    make_replica(root / f"orders-2.{HEX}-future", 0, 50)
    make_replica(root / f"gone-0.{HEX}-delete", 0)
    make_replica(root / f"astray-0.{HEX}-stray", 0)
    metadata = make_replica(root / "__cluster_metadata-0", 0)
    (metadata / "quorum-state").write_text("{}")
    (metadata / "00000000000000000012-0000000001.checkpoint").write_bytes(b"x" * 900)
    cache = root / "remote-log-index-cache"
    cache.mkdir()
    (cache / "0_6RlVuFSQQ7mV1P0fBRNaVA.index").write_bytes(b"x" * 9000)
    (root / "orders-0" / "00000000000000000100.snapshot").write_bytes(b"x" * 20)
    (root / "orders-0" / "00000000000000000000.log.deleted").write_bytes(b"x" * 6000)
    (root / "orders-0" / "00000000000000000100.log.cleaned").write_bytes(b"x" * 70)
    (root / "orders-0" / "00000000000000000100.index.swap").write_bytes(b"x" * 70)
    (root / "orders-1" / "nested").mkdir()
    (root / "orders-1" / "nested" / "00000000000000000000.log").write_bytes(b"x" * 5000)
    for name in ("meta.properties", ".lock", "cleaner-offset-checkpoint", "ballast", ".brimline-ballast"):
        (root / name).write_bytes(b"x" * 100)
    (root / "lost+found" / "deep" / "deeper").mkdir(parents=True)
    (root / "lost+found" / "deep" / "file").write_bytes(b"x" * 10_000)
    (root / "elsewhere-0").symlink_to("/nowhere")
    (root / "link").symlink_to("ballast")
    return root


def scan_once(root: Path, **options: bool) -> LogDirScan:
    return LogDirScanner(root, clock_ns=later).scan(**options)


def test_every_kind_is_told_apart_and_their_sum_is_du(tmp_path: Path) -> None:
    scan = scan_once(rich_log_dir(tmp_path))
    folders = scan.folders
    files = {
        (folders.names[row], FileKind(kind)): int(folders.files[row, kind])
        for row, kind in np.argwhere(folders.files).tolist()
    }

    assert scan.allocated_bytes == du(tmp_path)
    assert {name: FolderKind(kind) for name, kind in zip(folders.names, folders.kind.tolist(), strict=True)} == {
        "": FolderKind.LOG_DIR,
        "orders-0": FolderKind.CURRENT,
        "orders-1": FolderKind.CURRENT,
        "elsewhere-0": FolderKind.CURRENT,
        f"orders-2.{HEX}-future": FolderKind.FUTURE,
        f"gone-0.{HEX}-delete": FolderKind.DELETE,
        f"astray-0.{HEX}-stray": FolderKind.STRAY,
        "__cluster_metadata-0": FolderKind.METADATA_LOG,
        "remote-log-index-cache": FolderKind.REMOTE_INDEX_CACHE,
        "lost+found": FolderKind.FOREIGN,
    }
    assert {kind: count for (name, kind), count in files.items() if name == "orders-0"} == {
        FileKind.LOG: 3,
        FileKind.OFFSET_INDEX: 3,
        FileKind.TIME_INDEX: 3,
        FileKind.PRODUCER_SNAPSHOT: 1,
        FileKind.DELETED: 1,
        FileKind.CLEANED: 1,
        FileKind.SWAP: 1,
        FileKind.LEADER_EPOCH_CHECKPOINT: 1,
        FileKind.PARTITION_METADATA: 1,
    }
    assert {kind: count for (name, kind), count in files.items() if not name} == {
        FileKind.META_PROPERTIES: 1,
        FileKind.LOCK: 1,
        FileKind.OFFSET_CHECKPOINT: 1,
        FileKind.BALLAST: 1,
        FileKind.FOREIGN: 2,
    }
    assert files["__cluster_metadata-0", FileKind.METADATA_SNAPSHOT] == 1
    assert files["__cluster_metadata-0", FileKind.QUORUM_STATE] == 1
    assert files["remote-log-index-cache", FileKind.REMOTE_INDEX] == 1
    assert files["orders-1", FileKind.FOREIGN] == 2
    assert files["orders-1", FileKind.LOG] == 1
    assert FolderState(folders.state[folders.names.index("elsewhere-0")]) is FolderState.SYMBOLIC_LINK


def test_sizes_as_kafka_and_as_the_disk_count(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0, 100, log_bytes=5000)

    scan = scan_once(tmp_path)

    row = scan.folders.names.index("orders-0")
    index = scan.folders.size[row, FileKind.OFFSET_INDEX]
    assert scan.folders.log_bytes[row] == 10_000
    assert index == 8 + INDEX_BYTES
    assert scan.folders.allocated[row, FileKind.OFFSET_INDEX] < index
    assert scan.folders.allocated_bytes[row] == du(tmp_path / "orders-0")
    assert scan.size_of(FolderKind.CURRENT, FileKind.LOG) == 10_000


def test_segments(tmp_path: Path) -> None:
    make_replica(tmp_path / "b-0", 0, 100, 2**40)
    make_replica(tmp_path / "a-1", 10**18)
    make_replica(tmp_path / f"z-0.{HEX}-delete", 0)
    (tmp_path / "b-0" / "00000000000000000100.snapshot").write_bytes(b"x" * 5000)
    (tmp_path / "b-0" / "00000000000000000150.snapshot").write_bytes(b"x" * 5000)

    scan = scan_once(tmp_path, timestamps=True, topic_ids=True)
    segments = scan.segments

    assert [scan.folders.names[row][0] for row in segments.folder] == ["a", "b", "b", "b", "z"]
    assert segments.base_offset.tolist() == [10**18, 0, 100, 2**40, 0]
    assert segments.is_active.tolist() == [True, False, False, True, False]
    assert segments.newest_timestamp_ms.tolist() == [10**18 + 7, 7, 107, 2**40 + 7, 7]
    assert scan.folders.segments_begin.tolist() == [0, 0, 1, 4, 5]
    assert segments.log_bytes.tolist() == [5000] * 5
    of_one = [tmp_path / "b-0" / f"{100:020d}{suffix}" for suffix in (".log", ".index", ".timeindex", ".snapshot")]
    assert segments.allocated_bytes[2] == sum(file.stat().st_blocks * 512 for file in of_one)
    assert not segments.is_preallocated.any()
    assert str(scan.folders.topic_id(1)) == "e91955b8-5490-43b9-95d4-fd1f05135a54"


def test_a_preallocated_active_segment_is_named(tmp_path: Path) -> None:
    replica = make_replica(tmp_path / "orders-0", 0, 100)
    os.truncate(replica / f"{100:020d}.log", 1 << 20)

    assert scan_once(tmp_path).segments.is_preallocated.tolist() == [False, True]


@pytest.mark.parametrize(
    ("content", "length", "newest", "source"),
    [
        pytest.param(b"", 0, None, TimestampSource.MODIFICATION_TIME, id="empty"),
        pytest.param(b"", 10_485_756, None, TimestampSource.MODIFICATION_TIME, id="preallocated, nothing written"),
        pytest.param(entries(5, 9), 24, 9, TimestampSource.ACTIVE_TIME_INDEX, id="trimmed"),
        pytest.param(entries(5, 9), 10_485_756, 9, TimestampSource.ACTIVE_TIME_INDEX, id="preallocated"),
        pytest.param(entries(*range(1, 5000)), 10_485_756, 4999, TimestampSource.ACTIVE_TIME_INDEX, id="many"),
        pytest.param(entries(*range(1, 342)), 10_485_756, 341, TimestampSource.ACTIVE_TIME_INDEX, id="a page"),
        pytest.param(entries(*range(1, 5000)), 4999 * 12, 4999, TimestampSource.ACTIVE_TIME_INDEX, id="many, trimmed"),
        pytest.param(entries(5, 9)[:-1], 23, 5, TimestampSource.ACTIVE_TIME_INDEX, id="half an entry"),
        pytest.param(entries(256 << 8), 12, 256 << 8, TimestampSource.ACTIVE_TIME_INDEX, id="ends in zero bytes"),
        pytest.param(bytes(12), 12, 0, TimestampSource.ACTIVE_TIME_INDEX, id="the epoch"),
        pytest.param(entries(-1), 12, None, TimestampSource.MODIFICATION_TIME, id="no timestamp"),
    ],
)
def test_newest_timestamp(
    tmp_path: Path, content: bytes, length: int, newest: int | None, source: TimestampSource
) -> None:
    replica = make_replica(tmp_path / "orders-0", 0)
    (replica / f"{0:020d}.timeindex").write_bytes(content)
    os.truncate(replica / f"{0:020d}.timeindex", length)
    os.utime(replica / f"{0:020d}.log", ns=(0, 1_234_567_890))

    segments = scan_once(tmp_path, timestamps=True).segments

    assert segments.newest_timestamp_ms.tolist() == [1234 if newest is None else newest]
    assert segments.timestamp_source.tolist() == [source]


@pytest.mark.parametrize(
    ("left", "newest"),
    [
        pytest.param(".deleted", 9, id="renamed"),
        pytest.param(None, 0, id="gone"),
    ],
)
def test_a_segment_that_goes_before_its_timestamp_is_read_does_not_look_young(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str | None, newest: int
) -> None:
    replica = make_replica(tmp_path / "orders-0", 0, 100)
    (replica / f"{0:020d}.timeindex").write_bytes(entries(5, 9))

    def delete_first(*arguments: Any) -> None:
        for file in (replica / f"{0:020d}.log", replica / f"{0:020d}.timeindex"):
            if left is None:
                file.unlink()
            else:
                file.rename(f"{file}{left}")
        read_timestamps(*arguments)

    monkeypatch.setattr(scan, "read_timestamps", delete_first)
    segments = scan_once(tmp_path, timestamps=True).segments

    assert segments.newest_timestamp_ms[0] == newest


def test_a_log_without_a_time_index_is_as_old_as_its_last_write(tmp_path: Path) -> None:
    replica = make_replica(tmp_path / "orders-0", 0)
    (replica / f"{0:020d}.timeindex").unlink()
    os.utime(replica / f"{0:020d}.log", ns=(0, 1_234_567_890))

    segments = scan_once(tmp_path, timestamps=True).segments

    assert segments.newest_timestamp_ms.tolist() == [1234]
    assert segments.timestamp_source.tolist() == [TimestampSource.MODIFICATION_TIME]


def test_the_way_without_statx_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rich_log_dir(tmp_path)
    os.link(tmp_path / "ballast", tmp_path / "ballast again")
    with_statx = scan_once(tmp_path)
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())

    scanner = LogDirScanner(tmp_path, clock_ns=later)
    without = scanner.scan()

    assert_same(without, with_statx)
    assert_same(scanner.scan(), with_statx)


def test_hard_links_count_once(tmp_path: Path) -> None:
    replica = make_replica(tmp_path / "orders-0", 0, 100)
    make_replica(tmp_path / "orders-1", 0)
    (tmp_path / "backup").mkdir()
    scanner = LogDirScanner(tmp_path, clock_ns=later)
    scanner.scan()
    os.link(replica / f"{0:020d}.log", tmp_path / "backup" / "copy")
    os.link(replica / f"{0:020d}.log", tmp_path / "orders-1" / f"{500:020d}.log")

    scan = scanner.scan()

    assert scan.allocated_bytes == du(tmp_path)
    assert_same(scan, scan_once(tmp_path))


@contextmanager
def as_nobody(path: Path) -> Iterator[None]:
    """Root may read everything; for a moment, be someone who may not."""
    if os.geteuid():
        yield
        return
    path.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_permission_denied_is_a_state_of_that_folder(mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_replica(root / "open-0", 0)
        make_replica(root / "shut-0", 0, 100).chmod(mode)
        (root / "lost+found").mkdir()
        (root / "lost+found" / "inside").write_text("x")
        (root / "lost+found").chmod(mode)
        with as_nobody(root):
            scan = scan_once(root)
            states = dict(zip(scan.folders.names, scan.folders.state.tolist(), strict=True))
        for name in ("shut-0", "lost+found"):
            (root / name).chmod(0o755)

        own_blocks = sum((root / name).stat().st_blocks * 512 for name in ("shut-0", "lost+found"))
        assert states == {
            "": FolderState.READ,
            "open-0": FolderState.READ,
            "shut-0": FolderState.PERMISSION_DENIED,
            "lost+found": FolderState.PERMISSION_DENIED,
        }
        assert scan.folders.log_bytes.sum() == 5000
        shut = [scan.folders.names.index(name) for name in ("shut-0", "lost+found")]
        assert scan.folders.allocated_bytes[shut].sum() == own_blocks


def test_a_log_dir_that_is_not_there(tmp_path: Path) -> None:
    scan = scan_once(tmp_path / "nowhere")

    assert scan.state is FolderState.ABSENT
    assert (len(scan.segments), scan.allocated_bytes) == (0, 0)


def test_a_log_dir_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_replica(Path(folder) / "data" / "open-0", 0)
        (Path(folder) / "data").chmod(0)
        with as_nobody(Path(folder)):
            scan = scan_once(Path(folder) / "data")
        (Path(folder) / "data").chmod(0o755)

    assert scan.state is FolderState.PERMISSION_DENIED


def test_a_file_renamed_between_list_and_stat_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replica = make_replica(tmp_path / "orders-0", 0, 100)
    listed = 0

    def list_then_rename(fd: int) -> list[str]:
        nonlocal listed
        names = list_open(fd)
        if f"{0:020d}.log" in names and not listed:
            listed += 1
            (replica / f"{0:020d}.log").rename(replica / f"{0:020d}.log.deleted")
        return names

    monkeypatch.setattr(scan_folders, "list_open", list_then_rename)
    scan = scan_once(tmp_path)

    assert listed == 1
    assert scan.vanished == 0
    assert scan.allocated_bytes == du(tmp_path)
    assert scan.size_of(FolderKind.CURRENT, FileKind.DELETED) == 5000
    assert scan.segments.base_offset.tolist() == [100]


def test_a_folder_renamed_under_the_look_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_replica(tmp_path / "orders-0", 0, 100)
    make_replica(tmp_path / "orders-1", 0)
    real_open = os.open
    renamed = tmp_path / f"orders-1.{HEX}-delete"

    def rename_then_open(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "orders-1" and not renamed.exists():
            (tmp_path / "orders-1").rename(renamed)
        return real_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr("os.open", rename_then_open)
    scan = scan_once(tmp_path)

    assert scan.folders.names == ("", "orders-0", renamed.name)
    assert scan.allocated_bytes == du(tmp_path)
    assert scan.vanished == 0


def test_names_that_always_vanish_are_counted_and_never_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_replica(tmp_path / "orders-0", 0)
    monkeypatch.setattr(scan_folders, "list_open", lambda fd: [*list_open(fd), f"{7:020d}.log"])

    scan = scan_once(tmp_path)

    assert scan.vanished == 1
    assert scan.segments.base_offset.tolist() == [0]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    make_replica(tmp_path / "orders-0", 0)
    for folder in (tmp_path, tmp_path / "orders-0"):
        Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9")).write_bytes(b"x" * 5000)

    scan = scan_once(tmp_path)

    assert scan.allocated_bytes == du(tmp_path)
    assert scan.folders.files[:, FileKind.FOREIGN].tolist() == [1, 1]


def test_a_topic_id_is_read_from_where_the_name_may_have_been_cut(tmp_path: Path) -> None:
    cut = "t" * (255 - len(f"-0.{HEX}-delete")) + f"-0.{HEX}-delete"
    make_replica(tmp_path / cut, 0)
    make_replica(tmp_path / "orders-0", 0)

    folders = LogDirScanner(tmp_path, clock_ns=later).scan().folders

    assert len(cut) == 255
    assert folders.topic_may_be_cut.tolist() == [False, False, True]
    assert folders.topic_ids == (None, None, TOPIC_ID)

"""What is left of a trim's segments, by their files, under every name that a broker gives them."""

from pathlib import Path

import pytest

from brimline.act.ledger.entries import PlannedTrim
from brimline.act.ledger.writing import topic_id_text
from brimline.act.trims.files import files_left
from brimline.act.trims.rules import Left
from brimline.model import Bytes, ObservationFailed
from tests.act.ledger.entries import a_trim

NOTHING = Left(files=0, allocated_bytes=Bytes(0))
UNIQUE = "." + "0" * 32


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "a")


def make_log_dir(path: Path) -> Path:
    path.mkdir()
    (path / "meta.properties").touch()
    return path


def trim_in(log_dir: Path, partition: int = 0) -> PlannedTrim:
    """Of three segments, with the base offsets 0, 1000 and 2000."""
    planned = a_trim(partition)
    return PlannedTrim(**{**{name: getattr(planned, name) for name in PlannedTrim.__slots__}, "log_dir": str(log_dir)})


def make_folder(log_dir: Path, name: str, *files: str, topic_id: str | None = topic_id_text(a_trim().topic_id)) -> int:
    """Every file takes a block at least; returns what they take."""
    folder = log_dir / name
    folder.mkdir()
    if topic_id is not None:
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    for file in files:
        (folder / file).write_bytes(b"x" * 5000)
    return sum((folder / file).stat().st_blocks * 512 for file in files)


def test_every_file_of_its_segments_counts_and_no_other(log_dir: Path) -> None:
    counted = [
        f"{0:020}.log",
        f"{0:020}.index",
        f"{1000:020}.log.deleted",
        f"{1000:020}.timeindex.deleted",
        f"{2000:020}.log",
        f"{2000:020}.snapshot",
    ]
    taken = make_folder(log_dir, "orders-0", *counted)
    for other in (f"{3000:020}.log", f"{3000:020}.snapshot", "leader-epoch-checkpoint"):
        (log_dir / "orders-0" / other).write_bytes(b"x" * 5000)

    assert files_left([trim_in(log_dir)]) == [Left(files=6, allocated_bytes=Bytes(taken))]


def test_a_producer_snapshot_by_itself_is_no_segment(log_dir: Path) -> None:
    """A restarted broker leaves one between segments that are gone."""
    make_folder(log_dir, "orders-0", f"{500:020}.snapshot", f"{2000:020}.snapshot", f"{3000:020}.log")

    assert files_left([trim_in(log_dir)]) == [NOTHING]


def test_a_producer_snapshot_that_waits_for_its_deletion_counts(log_dir: Path) -> None:
    taken = make_folder(log_dir, "orders-0", f"{1000:020}.snapshot.deleted")

    assert files_left([trim_in(log_dir)]) == [Left(files=1, allocated_bytes=Bytes(taken))]


def test_a_folder_that_waits_for_its_deletion_counts(log_dir: Path) -> None:
    taken = make_folder(log_dir, f"orders-0{UNIQUE}-delete", f"{0:020}.log")
    make_folder(log_dir, f"orders-1{UNIQUE}-delete", f"{0:020}.log")
    make_folder(log_dir, f"orders-0{UNIQUE}-future", f"{0:020}.log")

    assert files_left([trim_in(log_dir)]) == [Left(files=1, allocated_bytes=Bytes(taken))]


def test_a_topic_of_the_same_name_is_another_one(log_dir: Path) -> None:
    make_folder(log_dir, "orders-0", f"{0:020}.log", topic_id="x" * 22)
    make_folder(log_dir, f"orders-0{UNIQUE}-delete", f"{0:020}.log", topic_id="y" * 22)

    assert files_left([trim_in(log_dir)]) == [NOTHING]


def test_a_folder_that_does_not_tell_its_topic_may_be_it(log_dir: Path) -> None:
    make_folder(log_dir, "orders-0", f"{0:020}.log", topic_id=None)

    assert files_left([trim_in(log_dir)])[0].files == 1


def test_each_trim_has_its_own_answer_in_its_own_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_log_dir(tmp_path / name)
    make_folder(tmp_path / "a", "orders-1", f"{0:020}.log", f"{1000:020}.log")
    make_folder(tmp_path / "b", "orders-2", f"{0:020}.log")

    left = files_left([trim_in(tmp_path / "b", 2), trim_in(tmp_path / "a", 0), trim_in(tmp_path / "a", 1)])

    assert [each.files for each in left] == [1, 0, 2]


def test_a_log_dir_that_cannot_be_looked_at_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ObservationFailed, match="remaining segments unknown"):
        files_left([trim_in(tmp_path / "not-mounted")])


def test_an_empty_mount_point_is_not_a_log_dir_without_segments(log_dir: Path) -> None:
    (log_dir / "meta.properties").unlink()

    with pytest.raises(ObservationFailed, match="remaining segments unknown"):
        files_left([trim_in(log_dir)])

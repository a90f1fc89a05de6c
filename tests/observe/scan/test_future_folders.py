"""What is being moved into a log dir, by the names of the folders there."""

from pathlib import Path

import pytest

from brimline.model import FailureKind, ObservationFailed, TopicPartition
from brimline.observe.scan.names import partitions_moving_into

ID = "0123456789abcdef0123456789abcdef"


def test_only_future_folders_count(tmp_path: Path) -> None:
    for name in (
        f"orders-11.{ID}-future",
        f"a.b-c-0.{ID}-future",
        "orders-3",
        f"orders-4.{ID}-delete",
        f"orders-5.{ID}-stray",
        "nonsense-future",
    ):
        (tmp_path / name).mkdir()

    assert partitions_moving_into(str(tmp_path)) == (TopicPartition("a.b-c", 0), TopicPartition("orders", 11))


def test_a_log_dir_that_cannot_be_listed_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ObservationFailed, match="cannot be listed") as failed:
        partitions_moving_into(str(tmp_path / "gone"))

    assert failed.value.failure.kind is FailureKind.UNREADABLE

"""The verdicts on a writer's run, and what is read of a broker's log and of a probe."""

from collections import Counter
from pathlib import Path

import pytest

from brimline.model import BadInput
from brimline.torture.conformance.clients import RefusedSend
from brimline.torture.writers.command import Row, chosen, violations
from brimline.torture.writers.loads import WRITERS
from brimline.torture.writers.world import LogTail, is_refused, troubles

WELL = {
    "ended": False,
    "trouble": (),
    "offline": (),
    "brimline_ended": (),
    "was_fenced": True,
    "was_released": True,
}


def row(*, protected: bool, fenced_after: float | None, wrong: tuple[str, ...] = ()) -> Row:
    return Row(
        writer="produce",
        kafka_version="4.3.1",
        filesystem="tmpfs",
        protected=protected,
        run=1,
        seconds_alive=1.0,
        broker_alive=True,
        lowest_free_bytes=1,
        lowest_free_inodes=1,
        fenced_after=fenced_after,
        released_after=None,
        free_at_the_end=1,
        operations=1,
        operations_behind=1,
        violations=wrong,
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, ()),
        ({"was_fenced": False, "was_released": False}, ()),
        ({"ended": True, "was_released": False}, ("the broker ended",)),
        ({"trouble": ("a", "b", "c", "d")}, tuple(f"in the broker's log: {line}" for line in "abc")),
        ({"offline": ("/data",)}, ("offline: /data",)),
        ({"brimline_ended": ("guard-1 ended: ",)}, ("guard-1 ended: ",)),
        ({"was_released": False}, ("not released by itself after room came back",)),
    ],
)
def test_what_may_not_be(change: dict[str, object], found: tuple[str, ...]) -> None:
    assert violations(**{**WELL, **change}) == found  # type: ignore[arg-type]


def test_a_broker_that_was_never_fenced_proves_nothing() -> None:
    assert row(protected=True, fenced_after=1.0).verdict == "lived"
    assert row(protected=True, fenced_after=None).verdict == "lived, never fenced"
    assert row(protected=False, fenced_after=None).verdict == "lived"
    assert row(protected=True, fenced_after=1.0, wrong=("the broker ended",)).verdict == "VIOLATED"


@pytest.mark.parametrize(
    "line",
    [
        "java.io.IOException: No space left on device",
        "org.apache.kafka.common.errors.KafkaStorageException: Error while writing to checkpoint file",
        "Shutdown broker because all log dirs in [/data] have failed, all log dirs have failed",
        "java.lang.InternalError: a fault occurred in an unsafe memory access operation",
        "Marking its partition (c-0) as uncleanable",
    ],
)
def test_trouble_in_a_log(line: str) -> None:
    assert troubles(["[2026-01-01] INFO all is well", line]) == [line]


def test_a_log_is_read_on_where_it_was_left_and_across_its_roll(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    tail = LogTail(log)
    assert list(tail.more()) == []

    log.write_text("one\ntw")
    assert list(tail.more()) == ["one"]
    with log.open("a") as file:
        file.write("o\nthree\n")
    log.rename(tmp_path / "server.log.1")
    log.write_text("four\n")

    assert list(tail.more()) == ["two", "three", "four"]
    assert list(tail.more()) == []


def test_a_fence_says_why_and_a_lost_log_dir_does_not() -> None:
    assert is_refused(Counter([RefusedSend(56, "no space on /data")]))
    assert not is_refused(Counter([RefusedSend(56, ""), RefusedSend(6, "moved"), RefusedSend(0, "no answer")]))


def test_who_is_asked_for_and_to_be_had() -> None:
    names = {writer.name for writer in WRITERS}

    assert {writer.name for writer in chosen("", "4.3.1", "ext4")} == names
    assert names - {writer.name for writer in chosen("", "3.9.2", "tmpfs")} == {"inodes", "share-groups"}
    assert [writer.name for writer in chosen("commits", "3.9.2", "tmpfs")] == ["commits"]
    with pytest.raises(BadInput, match="no nobody"):
        chosen("nobody,commits", "4.3.1", "tmpfs")

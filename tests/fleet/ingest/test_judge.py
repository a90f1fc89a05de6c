"""Which files are taken in: every rule by itself, and in which order they count."""

from datetime import UTC, date, datetime, timedelta

import pytest

from brimline.fleet.ingest.file import Examined
from brimline.fleet.ingest.judge import FileVerdict, Known, judge
from brimline.landing.header import Header, Source
from brimline.landing.seal import BadSnapshot, QuarantineReason

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOTHING = Known(snapshots={}, refused=(), closed_before=None)


def whole(path: str, snapshot_id: str = "a1", taken_at: datetime = NOW) -> Examined:
    header = Header(
        snapshot_id=snapshot_id,
        cluster_id="c",
        broker_id=1,
        source=Source.GUARD,
        taken_at_ms=int(taken_at.timestamp() * 1000),
    )
    return Examined(path=path, file_bytes=10, header=header, failure=None)


def outcome(verdict: FileVerdict) -> tuple[list[str], list[tuple[str, str]]]:
    return [each.path for each in verdict.accepted], [(each.path, each.reason) for each in verdict.refused]


def test_a_whole_snapshot_is_accepted() -> None:
    assert outcome(judge([whole("/a")], NOTHING, NOW)) == (["/a"], [])


def test_a_bad_one_is_refused_for_its_reason_and_the_others_are_not() -> None:
    bad = Examined(path="/b", file_bytes=3, header=None, failure=BadSnapshot(QuarantineReason.TRUNCATED, "3 bytes"))

    assert outcome(judge([bad, whole("/a")], NOTHING, NOW)) == (["/a"], [("/b", "truncated")])


@pytest.mark.parametrize(
    ("ahead", "refused"), [(timedelta(hours=1), []), (timedelta(hours=1, milliseconds=1), [("/a", "clock-in-future")])]
)
def test_a_clock_may_be_an_hour_ahead(ahead: timedelta, refused: list[tuple[str, str]]) -> None:
    assert outcome(judge([whole("/a", taken_at=NOW + ahead)], NOTHING, NOW))[1] == refused


@pytest.mark.parametrize(("closed_before", "refused"), [(date(2026, 1, 31), []), (date(2026, 2, 1), [("/a", "late")])])
def test_what_is_from_before_the_day_that_was_thinned_is_late(
    closed_before: date, refused: list[tuple[str, str]]
) -> None:
    known = Known(snapshots={}, refused=(), closed_before=closed_before)

    assert outcome(judge([whole("/a")], known, NOW))[1] == refused


def test_of_two_files_with_one_snapshot_the_first_by_name_is_taken() -> None:
    verdict = judge([whole("/b"), whole("/a")], NOTHING, NOW)

    assert outcome(verdict) == (["/a"], [("/b", "duplicate")])
    assert verdict.refused[0].detail == "the same snapshot as /a"


def test_a_snapshot_that_was_taken_in_from_another_file_is_a_duplicate() -> None:
    known = Known(snapshots={"a1": "/before"}, refused=(), closed_before=None)

    assert outcome(judge([whole("/a")], known, NOW)) == ([], [("/a", "duplicate")])


def test_a_file_that_was_taken_in_before_is_neither_taken_nor_refused() -> None:
    known = Known(snapshots={"a1": "/a"}, refused=(), closed_before=None)

    assert outcome(judge([whole("/a")], known, NOW)) == ([], [])


def test_a_file_that_was_refused_before_stays_refused_and_is_not_counted_again() -> None:
    known = Known(snapshots={}, refused={"/a"}, closed_before=None)

    assert outcome(judge([whole("/a")], known, NOW)) == ([], [])

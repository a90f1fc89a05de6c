import io
from collections.abc import Iterator

import pytest

from brimline.fleet.jobs.run import rounds
from brimline.fleet.session.progress import Lines, Progress


def ticking(*moments: float) -> Iterator[float]:
    yield from moments


def lines_of(rows: int | None, note: str, *, failure: str | None = None) -> str:
    out, clock = io.StringIO(), ticking(10.0, 12.5)
    with Progress(Lines(out), lambda: next(clock)).step("ingest") as step:
        step.rows, step.note, step.failure = rows, note, failure
    return out.getvalue()


@pytest.mark.parametrize(
    ("rows", "note", "line"),
    [
        (500_000, "27 snapshots", "ingest: 500,000 rows, 27 snapshots in 2.5 s, 200,000 rows/s\n"),
        (3, "", "ingest: 3 rows in 2.5 s\n"),
        (0, "", "ingest: 0 rows in 2.5 s\n"),
        (None, "", "ingest: nothing new in 2.5 s\n"),
    ],
)
def test_a_step_that_has_ended_is_a_line(rows: int | None, note: str, line: str) -> None:
    assert lines_of(rows, note) == line


def test_a_step_that_failed_says_why() -> None:
    assert lines_of(None, "", failure="no such place") == "ingest: failed: no such place\n"


def test_one_round_unless_told_otherwise() -> None:
    assert list(rounds(None, lambda _: None, lambda: 0.0)) == [0]


def test_rounds_begin_at_every_interval_and_a_long_one_delays_no_other() -> None:
    """Rounds of 4, 25 and 1 s, every 10 s: they begin at 0, 10, 35 and 45."""
    now, began = [0.0], []

    def wait(seconds: float) -> None:
        now[0] += seconds

    for number in rounds(10.0, wait, lambda: now[0]):
        began.append(now[0])
        if number == 3:
            break
        now[0] += (4.0, 25.0, 1.0)[number]

    assert began == [0.0, 10.0, 35.0, 45.0]

"""Bars, tables and the timeline say in words what they show in colours."""

from datetime import UTC, datetime

from brimline.documents.history import Happening, Timeline
from brimline.pages.parts import GOOD, Bar, timeline

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_bar_says_what_it_draws() -> None:
    bar = Bar(used=76.25, kind=GOOD, ceiling=80.0, fence=90.0)

    assert bar.label == "76.2 % used; ceiling 80.0 %; full at 90.0 %"
    assert 'aria-label="76.2 % used; ceiling 80.0 %; full at 90.0 %"' in bar.drawn()
    assert '<rect class="fill good" width="76.25" height="10">' in bar.drawn()
    assert '<line class="mark ceiling" x1="80.00"' in bar.drawn()
    assert '<line class="mark fence" x1="90.00"' in bar.drawn()


def test_unknown_is_not_zero() -> None:
    assert Bar(used=None, kind=GOOD).label == "use unknown"


def test_a_bar_ends_where_the_disk_ends() -> None:
    assert 'width="100.00"' in Bar(used=140.0, kind=GOOD).drawn()


def happened(minute: int, sentence: str) -> Happening:
    return Happening(at=NOW.replace(minute=minute), what="disk-full", level="warning", by="guard", sentence=sentence)


def test_the_timeline_begins_with_the_newest() -> None:
    history = Timeline(broker=1, events=tuple(happened(minute, f"event {minute}") for minute in range(5)))

    shown = timeline(history, 3)

    assert "event 1" not in shown
    assert shown.index("event 4") < shown.index("event 3") < shown.index("event 2")
    assert "2 older events not shown" in shown
    assert '<time datetime="2026-01-31T12:04:00.000Z">2026-01-31 12:04:00</time>' in shown
    assert '<span class="word warn">FULL</span>' in shown


def test_a_quiet_week_and_a_damaged_record_are_said() -> None:
    assert "Nothing happened" in timeline(Timeline(broker=1, events=()), 10)
    assert "INCOMPLETE" in timeline(Timeline(broker=1, events=(), incomplete=("journal: damaged",)), 10)

"""A disk's page on the guard: what is kept of its past, and what is said of a disk that cannot be looked at."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from brimline.decide.disk_state import DiskLimits
from brimline.disks.task import DiskReport
from brimline.documents.guard_state import FailureDocument, GuardState
from brimline.documents.history import Timeline
from brimline.guard.client import read_state
from brimline.guard.disk_pages import DiskPages, NoSuchDisk, ReadingsOfDisk
from brimline.guard.feature import Core
from brimline.metrics.board import MetricBoard
from brimline.pages.disk_page import DiskQuery, disk_answer
from tests.guard.files import config
from tests.pages.test_guard_page import GOLDEN, volume
from tests.pages.test_html import Parsed
from tests.service.ticking import TickingClock

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def pages(state: GuardState) -> DiskPages:
    core = Core(config(""), TickingClock(), MetricBoard(), DiskReport(limits=DiskLimits()))
    return DiskPages(core, lambda: state, lambda: Timeline(broker=1, events=()))


@pytest.fixture
def state() -> GuardState:
    return read_state(GOLDEN.read_text(), "http://here")


def test_readings_cover_all_the_time_in_a_bounded_number() -> None:
    kept = ReadingsOfDisk()

    for second in range(0, 200_000, 2):
        kept.add(NOW + timedelta(seconds=second), float(second), 50.0)

    moments = [reading.at for reading in kept.kept]
    apart = {later - earlier for earlier, later in pairwise(moments)}
    assert 300 < len(moments) <= 720
    assert moments[0] == NOW
    assert NOW + timedelta(seconds=200_000) - moments[-1] <= max(apart)
    assert max(apart) <= 2 * min(apart)


def test_a_device_that_is_not_there_is_named_with_those_that_are(state: GuardState) -> None:
    known = replace(state, volumes=(volume("/a", device="8:1"), volume("/b", device="8:2")))

    with pytest.raises(NoSuchDisk, match="no device 9:9: it has 8:1, 8:2"):
        pages(known).seen(DiskQuery.of("device=9:9"))


def test_a_disk_that_cannot_be_read_is_not_looked_at(state: GuardState) -> None:
    """It could hang whoever lists it."""
    failure = FailureDocument(kind="stalled", message="statvfs has not answered for 40 s")
    gone = volume("/a", device="8:1", state="unknown", used_percent=None, total_bytes=None, failure=failure)
    query = DiskQuery.of("device=8:1&ceiling=70")

    page = disk_answer(pages(replace(state, volumes=(gone,))).seen(query), query)

    text = Parsed(page.decode()).text
    assert "deletions unknown: statvfs has not answered for 40 s" in text
    assert "No readings of this disk yet." in text
    assert "Topics on this disk: unknown." in text

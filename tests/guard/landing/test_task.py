"""Snapshots at their interval, whatever becomes of them."""

import io
import logging
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from brimline.documents.codec import to_json
from brimline.guard.landing.child import Delivered, WriterFailed
from brimline.guard.landing.feature import LandingNews, landing_document, landing_families
from brimline.guard.landing.task import LandingReport, LandingSettings, LandingTask
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.landing.header import Header, Source
from brimline.landing.sections import Sections
from brimline.metrics.board import MetricBoard
from brimline.model import BadInput, BrokerId, Failure, FailureKind, ObservationFailed
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry, PropertyReader
from brimline.service.log_lines import LOGGER, set_up
from brimline.settings.gateway import refuse_landing
from tests.service.ticking import TickingClock

SENT = Delivered(name="snapshots/c/1/x", bytes=100, sent=1, dropped=0, waiting=0, waiting_bytes=0, failure=None)
WAITS = replace(SENT, sent=0, waiting=1, waiting_bytes=100, failure="no room")
SILENT = ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="broker 1 is down"))


class World:
    """A task whose survey and writer do what they are told."""

    def __init__(self) -> None:
        self.clock = TickingClock()
        self.cluster: str | None = "cluster"
        self.survey_fails: ObservationFailed | None = None
        self.outcome: Delivered | WriterFailed = SENT
        self.headers: list[Header] = []
        self.settings = LandingSettings(interval=300.0, spool_bytes=1000)
        self.reports: list[LandingReport] = []
        self.task = LandingTask(
            BrokerId(1),
            lambda: self.cluster,
            self.survey,
            lambda _: {},
            self,
            self.clock,
            lambda: self.settings,
            self.reports.append,
        )

    def survey(self) -> ReclaimSurvey:
        if self.survey_fails is not None:
            raise self.survey_fails
        return cast(ReclaimSurvey, SimpleNamespace(made_at=self.clock.now()))

    def write(self, header: Header, sections: Sections, spool_bytes: int) -> Delivered:
        assert (sections, spool_bytes) == ({}, self.settings.spool_bytes)
        self.headers.append(header)
        self.clock.tick(2.0)
        if isinstance(self.outcome, WriterFailed):
            raise self.outcome
        return self.outcome

    def after(self, seconds: float) -> LandingReport:
        self.clock.tick(seconds)
        self.task.step()
        return self.task.report


@pytest.fixture
def world() -> World:
    return World()


def test_a_snapshot_at_once_and_then_at_every_interval(world: World) -> None:
    waits = [world.task.step()]
    world.clock.tick(10)
    waits.append(world.task.step())

    assert waits == [298.0, 288.0]
    assert world.after(288).sent == 2
    first, second = world.headers
    assert (first.cluster_id, first.broker_id, first.source) == ("cluster", 1, Source.GUARD)
    assert first.snapshot_id != second.snapshot_id
    assert second.taken_at_ms - first.taken_at_ms == 300_000


def test_a_shorter_interval_takes_effect_at_once(world: World) -> None:
    world.task.step()
    world.settings = LandingSettings(interval=10.0, spool_bytes=1000)

    assert world.task.step() == 10.0
    assert world.after(10).sent == 2


def test_a_landing_that_fails_is_counted_and_tried_again_at_the_next_interval(world: World) -> None:
    world.outcome = WAITS
    report = world.after(0)
    assert (report.sent, report.waiting, report.waiting_bytes, report.landed, report.failure) == (
        0,
        1,
        100,
        None,
        "no room",
    )

    world.outcome = replace(SENT, sent=2)
    report = world.after(300)

    assert (report.sent, report.waiting, report.failure) == (2, 0, None)
    assert report.landed == world.clock.seconds()


def test_a_writer_that_fails_leaves_the_last_figures_and_says_why(world: World) -> None:
    good = world.after(0)
    world.outcome = WriterFailed("it was killed")
    report = world.after(300)

    assert report == replace(good, failed=1, failure="it was killed")
    assert world.task.step() == 298.0


def test_a_broker_that_does_not_answer_is_asked_again_soon(world: World) -> None:
    world.survey_fails = SILENT
    wait = world.task.step()

    assert wait == 10.0
    assert world.task.report.failure == "the broker's state is unknown: broker 1 is down"
    world.survey_fails = None
    assert world.after(10).sent == 1


def test_without_a_cluster_id_there_is_no_snapshot(world: World) -> None:
    world.cluster = None

    assert "meta.properties" in (world.after(0).failure or "")
    assert world.headers == []


@pytest.mark.parametrize("cluster", ["\ud800", "é" * 200])
def test_a_cluster_id_that_can_name_no_folder_is_told_and_the_task_lives(world: World, cluster: str) -> None:
    world.cluster = cluster

    report = world.after(0)

    assert "cluster id" in (report.failure or "")
    assert (report.failed, world.headers) == (1, [])


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handlers, level, propagate = LOGGER.parent.handlers, LOGGER.parent.level, LOGGER.parent.propagate  # type: ignore[union-attr]
    set_up(stream, "text", "info")
    yield stream
    program = logging.getLogger("brimline")
    program.handlers, program.propagate = handlers, propagate
    program.setLevel(level)


def test_one_line_when_it_fails_and_one_when_it_works_again(log: io.StringIO) -> None:
    news = LandingNews("s3://key:secret@bucket/fleet")
    fails = LandingReport(waiting=1, failure="no room")
    for report in (LandingReport(sent=1, landed=1.0, name="a"), LandingReport(sent=2, landed=2.0, name="b")):
        news.tell(report)
    for report in (fails, replace(fails, waiting=2), replace(fails, dropped=1), LandingReport(landed=3.0, name="c")):
        news.tell(report)

    events = [line.split()[2] for line in log.getvalue().splitlines()]
    assert events == ["landing-works", "landing-fails", "landing-fails", "landing-works"]
    assert "secret" not in log.getvalue()
    assert "2 wait" not in log.getvalue()


def test_the_state_document_shows_no_secret() -> None:
    report = LandingReport(sent=1, name="n", bytes=5, landed=90.0, took=1.23456, waiting=2, waiting_bytes=7)

    assert landing_document(None, "", 100.0) is None
    assert to_json(landing_document(report, "s3://key:secret@bucket", 100.0)) == {
        "uri": "s3://…@bucket",
        "last": "n",
        "lastBytes": 5,
        "lastSeconds": 1.235,
        "ageSeconds": 10.0,
        "sent": 1,
        "failed": 0,
        "dropped": 0,
        "spool": {"snapshots": 2, "bytes": 7},
        "failure": None,
    }


def test_metrics_count_and_age() -> None:
    board, clock = MetricBoard(), TickingClock()
    board.put(*landing_families(LandingReport(failed=1), clock.seconds()))
    before = {family.name for family in board.families()}
    landed = LandingReport(sent=3, bytes=10, took=0.5, landed=clock.seconds() - 7)
    board.put(*landing_families(landed, clock.seconds()))
    values = {family.name: list(family.values) for family in board.families()}

    assert "landing_age_seconds" not in before
    assert values["landing_snapshots"] == [3, 0, 0]
    assert values["landing_age_seconds"] == [7.0]
    assert values["landing_snapshot_bytes"] == [10]


@pytest.mark.parametrize(
    ("uri", "installed", "words"),
    [
        ("relative/path", True, "an absolute path, or a URI"),
        ("/landing", False, r"pip install 'brimline\[fleet\]'"),
        ("s3://key:secret@bucket/fleet", False, "needs pyarrow"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(uri: str, words: str, *, installed: bool) -> None:
    reader = PropertyReader(JavaProperties([PropertyEntry("brimline.landing.uri", uri, "server.properties")]))

    with pytest.raises(BadInput, match=words) as refused:
        refuse_landing(reader, uri, lambda _: installed)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("uri", ["", "/landing", "s3://bucket/fleet", "hdfs://host:8020/fleet"])
def test_what_can_work_is_not_refused(uri: str) -> None:
    reader = PropertyReader(JavaProperties([PropertyEntry("brimline.landing.uri", uri, "server.properties")]))

    refuse_landing(reader, uri, lambda _: True)

"""Since when a transaction is open: by its coordinator, else since it was first seen here or its file last written."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from brimline.decide.reclaim import plan as reclaim
from brimline.guard.reclaim.hanging import Hanging, HangingWatch
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.model import Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.model.reclaim import HANGING_MS, ReclaimPolicy
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.observe.cluster.transactions import Started
from tests.guard.reclaim.surveys import NOW_MS, ADisk, ALog

ORDERS = TopicPartition("orders", 0)
OLD, YOUNG = NOW_MS - HANGING_MS, NOW_MS - HANGING_MS + 1
OPEN_AT = 150


class Coordinators:
    def __init__(self, started: Started) -> None:
        self.started: Started | None = started
        self.asked = 0

    def open_transactions(self, _facts: ReplicaFacts, _partitions: Collection[TopicPartition]) -> Started:
        self.asked += 1
        if self.started is None:
            raise ObservationFailed(Failure(kind=FailureKind.TIMED_OUT, message="no answer"))
        return self.started


def survey(seconds: float = 0.0, open_at: int = OPEN_AT, written_ms: int = NOW_MS) -> ReclaimSurvey:
    """Records of a hundred hours ago, whatever has happened when."""
    disk = ADisk(logs=[ALog(topic="orders", hours=[100] * 5)], used=90)
    found = replace(disk, policy=ReclaimPolicy(ceiling_percent=50, spares_transactions=True)).survey()
    tables = found.tables.tables
    logs = replace(tables.logs, last_stable_offset=np.array([open_at], dtype=np.int64))
    written = np.array([NOW_MS, written_ms, NOW_MS, NOW_MS, NOW_MS], dtype=np.int64) * 1_000_000
    tables = replace(tables, logs=logs, segments=replace(tables.segments, modified_ns=written))
    return replace(found, seconds=seconds, tables=replace(found.tables, tables=tables), plan=reclaim.plan(tables))


def looked(watch: HangingWatch, at: ReclaimSurvey) -> tuple[Hanging, ...]:
    return watch.look(at, at.plan)


@pytest.mark.parametrize(("started", "known"), [({ORDERS: OLD}, [True]), ({ORDERS: YOUNG}, []), ({}, [])])
def test_its_coordinator_says_when_it_began(started: Started, known: list[bool]) -> None:
    found = looked(HangingWatch(Coordinators(started)), survey(written_ms=OLD))

    assert [each.is_known for each in found] == known


@pytest.mark.parametrize("started", [{ORDERS: None}, None], ids=["nobody knows it", "nobody answers"])
def test_else_it_is_as_old_as_it_was_seen_here(started: Started | None) -> None:
    coordinators = Coordinators({})
    coordinators.started = started
    watch = HangingWatch(coordinators)
    first = looked(watch, survey())
    later = looked(watch, survey(seconds=HANGING_MS / 1000 - 1))
    at_last = looked(watch, survey(seconds=HANGING_MS / 1000))
    another = looked(watch, survey(seconds=HANGING_MS / 1000, open_at=160))

    assert (first, later, another) == ((), (), ())
    assert [each.is_known for each in at_last] == [False]


def test_or_as_the_last_write_to_the_file_that_it_begins_in() -> None:
    assert looked(HangingWatch(Coordinators({ORDERS: None})), survey(written_ms=OLD))[0].offset == OPEN_AT
    assert looked(HangingWatch(Coordinators({ORDERS: None})), survey(written_ms=YOUNG)) == ()


def test_nobody_is_asked_where_nothing_is_blocked() -> None:
    coordinators = Coordinators({ORDERS: OLD})

    assert looked(HangingWatch(coordinators), survey(open_at=10**9)) == ()
    assert coordinators.asked == 0

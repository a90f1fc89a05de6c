"""A survey: what is looked at in which order, which log is left out and why, and what of it goes on record."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from brimline.act.ledger.entries import CycleId, SegmentRange
from brimline.decide.reclaim.floor import FloorKind
from brimline.decide.reclaim.summary import blast_radius
from brimline.guard.clock_memory import Boot, ClockMemory
from brimline.guard.reclaim.survey import Surveyor
from brimline.guard.reclaim.trims import cycle_plan, doomed_range, planned_trims
from brimline.guard.survey import milliseconds
from brimline.model import ObservationFailed, Offset, TopicPartition
from brimline.model.blast_radius import ConsumerGroup, GroupActivity, GroupsSeen
from brimline.model.reclaim import CleanupRules, ReclaimPolicy, ReclaimTables
from brimline.model.reclaim_plan import DeviceOutcome, ReclaimPlan, ReclaimReason
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.observe.volumes import LogDirReading
from tests.guard.brokers import log_dir as described_log_dir
from tests.guard.reclaim.brokers import LOG_BYTES, SEGMENT, SmallBroker
from tests.service.ticking import TickingClock

CEILING = ReclaimPolicy(ceiling_percent=50)
BILLS = TopicPartition("bills", 0)


class Watched(SmallBroker):
    """Remembers in which order it was asked, and lets something happen in between."""

    def __init__(self, root: Path, clock: TickingClock, **segments: int) -> None:
        super().__init__(root, clock, **segments)
        self.asked: list[str] = []
        self.moves_elsewhere = False

    def replica_facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts:
        self.asked.append("cluster")
        self.retention_pass()
        facts = super().replica_facts(partitions)
        if not self.moves_elsewhere:
            return facts
        future = described_log_dir("/other", [("bills", 0, 10, True)])
        return replace(facts, answer=replace(facts.answer, log_dirs={**facts.answer.log_dirs, "/other": future}))

    def disk(self, path: str, known: str | None, observed_at: datetime, seconds: float) -> LogDirReading:
        self.asked.append("disk")
        return super().disk(path, known, observed_at, seconds)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def broker(tmp_path: Path, clock: TickingClock) -> Watched:
    made = Watched(tmp_path, clock, bills=8, orders=8)
    made.fill_to(60)
    return made


@pytest.fixture
def surveyor(broker: Watched, clock: TickingClock) -> Surveyor:
    return Surveyor(broker, clock, broker.disk)


def standing(surveyor: Surveyor, broker: Watched, topic: str) -> ReclaimReason:
    survey = surveyor.survey(CEILING, [str(broker.log_dir)])
    tables = survey.tables.tables
    (row,) = [n for n in range(len(tables.logs)) if tables.topic_partition(n) == TopicPartition(topic, 0)]
    return ReclaimReason(int(survey.plan.logs.standing[row]))


def test_what_goes_away_while_it_is_looked_is_not_planned_for(broker: Watched, surveyor: Surveyor) -> None:
    """Seven segments go between the look at the files and that at the disk."""
    broker.log_starts["orders"] = 7 * SEGMENT + 1

    survey = surveyor.survey(CEILING, [str(broker.log_dir)])

    assert broker.asked == ["cluster", "disk"]
    assert survey.plan.devices[0].outcome is DeviceOutcome.UNDER_CEILING
    assert planned_trims(survey, "8:1") == ()


def test_the_second_look_sees_what_others_trimmed(broker: Watched, surveyor: Surveyor) -> None:
    survey = surveyor.survey(CEILING, [str(broker.log_dir)])
    broker.log_starts["orders"] = 7 * SEGMENT + 1
    again = surveyor.again(survey)

    assert survey.plan.devices[0].outcome is DeviceOutcome.ENOUGH_TAKEN
    assert again.plan.devices[0].outcome is DeviceOutcome.GOING_SUFFICES
    assert again.plan.devices[0].going.log_start >= 7 * LOG_BYTES


def test_the_second_look_keeps_what_a_leader_does_not_tell(broker: Watched, surveyor: Surveyor) -> None:
    broker.log_starts["bills"] = 7 * SEGMENT
    survey = surveyor.survey(CEILING, [str(broker.log_dir)])
    broker.leaderless.add("bills")

    again = surveyor.again(survey)

    assert again.facts.log_starts[BILLS] == 7 * SEGMENT
    assert again.plan.devices[0].taken_segments == 0


def test_what_a_silent_leader_is_waited_for_does_not_slow_down_the_batches(
    broker: Watched, surveyor: Surveyor, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(partitions: Collection[TopicPartition]) -> ReplicaFacts:
        clock.tick(30)
        return Watched.replica_facts(broker, partitions)

    monkeypatch.setattr(broker, "replica_facts", slow)

    assert surveyor.survey(CEILING, [str(broker.log_dir)]).took < 1


def test_what_the_broker_moves_to_another_log_dir_is_left_out(broker: Watched, surveyor: Surveyor) -> None:
    """Even though that log dir is on another device, and not looked at here."""
    broker.moves_elsewhere = True

    assert standing(surveyor, broker, "bills") is ReclaimReason.MOVING
    assert standing(surveyor, broker, "orders") is ReclaimReason.CANDIDATE


def test_a_topic_without_rules_or_a_leader_is_left_out(broker: Watched, surveyor: Surveyor) -> None:
    broker.leaderless.add("orders")
    del broker.rules["bills"]

    assert standing(surveyor, broker, "orders") is ReclaimReason.OFFSETS_UNKNOWN
    assert standing(surveyor, broker, "bills") is ReclaimReason.TOPIC_UNKNOWN


def test_a_topic_that_may_not_be_trimmed_is_left_out_and_part_of_the_floor(broker: Watched, surveyor: Surveyor) -> None:
    broker.forbidden.add("bills")
    floor = surveyor.survey(CEILING, [str(broker.log_dir)]).floor(0)

    assert standing(surveyor, broker, "bills") is ReclaimReason.VIEWS_DISAGREE
    assert floor is not None
    (part,) = [part for part in floor.parts if part.kind is FloorKind.UNCERTAIN]
    assert [share.topic for share in part.topics] == ["bills"]


def test_the_floor_is_named_by_its_log_dirs(broker: Watched, surveyor: Surveyor) -> None:
    floor = surveyor.survey(CEILING, [str(broker.log_dir)]).floor(0)

    assert floor is not None
    assert f"of the volume of {broker.log_dir} cannot be removed" in floor.sentence


def test_the_trims_are_whole_segments_oldest_first(broker: Watched, surveyor: Surveyor) -> None:
    survey = surveyor.survey(CEILING, [str(broker.log_dir)])
    bills, orders = planned_trims(survey, "8:1")

    assert (bills.partition, bills.log_dir, bills.log_start, bills.target) == (BILLS, str(broker.log_dir), 0, 300)
    assert bills.segments == SegmentRange(first=Offset(0), last=Offset(2 * SEGMENT), count=3)
    assert (orders.partition.topic, orders.segments.count) == ("orders", 2)
    assert bills.allocated_bytes + orders.allocated_bytes == survey.device_plan("8:1").taken_bytes
    assert bills.oldest_ms <= orders.oldest_ms


def test_who_loses_by_a_trim_stands_in_its_reason(broker: Watched, surveyor: Surveyor) -> None:
    survey = surveyor.survey(CEILING, [str(broker.log_dir)])
    committed = {BILLS: Offset(50)}
    groups = [ConsumerGroup(name=f"g{n}", activity=GroupActivity.EMPTY, committed=committed) for n in range(7)]
    doomed = [doomed_range(trim) for trim in planned_trims(survey, "8:1")]
    losses = blast_radius(doomed, GroupsSeen(groups=tuple(groups), asked=7))

    bills, orders = cycle_plan(survey, "8:1", CycleId("8:1-1"), "guard", losses).trims

    assert bills.reason.endswith("group g4 (250 records) and 2 more")
    assert "not read" not in orders.reason


def test_what_retention_removes_anyway_is_not_lost_by_the_trim_behind_it(broker: Watched, surveyor: Surveyor) -> None:
    broker.rules["bills"] = CleanupRules(retention_ms=-1, retention_bytes=6 * LOG_BYTES)
    trims = planned_trims(surveyor.survey(CEILING, [str(broker.log_dir)]), "8:1")

    (bills,) = [trim for trim in trims if trim.partition == BILLS]
    assert (bills.log_start, bills.segments.first) == (0, 2 * SEGMENT)
    assert doomed_range(bills).begin == 2 * SEGMENT


def test_a_plan_says_what_it_is_for(broker: Watched, surveyor: Surveyor) -> None:
    plan = cycle_plan(surveyor.survey(CEILING, [str(broker.log_dir)]), "8:1", CycleId("8:1-1"), "guard")

    assert (plan.device, plan.log_dirs, plan.ceiling_percent) == ("8:1", (str(broker.log_dir),), 50)
    assert plan.used_bytes - plan.total_bytes * 50 // 100 - plan.going_bytes == plan.excess_bytes
    assert plan.planned_bytes >= plan.excess_bytes


def test_files_that_no_plan_can_be_made_of_are_surveyed_all_the_same(
    broker: Watched, surveyor: Surveyor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot for the fleet needs no plan."""

    def refuse(_tables: ReclaimTables) -> ReclaimPlan:
        raise ValueError("a segment twice")

    monkeypatch.setattr("brimline.decide.reclaim.plan.plan", refuse)
    path = str(broker.log_dir)

    with pytest.raises(ObservationFailed, match=r"no plan can be made for .*: a segment twice"):
        surveyor.survey(CEILING, [path])

    assert surveyor.inspect(CEILING, [path]).tables.log_dirs == (path,)


class Remembered:
    """A surveyor whose machine was started this moment, and what it files."""

    def __init__(self, broker: Watched, clock: TickingClock, folder: Path) -> None:
        self.memory = ClockMemory(folder, 1, writes=True, boot=lambda: Boot(id="a", seconds=0.0))
        self.surveyor = Surveyor(broker, clock, broker.disk, memory=self.memory)
        self.log_dir = str(broker.log_dir)

    def counts_from(self) -> int | None:
        self.surveyor.survey(CEILING, [self.log_dir])
        return self.memory.expected_ms()


def test_a_clock_that_jumped_is_doubted_until_another_machine_or_a_person_confirms_it(
    broker: Watched, clock: TickingClock, tmp_path: Path
) -> None:
    now_ms = milliseconds(clock.now())
    yesterday = now_ms - 24 * 3_600_000
    ClockMemory(tmp_path, 1, writes=True, boot=lambda: Boot(id="a", seconds=0.0)).write(yesterday)

    first, second = Remembered(broker, clock, tmp_path), Remembered(broker, clock, tmp_path)
    doubted = [first.counts_from(), second.counts_from(), Remembered(broker, clock, tmp_path).counts_from()]
    first.memory.path.unlink()
    confirmed = [first.counts_from(), second.counts_from()]
    first.memory.write(yesterday)
    broker.second_clock = now_ms

    assert doubted == [approx(yesterday)] * 3
    assert confirmed == [approx(now_ms)] * 2, "a task of another device hears of it"
    assert Remembered(broker, clock, tmp_path).counts_from() == approx(now_ms)


def approx(time_ms: int) -> object:
    """A second a look is forgiven."""
    return pytest.approx(time_ms, abs=10_000)

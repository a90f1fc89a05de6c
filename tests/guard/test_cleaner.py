"""The cleaner is held, ended, let run and let go through the broker's own settings; with a broker in memory."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.decide.unfenced_writes import ReservePart
from brimline.disks.reserves import VolumeReserve
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Weight
from brimline.guard.cleaner import (
    BACKOFF,
    BACKOFFS,
    DELETE_DELAY,
    HELD_RATIO,
    PACE,
    PACE_MARK,
    RATIO,
    WINDOW_AFTER,
    WINDOW_DELAY,
    CleanerHold,
)
from brimline.guard.feature import Core
from brimline.metrics.board import MetricBoard
from brimline.model import Bytes, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.dynamic_values import BROKER, TOPIC, Place, Values
from brimline.observe.volumes import VolumeReading
from tests.guard.files import config
from tests.service.ticking import TickingClock

MIB = 1 << 20
OFFSETS = "__consumer_offsets"
REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs ALTER_CONFIGS on the cluster")


class BrokerInMemory:
    def __init__(self) -> None:
        self.values: dict[Place, str] = {}
        self.refuses: set[str] = set()
        self.changes: list[Values] = []
        self.is_down = False
        self.own_pace: float | None = None

    def own_values(self, places: Collection[Place]) -> Values:
        if self.is_down:
            raise ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="gone"))
        return {each: self.values.get(each) for each in places if each.resource == BROKER or each.name == OFFSETS}

    def check(self, values: Values) -> None:
        self.own_values(values)
        if any(place.resource in self.refuses for place in values):
            raise ObservationFailed(REFUSED)

    def pace(self) -> float | None:
        return self.own_pace

    def alter(self, values: Values) -> None:
        self.check(values)
        if values:
            self.changes.append(dict(values))
        for place, value in values.items():
            self.values.pop(place, None)
            if value is not None:
                self.values[place] = value


class Held:
    """One volume whose limit keeps 1 GiB free, and a compacted topic with groups of 100 MiB on it."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.clock = TickingClock()
        self.broker = BrokerInMemory()
        settings = config(f"brimline.enforcement=gateway\nbrimline.state.dir={folder}\n{more}")
        self.core = Core(settings, self.clock, MetricBoard(), DiskReport(limits=DiskLimits()))
        part = ReservePart(what="cleaner", bytes=Bytes(100 * MIB))
        self.core.reserves.volumes = (VolumeReserve(log_dirs=("/data/a",), parts=(part,)),)
        self.feature = CleanerHold(self.core, self.broker)
        self.offline: frozenset[str] = frozenset()
        self.kept_mib = 1024

    def at(self, usable_mib: int, after: float = 1.0) -> dict[str, str]:
        """One step with so much usable; the broker's own settings by key, a topic's with its name before it."""
        self.clock.tick(after)
        usable = usable_mib * MIB
        reading = VolumeReading(
            device="8:1",
            log_dirs=("/data/a",),
            total_bytes=Bytes(100 << 30),
            usable_bytes=Bytes(usable),
            reserved_bytes=Bytes(0),
            observed_at=self.clock.now(),
            seconds=self.clock.seconds(),
        )
        volume = VolumeStatus(
            reading=reading,
            fullness=DiskState.FULL if usable_mib < self.kept_mib else DiskState.OK,
            offline=self.offline,
            breaches=(),
            bytes_to_limit=Bytes(usable - self.kept_mib * MIB),
            fill_rate=None,
            seconds_left=None,
            next_look=1.0,
        )
        self.core.disks = DiskReport(volumes=(volume,), limits=DiskLimits())
        self.feature.step()
        return self.settings

    @property
    def settings(self) -> dict[str, str]:
        names = {
            place: place.key if place.resource == BROKER else f"{place.name} {place.key}"
            for place in self.broker.values
        }
        return {names[place]: value for place, value in self.broker.values.items()}

    @property
    def words(self) -> list[tuple[str, Weight]]:
        return [(each.key, each.weight) for each in self.feature.notices()]


STATE_TOPIC = {f"{OFFSETS} min.cleanable.dirty.ratio": "0.5", f"{OFFSETS} file.delete.delay.ms": "1000"}


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


def test_with_room_nothing_is_borrowed(held: Held) -> None:
    assert held.at(5000) == {}
    assert held.words == []


def test_near_the_limit_no_cleaning_begins_and_the_offsets_go_on(held: Held) -> None:
    assert held.at(1200) == {RATIO: HELD_RATIO, BACKOFF: BACKOFFS[0], **STATE_TOPIC}
    assert held.words == [("held", Weight.NOTE)]


def test_what_is_under_way_is_ended_by_a_change_in_the_same_request(held: Held) -> None:
    held.at(500)

    assert held.settings == {RATIO: HELD_RATIO, BACKOFF: BACKOFFS[0], **STATE_TOPIC}
    assert len(held.broker.changes) == 1
    held.at(500)
    assert len(held.broker.changes) == 1, "once is enough"


def test_all_of_it_comes_back(held: Held) -> None:
    held.at(1200)
    held.at(500)

    assert held.at(5000) == {}
    assert held.words == []


def test_a_window_deletes_at_once_and_its_end_ends_the_cleaning_again(held: Held) -> None:
    held.at(500)
    held.at(800, after=1.0)

    window = held.at(800, after=WINDOW_AFTER + 1)
    pace = f"{256 * MIB}{PACE_MARK}"
    assert window == {DELETE_DELAY: WINDOW_DELAY, PACE: pace, BACKOFF: BACKOFFS[0], **STATE_TOPIC}
    assert held.at(700) == window, "a change would end what runs"

    again = held.at(100)
    assert again == {RATIO: HELD_RATIO, BACKOFF: BACKOFFS[1], **STATE_TOPIC}


def test_an_operators_slower_pace_stays_in_a_window(held: Held) -> None:
    held.broker.own_pace = 1e6
    held.at(500)
    held.at(800, after=1.0)

    assert PACE not in held.at(800, after=WINDOW_AFTER + 1)
    assert DELETE_DELAY in held.settings


def test_a_guard_that_was_killed_gives_back_what_the_one_before_has_borrowed(tmp_path: Path) -> None:
    before = Held(tmp_path)
    before.broker.values[Place(BROKER, str(before.core.broker), BACKOFF)] = "30000"
    before.at(500)
    after = Held(tmp_path)
    after.broker = before.broker
    after.feature = CleanerHold(after.core, before.broker)

    assert after.at(5000) == {BACKOFF: "30000"}


def test_a_guard_that_only_observes_borrows_nothing_and_gives_back(tmp_path: Path) -> None:
    Held(tmp_path).at(500)
    observing = Held(tmp_path, more="brimline.cleaner.hold=false\n")

    assert observing.at(500) == {}
    assert observing.words == []
    assert list(tmp_path.glob("cleaner-hold-*")) == []


def test_a_missing_right_is_known_before_it_is_needed_and_counted_in_the_reserve(held: Held) -> None:
    held.broker.refuses = {BROKER}

    held.at(5000)

    assert held.words == [("failed", Weight.WARNING)]
    assert not held.core.can_hold_cleaner
    held.at(500)
    assert held.words == [("failed", Weight.PROBLEM)]


def test_without_rights_on_the_topics_the_brokers_own_settings_are_still_borrowed(held: Held) -> None:
    held.broker.refuses = {TOPIC}

    assert held.at(500) == {RATIO: HELD_RATIO, BACKOFF: BACKOFFS[0]}
    assert held.words == [("held", Weight.NOTE), ("topics", Weight.WARNING)]


def test_somebody_who_takes_it_back_again_and_again_is_named(held: Held) -> None:
    held.at(500)
    for _ in range(3):
        held.at(500)
        held.broker.values.clear()
        held.at(500)

    assert held.words == [("reverted", Weight.WARNING)]
    assert not held.core.can_hold_cleaner


def test_what_was_refused_is_not_given_back_later(held: Held) -> None:
    held.broker.refuses = {BROKER, TOPIC}
    held.at(500)

    held.at(5000, after=60.0)

    assert held.words == [("failed", Weight.WARNING)]
    assert held.broker.changes == []


def test_a_right_that_is_lost_while_it_is_held_is_said_until_it_is_given_back(held: Held) -> None:
    held.at(500)
    held.broker.refuses = {BROKER, TOPIC}

    held.at(5000)
    assert held.words == [("stays", Weight.PROBLEM)]

    held.broker.refuses = set()
    assert held.at(5000, after=60.0) == {}
    assert held.words == []


def test_switched_off_it_is_given_back_and_counted_in_the_reserve(held: Held) -> None:
    held.at(500)
    held.core.config = config("brimline.enforcement=gateway\nbrimline.cleaner.hold=false\n")

    assert held.at(500) == {}
    assert not held.core.can_hold_cleaner
    held.core.config = config("brimline.enforcement=gateway\n")
    assert held.at(500)[BACKOFF] == BACKOFFS[1], "never the one before: the broker may still have it"


def test_a_broker_that_does_not_answer_can_be_held_as_far_as_is_known(held: Held) -> None:
    held.broker.is_down = True

    held.at(5000)
    assert held.core.can_hold_cleaner
    held.at(500)
    assert held.words == [("failed", Weight.PROBLEM)]
    held.broker.is_down = False
    assert held.at(500)[RATIO] == HELD_RATIO


def test_a_disk_that_is_offline_holds_nothing_up(held: Held) -> None:
    held.at(500)
    held.offline = frozenset({"/data/a"})

    assert held.at(500) == {}


def test_a_percent_of_a_large_disk_is_room_enough(held: Held) -> None:
    held.core.reserves.volumes = (replace(held.core.reserves.volumes[0], bytes=Bytes(2 << 30)),)
    held.kept_mib = 100 << 10

    assert held.at(99 << 10) == {}
    assert held.at(2 << 10)[RATIO] == HELD_RATIO


def test_killed_in_a_window_the_next_guard_ends_what_runs(tmp_path: Path) -> None:
    before = Held(tmp_path)
    before.at(500)
    before.at(800)
    assert DELETE_DELAY in before.at(800, after=WINDOW_AFTER + 1)
    after = Held(tmp_path)
    after.broker = before.broker
    after.feature = CleanerHold(after.core, before.broker)

    assert after.at(500) == {RATIO: HELD_RATIO, BACKOFF: BACKOFFS[1], **STATE_TOPIC}


def test_what_a_guard_has_left_whose_record_is_lost_is_given_back(tmp_path: Path) -> None:
    before = Held(tmp_path)
    before.at(500)
    (tmp_path / f"cleaner-hold-{before.core.broker}.json").unlink()
    after = Held(tmp_path)
    after.broker = before.broker
    after.feature = CleanerHold(after.core, before.broker)

    after.at(5000)

    assert RATIO not in after.at(5000)
    assert BACKOFF not in after.settings


def test_a_windows_settings_are_known_too_where_the_record_is_lost(tmp_path: Path) -> None:
    before = Held(tmp_path)
    before.at(500)
    before.at(800)
    assert {DELETE_DELAY, PACE} <= before.at(800, after=WINDOW_AFTER + 1).keys()
    (tmp_path / f"cleaner-hold-{before.core.broker}.json").unlink()
    after = Held(tmp_path)
    after.broker = before.broker
    after.feature = CleanerHold(after.core, before.broker)

    after.at(5000)

    assert {DELETE_DELAY, PACE, BACKOFF}.isdisjoint(after.at(5000))


def test_no_room_for_the_next_group_is_said(held: Held) -> None:
    held.at(300)
    held.at(300, after=WINDOW_AFTER + 1)
    assert held.words == [("held", Weight.NOTE)]

    held.at(300, after=10.0)
    assert held.words == [("stuck", Weight.WARNING)]


def test_a_volume_without_anything_compacted_needs_no_hold(held: Held) -> None:
    held.core.reserves.volumes = (VolumeReserve(log_dirs=("/data/a",)),)

    assert held.at(500) == {}


def test_what_is_on_a_volume_is_not_known_yet_then_it_is_held(held: Held) -> None:
    held.core.reserves.volumes = ()

    assert held.at(500)[RATIO] == HELD_RATIO

"""The loop without time: tests tick the clock and step."""

import threading
from dataclasses import replace

import pytest

from brimline.decide.disk_state import DiskLimits, DiskState, next_state
from brimline.decide.fill_rate import Pace
from brimline.disks.sentences import reasons_of_full_log_dirs, state_sentence
from brimline.disks.task import DiskSettings, DiskTask, VolumeStatus
from brimline.model import Bytes, Failure, FailureKind
from tests.service.ticking import Answers, FakeDisks, TickingClock

LIMITS = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
SETTINGS = DiskSettings(limits=LIMITS, pace=Pace(interval=60.0), stall_timeout=10.0)
GONE = Failure(kind=FailureKind.GONE, message="a does not exist")


class Watched:
    """A disk task on fake disks, with everything that it announced."""

    def __init__(self, disks: FakeDisks, settings: DiskSettings = SETTINGS) -> None:
        self.disks = disks
        self.clock = TickingClock()
        self.answers = Answers()
        self.changes: list[tuple[DiskState, DiskState, tuple[str, ...]]] = []
        self.task = DiskTask(list(disks.usable), settings, self.clock, self.answers, self._changed, disks.look)

    def _changed(self, was: DiskState, volume: VolumeStatus) -> None:
        self.changes.append((was, volume.state, volume.log_dirs))

    def look(self, *, after: float = 0.0, answers: int = 1) -> None:
        """Let time pass, ask what is due, wait for the answers, judge them."""
        self.clock.tick(after)
        self.task.step()
        self.answers.wait(answers)
        self.task.step()

    @property
    def states(self) -> dict[tuple[str, ...], DiskState]:
        return {volume.log_dirs: volume.state for volume in self.task.report.volumes}


def test_the_first_step_looks_at_everything_at_once() -> None:
    watched = Watched(FakeDisks(a=500, b=500))

    watched.look(answers=2)

    assert sorted(watched.disks.looks) == ["a", "b"]
    assert watched.task.has_answers()


def test_log_dirs_of_one_device_are_one_volume() -> None:
    watched = Watched(FakeDisks(a=500, b=500))

    watched.look(answers=2)

    assert watched.states == {("a", "b"): DiskState.OK}


def test_log_dirs_of_two_devices_are_two_volumes() -> None:
    disks = FakeDisks(a=500, b=50)
    disks.device["b"] = "8:2"
    watched = Watched(disks)

    watched.look(answers=2)

    assert watched.states == {("a",): DiskState.OK, ("b",): DiskState.FULL}
    assert watched.task.report.full_log_dirs == ("b",)


def test_up_and_down_again_is_announced_once_each() -> None:
    watched = Watched(FakeDisks(a=500))
    watched.look()
    watched.disks.usable["a"] = 50
    watched.look(after=60)
    watched.look(after=60)
    watched.disks.usable["a"] = 500
    watched.look(after=60)

    assert watched.changes == [
        (DiskState.UNKNOWN, DiskState.OK, ("a",)),
        (DiskState.OK, DiskState.FULL, ("a",)),
        (DiskState.FULL, DiskState.OK, ("a",)),
    ]


def test_a_hung_file_system_stalls_nothing_else() -> None:
    disks = FakeDisks(a=500, b=500)
    disks.device["b"] = "8:2"
    disks.hung["a"] = threading.Event()
    watched = Watched(disks)
    watched.look(answers=1)  # b answers, a never does
    disks.usable["b"] = 50

    watched.look(after=60, answers=1)

    assert watched.states == {("a",): DiskState.UNKNOWN, ("b",): DiskState.FULL}
    stalled = next(volume for volume in watched.task.report.volumes if volume.log_dirs == ("a",))
    assert stalled.reading.failure is not None
    assert stalled.reading.failure.kind is FailureKind.STALLED
    disks.hung["a"].set()


def test_a_full_volume_that_hangs_stays_full_until_it_answers() -> None:
    disks = FakeDisks(a=50)
    watched = Watched(disks)
    watched.look()
    disks.hung["a"] = threading.Event()
    watched.clock.tick(60)
    watched.task.step()
    for _ in range(3):
        watched.clock.tick(10)
        watched.task.step()
    hanging = watched.task.report

    assert watched.states == {("a",): DiskState.FULL}
    assert watched.changes[1:] == [(DiskState.FULL, DiskState.FULL, ("a",))]  # said once: it hangs
    assert reasons_of_full_log_dirs(hanging) == {"a": "log dir a was full when it last answered"}
    assert "until it answers again" in state_sentence(hanging.volumes[0])

    disks.usable["a"] = 500
    disks.hung["a"].set()
    watched.look(after=1)
    assert watched.states == {("a",): DiskState.OK}


def test_past_a_line_is_a_full_volume_with_less_and_one_that_hangs_stays_so() -> None:
    """Of 1,000 bytes 100 are kept free: the line is at 50."""
    disks, nothing = FakeDisks(a=49, b=51, c=500), frozenset[str]()
    disks.device |= {"b": "8:2", "c": "8:3"}
    watched = Watched(disks)
    watched.look(answers=3)

    assert watched.task.report.past_line(50, nothing) == {"a"}
    assert watched.task.report.past_line(100, nothing) == {"a", "b"}

    disks.hung["a"] = disks.hung["b"] = threading.Event()
    watched.clock.tick(60)
    watched.task.step()
    watched.clock.tick(60)
    watched.task.step()
    assert watched.task.report.past_line(50, frozenset({"a"})) == {"a"}
    assert watched.task.report.past_line(50, nothing) == nothing
    disks.hung["a"].set()


def test_a_volume_that_hangs_is_not_full_when_no_limit_is_set() -> None:
    off = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
    assert next_state(DiskState.FULL, None, off) is DiskState.UNKNOWN


def test_a_full_volume_that_fails_after_it_hung_stays_full() -> None:
    """As a file system does whose server has died: ENOTCONN."""
    disks = FakeDisks(a=50)
    watched = Watched(disks)
    watched.look()
    disks.failure["a"] = Failure(kind=FailureKind.UNREADABLE, message="a cannot be looked at: not connected")
    watched.look(after=60)

    assert watched.states == {("a",): DiskState.FULL}
    assert reasons_of_full_log_dirs(watched.task.report) == {"a": "log dir a was full when it last answered"}

    del disks.failure["a"]
    disks.usable["a"] = 500
    watched.look(after=60)
    assert watched.states == {("a",): DiskState.OK}


def test_a_volume_that_vanishes_is_unknown_and_comes_back() -> None:
    disks = FakeDisks(a=500)
    watched = Watched(disks)
    watched.look()
    disks.failure["a"] = GONE
    watched.look(after=60)
    gone = watched.states
    del disks.failure["a"]

    watched.look(after=5)

    assert gone == {("a",): DiskState.UNKNOWN}
    assert watched.states == {("a",): DiskState.OK}


def test_an_unreadable_log_dir_does_not_hide_behind_its_neighbour() -> None:
    disks = FakeDisks(a=500, b=500)
    disks.failure["b"] = GONE
    watched = Watched(disks)

    watched.look(answers=2)

    assert watched.states == {("a",): DiskState.OK, ("b",): DiskState.UNKNOWN}


def test_near_the_limit_it_looks_sooner() -> None:
    watched = Watched(FakeDisks(a=500))
    watched.look()
    watched.disks.usable["a"] = 200
    watched.look(after=1)
    (volume,) = watched.task.report.volumes

    wait = watched.task.step()

    assert volume.fill_rate == 300
    assert volume.seconds_left == pytest.approx(1 / 3)
    assert wait == pytest.approx(0.1)


def test_a_calm_volume_is_not_asked_before_its_interval() -> None:
    watched = Watched(FakeDisks(a=500))
    watched.look()
    watched.look(after=1)
    watched.clock.tick(59)
    watched.task.step()

    assert watched.disks.looks == ["a", "a"]


def test_a_look_that_is_asked_for_during_another_begins_after_it() -> None:
    """The one under way may have read before there was a reason to look."""
    watched = Watched(FakeDisks(a=500))
    watched.look()
    watched.clock.tick(1)
    watched.disks.hung["a"] = threading.Event()
    watched.task.look_now()
    watched.task.step()
    watched.task.look_now()
    watched.task.step()
    watched.disks.hung["a"].set()
    watched.answers.wait()

    watched.task.step()
    watched.answers.wait()

    assert watched.disks.looks == ["a", "a", "a"]


def test_a_rate_is_not_drawn_across_a_gap() -> None:
    disks = FakeDisks(a=900)
    watched = Watched(disks)
    watched.look()
    disks.failure["a"] = GONE
    watched.look(after=60)
    del disks.failure["a"]
    disks.usable["a"] = 200

    watched.look(after=60)

    (volume,) = watched.task.report.volumes
    assert volume.fill_rate is None


def test_two_log_dirs_of_one_volume_make_no_rate_of_noise() -> None:
    watched = Watched(FakeDisks(a=500, b=499))

    watched.look(answers=2)

    (volume,) = watched.task.report.volumes
    assert volume.fill_rate is None


def test_new_limits_count_at_the_next_step() -> None:
    watched = Watched(FakeDisks(a=500))
    watched.look()
    watched.task.settings = DiskSettings(
        limits=DiskLimits(max_used_percent=10, min_free_bytes=Bytes(0)), pace=SETTINGS.pace, stall_timeout=10.0
    )

    watched.task.step()

    assert watched.states == {("a",): DiskState.FULL}


def test_a_ballast_has_the_volume_looked_at_before_it_runs_out() -> None:
    """Without limits nobody else is in a hurry."""
    off = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
    settings = DiskSettings(limits=off, pace=Pace(interval=60.0), stall_timeout=10.0, ballast_reserve=Bytes(100))
    with_ballast, without = (
        Watched(FakeDisks(a=500), settings),
        Watched(FakeDisks(a=500), replace(settings, ballast_reserve=Bytes(0))),
    )
    for watched in (with_ballast, without):
        watched.look()
        watched.look(after=60)

    assert [watched.task.report.volumes[0].next_look for watched in (with_ballast, without)] == [0.1, 60.0]


def test_a_log_dir_that_the_broker_holds_offline_is_that_whatever_room_it_has() -> None:
    watched = Watched(FakeDisks(a=50))
    watched.look()
    watched.task.offline = ["a"]
    watched.disks.usable["a"] = 500
    watched.look(after=60)
    still = watched.states
    watched.task.offline = []
    watched.look(after=60)

    assert still == {("a",): DiskState.OFFLINE}
    assert [(was, now) for was, now, _ in watched.changes] == [
        (DiskState.UNKNOWN, DiskState.FULL),
        (DiskState.FULL, DiskState.OFFLINE),
        (DiskState.OFFLINE, DiskState.OK),
    ]


def test_what_is_said_of_room_is_said_of_the_other_log_dirs_of_the_volume() -> None:
    watched = Watched(FakeDisks(a=500, b=500))
    watched.task.offline = ["a"]
    watched.look(answers=2)
    (volume,) = watched.task.report.volumes

    assert (volume.state, volume.state_of("a"), volume.state_of("b")) == (
        DiskState.OK,
        DiskState.OFFLINE,
        DiskState.OK,
    )
    assert state_sentence(volume).startswith("b has room")

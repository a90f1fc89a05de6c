"""When moves are held up, when they go on, and what is told of it; with a ticking clock and a broker in memory."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from brimline.act.move_pause import KEY, Hold, Pause
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.disks.task import DiskReport, DiskSettings, DiskTask
from brimline.guard.moves.feature import MoveNews
from brimline.guard.moves.task import LOOK, RETRY_REFUSED, MovePauseTask, MoveReport
from brimline.model import BrokerId, Bytes, Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.service import log_lines
from brimline.service.durable_files import NotRecorded
from tests.service.ticking import Answers, FakeDisks, TickingClock

ORDERS, CLICKS = TopicPartition("orders", 0), TopicPartition("clicks", 7)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
DOWN = Failure(kind=FailureKind.UNREACHABLE, message="broker 1 refused the connection")
REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs ALTER_CONFIGS on the cluster")
FULL, ROOM = 50, 500


class HolderInMemory:
    def __init__(self, pause: Pause | None = None) -> None:
        self.pause = pause
        self.acts: list[str] = []
        self.problem: Exception | None = None
        self.outcome = Hold.SET

    def hold(self) -> Hold:
        self.acts.append("hold")
        if self.problem is not None:
            raise self.problem
        outcome = Hold.STANDS if self.pause is not None and self.outcome is Hold.SET else self.outcome
        self.pause = self.pause or Pause(before="20000000", since=SINCE)
        return outcome

    def release(self) -> None:
        self.acts.append("release")
        if self.problem is not None:
            raise self.problem
        self.pause = None


class Tasked:
    """Log dirs ``a`` and ``b`` on a volume each, and a guard that enforces."""

    def __init__(self, *, is_enforced: bool = True, pause: Pause | None = None) -> None:
        self.clock = TickingClock()
        self.holder = HolderInMemory(pause)
        self.moving: dict[str, Sequence[TopicPartition]] = {}
        self.unlisted: Failure | None = None
        self.woken = 0
        self.log = io.StringIO()
        log_lines.set_up(self.log, "json", "info")
        news = MoveNews(BrokerId(1), "127.0.0.1:9094", pause, is_enforced=is_enforced)
        self.task = MovePauseTask(self.holder, self._look, self.clock, self._wake, news.tell, is_enforced=is_enforced)
        self._disks = FakeDisks(a=ROOM, b=ROOM)
        self._disks.device.update(b="8:2")
        self._answers = Answers()
        limits = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
        settings = DiskSettings(limits=limits, pace=Pace(interval=60.0), stall_timeout=10.0)
        self._disk_task = DiskTask(
            ["a", "b"], settings, self.clock, self._answers, lambda _was, _volume: None, self._disks.look
        )
        self.disks_are()

    def disks_are(self, *unknown: str, **usable: int) -> None:
        """What the guard sees of its disks from now on, and has told the task."""
        self._disks.usable.update(usable)
        gone = Failure(kind=FailureKind.GONE, message="gone")
        self._disks.failure = dict.fromkeys(unknown, gone)
        self.task.decided(self._seen())

    def _seen(self) -> DiskReport:
        self._disk_task.look_now()
        self._disk_task.step()
        self._answers.wait(2)
        self._disk_task.step()
        return self._disk_task.report

    def step(self) -> MoveReport:
        self.clock.tick(self.task.step())
        return self.task.report

    def said(self) -> list[tuple[str, str]]:
        lines: list[dict[str, Any]] = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [(line["event"], line["message"]) for line in lines]

    def events(self) -> list[str]:
        return [event for event, _ in self.said()]

    def _look(self, log_dir: str) -> Sequence[TopicPartition]:
        if self.unlisted is not None:
            raise ObservationFailed(self.unlisted)
        return self.moving.get(log_dir, ())

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
def tasked() -> Tasked:
    return Tasked()


def test_a_move_into_a_full_log_dir_is_held_up_and_goes_on_when_there_is_room(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.step()
    tasked.disks_are(a=FULL)
    held = tasked.step()
    tasked.disks_are(a=ROOM)
    gone_on = tasked.step()

    assert tasked.holder.acts == ["hold", "release"]
    assert (held.is_held, held.moves) == (True, {"a": [ORDERS]})
    assert gone_on.is_quiet
    assert tasked.events() == ["moves-paused", "moves-resumed"]


def test_the_line_names_the_partition_the_trickle_and_the_way_out(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.disks_are(a=ROOM)
    tasked.step()

    (_, paused), (_, resumed) = tasked.said()
    command = paused.partition(": echo ")[2]
    document = json.loads(command.split("'")[1])
    assert paused.startswith(f"pauses the move of orders-0 into a, which is full ({KEY}=1); about 1 MiB every 11 s")
    assert document["partitions"] == [{"topic": "orders", "partition": 0, "replicas": [1], "log_dirs": ["a"]}]
    assert "--bootstrap-server 127.0.0.1:9094 --cancel --preserve-throttles" in command
    assert f"restored ({KEY}=20000000)" in resumed


@pytest.mark.parametrize(("full", "moving"), [("a", "b"), ("b", "a")])
def test_a_move_into_another_log_dir_is_nobodys_business(tasked: Tasked, full: str, moving: str) -> None:
    tasked.moving[moving] = [ORDERS]
    tasked.disks_are(**{full: FULL})

    assert tasked.step().is_quiet
    assert tasked.holder.acts == []


def test_while_a_log_dir_is_full_it_looks_often_and_otherwise_waits_to_be_woken(tasked: Tasked) -> None:
    calm = tasked.task.step()
    tasked.disks_are(a=FULL)
    full = tasked.task.step()

    assert (calm, full) == (60.0, LOOK)
    assert tasked.woken == 2  # the first states that it hears of are news too


def test_a_throttle_that_somebody_cleared_is_put_on_at_the_next_look(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.holder.outcome = Hold.SET_AGAIN
    tasked.step()

    assert tasked.holder.acts == ["hold", "hold"]
    assert tasked.events() == ["moves-paused", "moves-paused-again"]


def test_moves_that_end_or_are_cancelled_are_forgotten_though_the_disk_stays_full(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.moving.clear()

    assert tasked.step().is_quiet
    assert tasked.holder.acts == ["hold", "release"]


def test_a_move_that_joins_is_told_and_those_that_stay_are_not_told_again(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    for _ in range(3):
        tasked.step()
    tasked.moving["a"] = [CLICKS, ORDERS]
    for _ in range(3):
        tasked.step()

    assert tasked.events() == ["moves-paused", "moves-paused"]
    assert "the move of clicks-7, orders-0 into a" in tasked.said()[1][1]


def test_a_log_dir_that_cannot_be_watched_changes_nothing(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.disks_are("a")
    unknown = tasked.step()
    tasked.disks_are(a=FULL)
    tasked.step()

    assert "release" not in tasked.holder.acts
    assert unknown.is_held


def test_a_log_dir_that_cannot_be_listed_changes_nothing_and_is_named_once(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.unlisted = Failure(kind=FailureKind.UNREADABLE, message="a cannot be listed")
    for _ in range(3):
        tasked.step()

    assert tasked.task.report.is_held
    assert tasked.events() == ["moves-paused", "moves-failed"]
    assert "release" not in tasked.holder.acts


@pytest.mark.parametrize("problem", [ObservationFailed(DOWN), NotRecorded("the state folder cannot be written")])
def test_what_fails_is_named_once_and_tried_at_every_look(tasked: Tasked, problem: Exception) -> None:
    tasked.holder.problem = problem
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    for _ in range(3):
        failed = tasked.step()
    tasked.holder.problem = None
    held = tasked.step()

    assert (failed.is_held, str(failed.failure)) == (False, str(problem))
    assert held.is_held
    assert tasked.holder.acts == ["hold"] * 4
    assert tasked.events() == ["moves-failed", "moves-paused"]
    assert tasked.said()[0][1].startswith(f"cannot pause the move of orders-0 into a, which is full: {problem}")


def test_a_missing_permission_is_not_asked_for_at_every_look(tasked: Tasked) -> None:
    tasked.holder.problem = ObservationFailed(REFUSED)
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    for _ in range(int(RETRY_REFUSED / LOOK)):
        tasked.step()
    before = list(tasked.holder.acts)
    tasked.holder.problem = None
    tasked.step()

    assert before == ["hold"]
    assert tasked.task.report.is_held
    assert tasked.events() == ["moves-failed", "moves-paused"]


def test_a_release_that_fails_is_tried_again(tasked: Tasked) -> None:
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.holder.problem = ObservationFailed(DOWN)
    tasked.disks_are(a=ROOM)
    for _ in range(2):
        tasked.step()
    tasked.holder.problem = None

    assert tasked.step().is_quiet
    assert tasked.holder.acts == ["hold", "release", "release", "release"]
    assert tasked.events() == ["moves-paused", "moves-failed", "moves-resumed"]
    assert "cannot resume moves" in tasked.said()[1][1]


def test_what_an_earlier_guard_left_is_let_go_on() -> None:
    tasked = Tasked(pause=Pause(before=None, since=SINCE))

    assert tasked.step().is_quiet
    assert tasked.holder.acts == ["release"]
    assert "no value of the broker's own" in tasked.said()[0][1]


def test_what_an_earlier_guard_left_is_kept_while_the_disk_is_full() -> None:
    tasked = Tasked(pause=Pause(before=None, since=SINCE))
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)

    assert tasked.step().is_held
    assert tasked.holder.acts == ["hold"]


def test_one_that_observes_says_what_it_would_do() -> None:
    tasked = Tasked(is_enforced=False)
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    for _ in range(2):
        report = tasked.step()

    assert tasked.holder.acts == []
    assert not report.is_held
    ((event, words),) = tasked.said()
    assert event == "observe"
    assert words.startswith(f"would pause the move of orders-0 into a, which is full ({KEY}=1); make room there")


def test_one_that_observes_lets_go_on_what_was_held_up_before() -> None:
    tasked = Tasked(is_enforced=False, pause=Pause(before=None, since=SINCE))
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()

    assert tasked.holder.acts == ["release"]


def test_a_pause_by_somebody_else_is_told_as_theirs(tasked: Tasked) -> None:
    tasked.holder.outcome = Hold.NOT_OURS
    tasked.moving["a"] = [ORDERS]
    tasked.disks_are(a=FULL)
    tasked.step()

    assert "(set by someone else, left unchanged)" in tasked.said()[0][1]


def test_a_hundred_moves_are_one_line_of_bounded_length(tasked: Tasked) -> None:
    tasked.moving["a"] = [TopicPartition("orders", number) for number in range(100)]
    tasked.disks_are(a=FULL)
    tasked.step()

    ((_, words),) = tasked.said()
    assert "orders-9 and 90 more into a" in words
    assert "(the others likewise)" in words
    assert len(words) < 2000

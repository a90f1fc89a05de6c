"""When the guard cordons its own full log dirs, when it opens them, and when it leaves the broker alone."""

import io
import json
from collections.abc import Callable, Mapping

import pytest

from brimline.act.cordon import Cordoned
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.decide.peer_disks import Peer, heard
from brimline.disks.task import DiskReport, DiskSettings, DiskTask
from brimline.guard.followers.cordon import CordonReport, CordonTask
from brimline.guard.followers.holding import LOOK
from brimline.guard.followers.report import PeerReport
from brimline.guard.followers.words import CordonNews
from brimline.model import BrokerId, Bytes, Failure, FailureKind, ObservationFailed
from brimline.service import log_lines
from brimline.service.durable_files import NotRecorded
from tests.decide.test_peer_disks import answer, described
from tests.service.ticking import Answers, FakeDisks, TickingClock

LIMITS = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
FULL, ROOM = 50, 500
REFUSED = ObservationFailed(Failure(kind=FailureKind.NOT_AUTHORIZED, message="ALTER_CONFIGS is needed"))


class HolderInMemory:
    def __init__(self) -> None:
        self.ours: frozenset[str] = frozenset()
        self.theirs: frozenset[str] = frozenset()
        self.problem: Exception | None = None
        self.applied = 0
        self.opened: dict[str, str] = {}

    def refresh(self) -> None:
        return

    def apply(self, decide: Callable[[Cordoned], Mapping[str, str]], why_opened: Callable[[str], str]) -> Cordoned:
        self.applied += 1
        if self.problem is not None:
            raise self.problem
        before, wanted = self.ours, frozenset(decide(Cordoned(ours=self.ours, theirs=self.theirs)))
        self.ours = wanted
        self.opened.update((path, why_opened(path)) for path in before - wanted)
        return Cordoned(ours=wanted, theirs=self.theirs, added=wanted - before, opened=before - wanted)


def peers(*, is_new: bool = True, others_usable: int = ROOM) -> PeerReport:
    def peer(broker: int, usable: int) -> Peer:
        said = answer(described(usable, cordoned=False if is_new else None))
        return heard(Peer(broker=BrokerId(broker)), said, LIMITS, 0.0, 30.0)

    return PeerReport(own=peer(1, ROOM), peers=(peer(2, others_usable),))


class Tasked:
    """Log dirs ``a`` and ``b`` on a volume each."""

    def __init__(self) -> None:
        self.clock = TickingClock()
        self.holder = HolderInMemory()
        self.is_wanted = True
        self.log = io.StringIO()
        log_lines.set_up(self.log, "json", "info")
        self.task = CordonTask(self.holder, self.clock, lambda: self.is_wanted, lambda: None, CordonNews().tell)
        self._disks = FakeDisks(a=ROOM, b=ROOM)
        self._disks.device.update(b="8:2")
        self._answers = Answers()
        settings = DiskSettings(limits=LIMITS, pace=Pace(interval=60.0), stall_timeout=10.0)
        self._disk_task = DiskTask(
            ["a", "b"], settings, self.clock, self._answers, lambda _was, _volume: None, self._disks.look
        )
        self.task.heard(peers())
        self.disks_are()

    def disks_are(self, *unknown: str, **usable: int) -> None:
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

    def step(self) -> CordonReport:
        self.clock.tick(self.task.step())
        return self.task.report

    def said(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]


@pytest.fixture
def tasked() -> Tasked:
    return Tasked()


def test_a_full_log_dir_is_cordoned_and_opened_again(tasked: Tasked) -> None:
    tasked.disks_are(a=FULL)
    wait = tasked.task.step()
    cordoned = tasked.task.report
    tasked.step()
    tasked.disks_are(a=ROOM)
    opened = tasked.step()

    assert wait == LOOK
    assert cordoned.cordoned.ours == {"a"}
    assert opened.cordoned.ours == set()
    assert tasked.holder.opened == {"a": "it has room again"}
    assert tasked.said() == ["cordoned", "uncordoned"]


def test_a_broker_is_left_alone_while_nothing_is_full(tasked: Tasked) -> None:
    for _ in range(3):
        tasked.step()

    assert tasked.holder.applied == 0


def test_an_old_broker_is_left_alone_always(tasked: Tasked) -> None:
    tasked.task.heard(peers(is_new=False))
    tasked.disks_are(a=FULL)
    report = tasked.step()

    assert (tasked.holder.applied, report.is_supported) == (0, False)


def test_a_broker_that_has_not_told_its_age_yet_is_left_alone(tasked: Tasked) -> None:
    tasked.task.heard(PeerReport())
    tasked.disks_are(a=FULL)
    assert (tasked.step().is_supported, tasked.holder.applied) == (None, 0)

    tasked.task.heard(peers())
    assert tasked.step().cordoned.ours == {"a"}


def test_the_last_place_of_all_stays_open_and_that_is_said_once(tasked: Tasked) -> None:
    tasked.task.heard(peers(others_usable=FULL))
    tasked.disks_are(a=FULL, b=FULL)
    for _ in range(2):
        report = tasked.step()

    assert report.cordoned.ours == {"a"}
    assert report.kept_open == {"b"}
    assert sorted(tasked.said()) == ["cordoned", "not-cordoned"]

    tasked.task.heard(peers())
    report = tasked.step()
    assert report.cordoned.ours == {"a", "b"}
    assert report.kept_open == set()

    tasked.task.heard(peers(others_usable=FULL))
    tasked.step()
    assert tasked.holder.opened == {"b": "it is the last place for new replicas"}


def test_switched_off_it_opens_what_it_had_cordoned(tasked: Tasked) -> None:
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.is_wanted = False

    assert tasked.step().cordoned.ours == set()
    assert tasked.step().kept_open == set()
    assert tasked.holder.applied == 2
    assert tasked.holder.opened == {"a": "cordoning was switched off"}


def test_what_an_earlier_guard_cordoned_is_opened(tasked: Tasked) -> None:
    tasked.holder.ours = frozenset("a")

    assert tasked.step().cordoned.ours == set()


def test_a_log_dir_that_cannot_be_watched_stays_cordoned(tasked: Tasked) -> None:
    tasked.disks_are(a=FULL)
    tasked.step()
    tasked.disks_are("a")

    assert tasked.step().cordoned.ours == {"a"}


@pytest.mark.parametrize("problem", [REFUSED, NotRecorded("the ledger cannot be written")])
def test_a_failure_is_said_once_and_tried_again_later(tasked: Tasked, problem: Exception) -> None:
    tasked.holder.problem = problem
    tasked.disks_are(a=FULL)
    report = tasked.step()
    tasked.step()
    assert (report.failure is None, tasked.holder.applied, tasked.said()) == (False, 1, ["cordon-failed"])

    tasked.clock.tick(CordonTask.RETRY)
    tasked.holder.problem = None
    assert tasked.step().cordoned.ours == {"a"}

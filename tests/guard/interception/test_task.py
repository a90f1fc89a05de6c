"""What the guard does about the interception, with a gateway and rules in memory."""

from collections.abc import Mapping, Sequence

from brimline.act.interception.link import Counted
from brimline.act.interception.nftables import InterceptionFailed
from brimline.decide.interception import InterceptionSettings, Need, Phase
from brimline.guard.interception.feature import interception_sentence, passing_notice
from brimline.guard.interception.task import RETRY, InterceptionReport, InterceptionTask
from brimline.model import Failure, FailureKind, ObservationFailed
from tests.service.ticking import TickingClock

SETTINGS = InterceptionSettings(disarm_seconds=5.0)


class GatewayInMemory:
    def __init__(self) -> None:
        self.is_silent = False
        self.asked = self.begun = 0
        self.let_go = 0

    def intercepted(self, *, let_go: bool = False, begins: bool = False) -> tuple[Mapping[int, int], int | None]:
        if self.is_silent:
            raise ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="gone"))
        self.asked += 1
        self.let_go += let_go
        self.begun += begins
        return {9092: 40001}, 40002


class RulesInMemory:
    def __init__(self) -> None:
        self.direct, self.marked, self.passing = 600, 0, 0
        self.armed = self.held = self.fetches = self.is_open = False
        self.spared: Sequence[str] = ()
        self.leaders: Sequence[tuple[str, int]] = ()
        self.refusal: str | None = None
        self.closed, self.is_used = 0, False

    def open(
        self,
        ports: Mapping[int, int],
        spared: Sequence[str],
        leaders: Sequence[tuple[str, int]],
        for_fetches: int | None,
    ) -> None:
        if self.refusal is not None:
            raise InterceptionFailed(self.refusal)
        assert ports == {9092: 40001}
        assert for_fetches == 40002
        self.is_open, self.spared, self.leaders = True, spared, leaders

    def say(self, *, armed: bool, held: bool, fetches: bool) -> None:
        assert self.is_open
        self.armed, self.held, self.fetches = armed, held, fetches

    def count(self) -> Counted:
        return Counted(self.direct, self.marked, self.passing)

    def cut(self, *, marked: bool, most: int) -> int:
        found = min(self.marked if marked else self.direct, most)
        if marked:
            self.marked -= found
        else:
            self.direct -= found
        return found

    def disarm(self) -> None:
        self.armed = self.held = self.fetches = self.is_open = False

    def close(self) -> tuple[int, bool]:
        self.disarm()
        self.closed += 1
        return self.marked, self.is_used


class Tasked:
    def __init__(self) -> None:
        self.clock, self.gateway, self.rules = TickingClock(), GatewayInMemory(), RulesInMemory()
        self.need = Need.NONE
        self.spared: Sequence[str] | None = ("10.0.0.2",)
        self.reports: list[InterceptionReport] = []
        self.task = InterceptionTask(
            self.gateway,
            self.rules,
            self.clock,
            lambda: SETTINGS,
            lambda: self.need,
            lambda: self.spared,
            self.reports.append,
            lambda: [("10.0.0.2", 9094)],
        )

    def run(self, seconds: float) -> InterceptionReport:
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until:
            self.clock.tick(max(self.task.step(), 0.001))
        return self.task.report


def said(report: InterceptionReport, free: int | None = None, settings: InterceptionSettings = SETTINGS) -> str:
    return interception_sentence(report, free, settings)


def test_nobody_is_turned_aside_while_there_is_room() -> None:
    tasked = Tasked()

    report = tasked.run(10.0)

    assert (report.phase, tasked.rules.is_open, report.cut) == (Phase.IDLE, False, 0)
    assert report.is_quiet
    assert tasked.gateway.asked == 0, "nothing is near: nobody is asked"


def test_who_passes_under_a_mark_of_ours_is_told_while_somebody_is_turned_aside() -> None:
    tasked = Tasked()
    tasked.rules.passing = 2
    assert tasked.run(1.0).passing == 0

    tasked.need = Need.NEAR
    report = tasked.run(1.0)

    assert (report.phase, report.passing) == (Phase.ARMED, 2)
    notice = passing_notice(report.passing, [9092, 9094])
    assert (notice.word, notice.facts) == ("PASSING", {"connections": 2})
    assert "dport = :9092 or dport = :9094" in notice.cure


def test_a_disk_near_its_limit_turns_all_aside_some_at_a_time_and_room_lets_them_go() -> None:
    tasked = Tasked()
    tasked.need = Need.NEAR
    tasked.task.step()
    tasked.task.step()
    assert (tasked.rules.armed, tasked.rules.held, tasked.rules.direct) == (True, False, 350)
    report = tasked.run(1.0)
    assert (report.phase, report.cut, report.armings) == (Phase.ARMED, 600, 1)
    assert tasked.gateway.begun == 1, "what it has refused before may have been stored past it"
    assert tasked.rules.spared == ("10.0.0.2",)

    tasked.need = Need.FENCED
    tasked.run(1.0)
    assert (tasked.rules.held, tasked.rules.fetches) == (True, False)
    tasked.need = Need.FULL
    tasked.run(1.0)
    assert (tasked.rules.held, tasked.rules.fetches) == (True, True)
    assert tasked.rules.leaders == [("10.0.0.2", 9094)]
    tasked.need = Need.NEAR
    tasked.run(1.0)
    assert (tasked.rules.held, tasked.rules.fetches) == (False, True), (
        "a disk at its limit is full and not full by turns"
    )

    tasked.need, tasked.rules.marked = Need.NONE, 8
    assert tasked.run(4.0).phase is Phase.ARMED
    assert tasked.run(2.0).phase is Phase.DRAINING
    assert (tasked.rules.is_open, tasked.rules.fetches, tasked.gateway.let_go > 0) == (False, False, True)
    tasked.rules.marked = 0
    assert tasked.run(1.0).phase is Phase.IDLE


def test_a_gateway_that_is_gone_keeps_nobody_from_a_disk_with_room() -> None:
    tasked = Tasked()
    tasked.need = Need.NEAR
    tasked.run(2.0)
    tasked.gateway.is_silent, tasked.rules.marked = True, 6

    report = tasked.run(1.0)
    assert (report.phase, tasked.rules.is_open, tasked.rules.marked) == (Phase.IDLE, False, 0)
    assert "the gateway does not answer: clients connect to the broker directly" in said(report)


def test_a_gateway_that_is_gone_while_a_disk_is_full_is_told_with_the_bytes_that_are_left() -> None:
    tasked = Tasked()
    tasked.need = Need.FULL
    tasked.run(2.0)
    tasked.gateway.is_silent = True

    lost = tasked.run(1.0)
    direct = "clients connect to the broker directly with 10.0 MiB free; start it (brimline gateway)"
    assert f"new connections are refused for 5 s, then {direct}" in said(lost, 10 << 20)
    assert "new connections are refused until it does with 10.0 MiB free; start it" in said(
        lost, 10 << 20, InterceptionSettings(is_closed=True)
    )
    assert said(tasked.run(5.0), 10 << 20) == f"the gateway does not answer: {direct}"


def test_whom_an_earlier_guard_turned_aside_is_let_go_or_turned_aside_on() -> None:
    tasked = Tasked()
    tasked.rules.marked = 8
    assert tasked.run(1.0).phase is Phase.DRAINING
    assert tasked.gateway.let_go > 0
    tasked.rules.marked = 0
    assert tasked.run(1.0).phase is Phase.IDLE

    others = Tasked()
    others.rules.is_used = True
    others.run(2.0)
    others.rules.is_used = False
    others.run(2.0)
    closed = others.rules.closed
    assert (others.run(2.0).phase, others.rules.closed) == (Phase.IDLE, closed), "routes were removed in the end"
    assert closed > 2

    full = Tasked()
    full.rules.marked, full.need = 8, Need.FULL
    assert full.run(2.0).phase is Phase.ARMED
    assert (full.gateway.let_go, full.rules.marked) == (0, 8)


def test_before_the_other_brokers_are_known_nobody_is_turned_aside() -> None:
    tasked = Tasked()
    tasked.need, tasked.spared = Need.FULL, None

    report = tasked.run(2.0)
    assert report.phase is Phase.IDLE
    assert said(report).startswith("the broker has not named the other brokers: clients connect to the broker directly")


def test_what_the_kernel_refuses_is_told_and_tried_again() -> None:
    tasked = Tasked()
    tasked.need, tasked.rules.refusal = Need.FULL, "CAP_NET_ADMIN is needed"
    waits = [tasked.task.step() for _ in range(3)]
    assert waits == [0.0, RETRY, RETRY], "a helper that has gone is replaced at once; what fails again can wait"
    assert "CAP_NET_ADMIN" in said(tasked.task.report)
    assert {each.phase for each in tasked.reports} == {Phase.IDLE}, "it never said that clients are turned aside"

    tasked.rules.refusal = None
    report = tasked.run(2.0)
    assert (report.phase, report.failure) == (Phase.ARMED, None)

"""The guard's decision on its way to the gateway, and what becomes known of the gateway; with a ticking clock."""

import io
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from brimline.documents.gateway_state import GatewayState
from brimline.gateway.client import GatewayClient
from brimline.guard.gateway_link.task import ASK_STATE, LEASE, RENEW, GatewayNews, GatewayReport, GatewayTask
from brimline.model import BadInput, Failure, FailureKind, ObservationFailed
from brimline.service import log_lines
from brimline.service.worker import Worker
from tests.guard.gateways import fake_gateway, refused, state
from tests.service.ticking import TickingClock
from tests.waiting import PATIENCE_SECONDS

GONE = Failure(kind=FailureKind.GONE, message="no gateway is running: there is no /run/g.sock")
HUNG = Failure(kind=FailureKind.TIMED_OUT, message="the gateway did not answer within 2 s")


class GatewayInMemory:
    """Remembers the leases; ``problem`` is raised instead of any answer."""

    def __init__(self) -> None:
        self.leases: list[dict[str, str]] = []
        self.seconds: set[float] = set()
        self.looks = 0
        self.offline: frozenset[str] = frozenset()
        self.sees_full: frozenset[str] | None = frozenset()
        """``None``: it is of a version that does not tell."""
        self.answer = state()
        self.problem: Exception | None = None

    def lease(self, full: Mapping[str, str], seconds: float, offline: Collection[str] = ()) -> frozenset[str] | None:
        self._fail_if_told_to()
        self.leases.append(dict(full))
        self.offline = frozenset(offline)
        self.seconds.add(seconds)
        return self.sees_full

    def state(self) -> GatewayState:
        self._fail_if_told_to()
        self.looks += 1
        return self.answer

    def _fail_if_told_to(self) -> None:
        if self.problem is not None:
            raise self.problem


class Tasked:
    def __init__(self, *, is_wanted: bool = True) -> None:
        self.clock = TickingClock()
        self.gateway = GatewayInMemory()
        self.woken = 0
        self.reports: list[GatewayReport] = []
        self.task = GatewayTask(
            self.gateway, self.clock, self._wake, self.reports.append, self._differs, is_wanted=is_wanted
        )
        self.differed = 0

    def _wake(self) -> None:
        self.woken += 1

    def _differs(self) -> None:
        self.differed += 1


@pytest.fixture
def tasked() -> Tasked:
    return Tasked()


def test_the_decision_is_a_lease_that_outlives_a_few_renewals(tasked: Tasked) -> None:
    tasked.task.decided({"/data/a": "why"})

    wait = tasked.task.step()

    assert tasked.gateway.leases == [{"/data/a": "why"}]
    assert tasked.gateway.seconds == {LEASE}
    assert wait == RENEW <= LEASE / 3


def test_it_is_renewed_though_nothing_changed(tasked: Tasked) -> None:
    tasked.task.step()
    tasked.clock.tick(RENEW)
    tasked.task.step()

    assert tasked.gateway.leases == [{}, {}]
    assert tasked.gateway.looks == 1

    tasked.clock.tick(ASK_STATE)
    tasked.task.step()

    assert tasked.gateway.looks == 2


def test_what_the_gateway_alone_sees_full_is_looked_at_by_the_guard(tasked: Tasked) -> None:
    tasked.gateway.sees_full = frozenset({"/data/a"})
    tasked.task.step()
    assert tasked.differed == 1

    tasked.task.decided({"/data/a": "why"})
    tasked.clock.tick(RENEW)
    tasked.task.step()

    assert tasked.differed == 1


def test_what_the_guard_alone_sees_full_is_looked_at_again(tasked: Tasked) -> None:
    """The gateway has seen room again before the guard."""
    tasked.task.decided({"/data/a": "why"})
    tasked.task.step()

    assert tasked.differed == 1


def test_a_gateway_that_does_not_tell_differs_from_nothing(tasked: Tasked) -> None:
    tasked.gateway.sees_full = None
    tasked.task.decided({"/data/a": "why"})
    tasked.task.step()

    assert tasked.differed == 0
    assert tasked.gateway.leases == [{"/data/a": "why"}]


def test_what_the_broker_holds_offline_is_sent_at_once(tasked: Tasked) -> None:
    tasked.task.step()

    tasked.task.decided({}, frozenset({"/data/b"}))
    tasked.task.step()

    assert tasked.woken == 1
    assert tasked.gateway.offline == {"/data/b"}


def test_a_change_wakes_the_task_and_is_sent_before_the_renewal(tasked: Tasked) -> None:
    tasked.task.step()

    tasked.task.decided({"/data/a": "why"})
    tasked.task.step()
    tasked.task.decided({})
    tasked.task.step()

    assert tasked.woken == 2
    assert tasked.gateway.leases == [{}, {"/data/a": "why"}, {}]
    assert tasked.gateway.looks == 1


def test_new_figures_in_a_reason_wait_for_the_renewal(tasked: Tasked) -> None:
    tasked.task.decided({"/data/a": "91 % used"})
    tasked.task.step()
    tasked.task.decided({"/data/a": "92 % used"})
    tasked.task.step()
    tasked.clock.tick(RENEW)
    tasked.task.step()

    assert tasked.woken == 1
    assert tasked.gateway.leases == [{"/data/a": "91 % used"}, {"/data/a": "92 % used"}]


def test_a_gateway_that_comes_back_is_told_at_the_next_renewal(tasked: Tasked) -> None:
    tasked.gateway.problem = ObservationFailed(GONE)
    tasked.task.decided({"/data/a": "why"})

    wait = tasked.task.step()
    tasked.gateway.problem = None
    tasked.clock.tick(wait)
    tasked.task.step()

    assert [(report.failure, report.state) for report in tasked.reports] == [
        (GONE, None),
        (None, tasked.gateway.answer),
    ]
    assert wait == ASK_STATE
    assert tasked.gateway.leases == [{"/data/a": "why"}]


def test_a_gateway_that_refuses_the_guard_is_a_failure_too(tasked: Tasked) -> None:
    tasked.gateway.problem = BadInput("there is no such op")

    tasked.task.step()

    assert str(tasked.task.report.failure) == "the gateway refuses: there is no such op"


@pytest.mark.parametrize(
    ("is_wanted", "problem", "is_absent"),
    [(False, GONE, True), (True, GONE, False), (False, HUNG, False), (True, HUNG, False), (False, None, False)],
)
def test_absent_is_only_what_is_not_there_and_not_wanted(
    is_wanted: bool,  # noqa: FBT001 (a row of the table)
    problem: Failure | None,
    is_absent: bool,  # noqa: FBT001
) -> None:
    tasked = Tasked(is_wanted=is_wanted)
    tasked.gateway.problem = None if problem is None else ObservationFailed(problem)

    tasked.task.step()

    assert tasked.task.report.is_absent == is_absent


def after(tasked: Tasked, seconds: float, **changes: Any) -> tuple[float, int, list[str]]:
    """What was refused lately, by the report of a step that comes so much later."""
    tasked.clock.tick(seconds)
    tasked.gateway.answer = state(**changes)
    tasked.task.step()
    lately = tasked.task.report.lately
    return lately.seconds, lately.batches, [f"{row.topic}-{row.partition} {row.batches}" for row in lately.most]


def test_refusals_are_of_the_last_minute(tasked: Tasked) -> None:
    first = after(tasked, 0, refusals=[refused(batches=100)])
    soon = after(tasked, 10, refusals=[refused(batches=130)])
    later = after(tasked, 50, refusals=[refused(batches=140), refused("clicks", 0, batches=2)])
    much_later = after(tasked, 100, refusals=[refused(batches=141), refused("clicks", 0, batches=2)])

    assert first == (0.0, 0, [])  # counted before anybody looked
    assert soon == (10.0, 30, ["orders-3 30"])
    assert later == (60.0, 42, ["orders-3 40", "clicks-0 2"])
    assert much_later == (100.0, 1, ["orders-3 1"])


def test_a_gateway_that_was_started_again_counts_from_nothing(tasked: Tasked) -> None:
    after(tasked, 0, refusals=[refused(batches=100)])

    assert after(tasked, 10, pid=2, refusals=[refused(batches=3)]) == (0.0, 0, [])
    assert after(tasked, 10, pid=2, refusals=[refused(batches=4)]) == (10.0, 1, ["orders-3 1"])


def test_one_that_observes_counts_what_it_would_have_refused(tasked: Tasked) -> None:
    after(tasked, 0, enforcement="observe")

    assert after(tasked, 10, enforcement="observe", wouldHaveRefused=[refused(batches=7)])[1] == 7


def test_a_decision_reaches_a_real_socket_while_the_task_waits(tmp_path: Path) -> None:
    """Worker, task and client together: the lease comes although the next renewal never does."""
    with fake_gateway(tmp_path / "g.sock") as gateway, GatewayClient(gateway.path, PATIENCE_SECONDS) as client:
        stepped = threading.Semaphore(0)
        worker = Worker("gateway", lambda: _stepped(task, stepped))
        task = GatewayTask(client, TickingClock(), worker.wake, lambda _: None, is_wanted=True)
        worker.start()
        assert stepped.acquire(timeout=PATIENCE_SECONDS)
        task.decided({"/data/a": "why"})
        gateway.wait_for(3)
        worker.end()
        worker.join(PATIENCE_SECONDS)

    leases = [told["full"] for told in gateway.told if told["op"] == "lease"]
    assert leases == [{}, {"/data/a": "why"}]


def _stepped(task: GatewayTask, stepped: threading.Semaphore) -> float:
    task.step()
    stepped.release()
    return 3600.0


def lines_of(*reports: GatewayReport) -> list[str]:
    out = io.StringIO()
    log_lines.set_up(out, "text", "info")
    news = GatewayNews()
    for report in reports:
        news.tell(report)
    return [line.split(" ", 1)[1] for line in out.getvalue().splitlines()]


def report_of(failure: Failure | None, *, is_wanted: bool = True) -> GatewayReport:
    return GatewayReport(is_wanted=is_wanted, failure=failure, state=state() if failure is None else None)


def test_the_log_names_each_change_once() -> None:
    down, up, hung = report_of(GONE), report_of(None), report_of(HUNG)

    lines = lines_of(down, down, up, up, hung, hung, up)

    assert [line.split()[:2] for line in lines] == [
        ["WARNING", "gateway-silent"],
        ["INFO", "gateway-answers"],
        ["WARNING", "gateway-silent"],
        ["INFO", "gateway-answers"],
    ]
    assert "there is no /run/g.sock; nothing is refused until it runs (start: brimline gateway)" in lines[0]


def test_no_gateway_where_none_is_wanted_is_no_warning() -> None:
    assert [line.split()[0] for line in lines_of(report_of(GONE, is_wanted=False))] == ["INFO"]

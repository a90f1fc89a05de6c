"""What the gateway is told about full followers, how often, and when it is taken back."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from brimline.decide.followers import AUTO, Choice, FollowerAction, choose_action
from brimline.decide.reserve import Depth
from brimline.documents.codec import to_json
from brimline.documents.orders import FollowerFencesOrder, SkipsOrder
from brimline.guard.followers.orders import LEASE, RENEW, FollowerOrders
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.guard.followers.words import FollowerNews
from brimline.model import BadInput, BrokerId, Bytes, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.log_dirs import LedTopic
from brimline.service import log_lines
from tests.service.ticking import TickingClock

GONE = ObservationFailed(Failure(kind=FailureKind.GONE, message="no gateway is running"))
TOPIC_ID = UUID(int=7)
SKIP = choose_action(AUTO, carries_replication=True, carries_clients=True)
FENCE = choose_action("fence", carries_replication=False, carries_clients=True)
RESERVE = choose_action(AUTO, carries_replication=False, carries_clients=True)
IMPOSSIBLE = choose_action("skip", carries_replication=False, carries_clients=True)
WHY = "log dir /a is 95.0 % used, limit disk.max.used.percent=90"
DOCUMENT = [{"topic": "orders", "topicId": str(TOPIC_ID), "partitions": [0, 2]}]


class GatewayInMemory:
    """Knows what it was told last under which epoch; ``restart`` makes it forget."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, Any] | None]] = []
        self.seconds: set[float] = set()
        self.problem: Exception | None = None
        self.passed_unread = 0
        self._epochs: dict[str, int] = {}

    def hold_back(self, order: SkipsOrder | FollowerFencesOrder) -> bool:
        if self.problem is not None:
            raise self.problem
        self.told.append((order.OP, to_json(order).get("followers")))
        self.seconds.add(order.seconds)
        if order.followers is None:
            return self._epochs.get(order.OP) == order.epoch
        self._epochs[order.OP] = order.epoch
        return True

    def restart(self) -> None:
        self._epochs = {}


class Tasked:
    def __init__(self, *, is_enforced: bool = True) -> None:
        self.clock = TickingClock()
        self.gateway = GatewayInMemory()
        self.choice = SKIP
        self.woken = 0
        self.log = io.StringIO()
        log_lines.set_up(self.log, "json", "info")
        self.orders = FollowerOrders(
            self.gateway,
            self.clock,
            lambda: self.choice,
            self._wake,
            FollowerNews().orders,
            is_enforced=is_enforced,
        )

    def full(self, *topics: LedTopic, broker: int = 3, reason: str = WHY) -> None:
        self.peers(FullFollower(broker=BrokerId(broker), reason=reason, log_dirs=("/a",), topics=topics))

    def peers(self, *full: FullFollower) -> None:
        self.orders.decided(PeerReport(full=full, counts_until=self.clock.seconds() + 60))

    def step(self) -> OrderReport:
        self.clock.tick(self.orders.step())
        return self.orders.report

    def said(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]

    def words(self) -> str:
        return str(json.loads(self.log.getvalue().splitlines()[-1])["message"])

    def _wake(self) -> None:
        self.woken += 1


ORDERS = LedTopic(name="orders", topic_id=TOPIC_ID, partitions=(0, 2))
OFFSETS = LedTopic(name="__consumer_offsets", topic_id=None, partitions=(1,))


@pytest.fixture
def tasked() -> Tasked:
    return Tasked()


def test_it_is_said_once_and_renewed_until_it_is_over(tasked: Tasked) -> None:
    tasked.full(ORDERS)
    for _ in range(3):
        report = tasked.step()
    tasked.peers()
    over = tasked.step()

    assert tasked.gateway.told == [("skips", {"3": DOCUMENT}), ("skips", None), ("skips", None), ("skips", {})]
    assert tasked.gateway.seconds == {LEASE}
    assert (report.action, over.action) == (FollowerAction.SKIP, None)
    assert tasked.said() == ["follower-full", "follower-released"]


def test_a_gateway_that_was_started_again_is_told_again(tasked: Tasked) -> None:
    tasked.full(ORDERS)
    tasked.step()
    tasked.gateway.restart()
    tasked.step()

    assert tasked.gateway.told[-2:] == [("skips", None), ("skips", {"3": DOCUMENT})]


def test_other_partitions_are_news_and_other_figures_are_not(tasked: Tasked) -> None:
    tasked.full(ORDERS)
    tasked.step()
    tasked.full(ORDERS, reason="log dir /a is 96.0 % used")
    woken = tasked.woken
    tasked.step()
    tasked.full(ORDERS, OFFSETS)
    tasked.step()

    assert woken == 1
    assert [followers is None for _, followers in tasked.gateway.told] == [False, True, False]


def test_a_fence_tells_clients_why_and_spares_kafkas_own_topics(tasked: Tasked) -> None:
    tasked.choice = FENCE
    tasked.full(ORDERS, OFFSETS)
    report = tasked.step()

    ((operation, followers),) = tasked.gateway.told
    assert operation == "follower-fences"
    assert followers == {"3": {"reason": f"a follower's disk is full: broker 3: {WHY}", "topics": DOCUMENT}}
    assert report.followers[0].partitions == 2


def test_another_action_takes_the_first_one_back(tasked: Tasked) -> None:
    tasked.full(ORDERS)
    tasked.step()
    tasked.choice = FENCE
    tasked.step()

    assert [(operation, bool(followers)) for operation, followers in tasked.gateway.told] == [
        ("skips", True),
        ("skips", False),
        ("follower-fences", True),
    ]


@pytest.mark.parametrize(
    ("depth", "refused"),
    [
        pytest.param(Depth.LIMIT, None, id="beyond the limit: nothing"),
        pytest.param(Depth.RESERVE, [2], id="in the reserve: what would fall below min.insync.replicas"),
        pytest.param(Depth.LAST, [0, 2], id="in the last half of it: everything"),
    ],
)
def test_a_reserve_refuses_nothing_before_it_has_to(tasked: Tasked, depth: Depth, refused: list[int] | None) -> None:
    orders = replace(ORDERS, log_dir="/a", critical=frozenset({2}))
    elsewhere = replace(ORDERS, name="elsewhere", log_dir="/b", critical=frozenset({0}))
    tasked.choice = RESERVE
    tasked.peers(
        FullFollower(
            broker=BrokerId(3),
            reason=WHY,
            log_dirs=("/a", "/b"),
            topics=(orders, elsewhere),
            depths={"/a": depth, "/b": Depth.LIMIT},
            reserve=Bytes(5 << 20),
        )
    )
    report = tasked.step()

    told = [followers for operation, followers in tasked.gateway.told if operation == "follower-fences" and followers]
    if refused is None:
        assert told == []
        assert "go on, refused below 5.00 MiB usable there (reserve)" in tasked.words()
    else:
        (followers,) = told
        assert [(row["topic"], row["partitions"]) for row in followers["3"]["topics"]] == [("orders", refused)]
        assert f"{len(refused)} of the 4 partitions there that this broker leads are refused" in tasked.words()
    assert report.followers[0].partitions == 4
    assert report.followers[0].held_partitions == len(refused or [])


@pytest.mark.parametrize("choice", [RESERVE, FENCE])
def test_past_the_line_of_commits_they_are_refused_for_that_disk_too(tasked: Tasked, choice: Choice) -> None:
    offsets = [replace(OFFSETS, log_dir="/a"), replace(OFFSETS, log_dir="/b", partitions=(3,))]
    tasked.choice = choice
    follower = FullFollower(broker=BrokerId(3), reason=WHY, log_dirs=("/a", "/b"), topics=tuple(offsets))
    for past_line in (frozenset[str](), frozenset({"/a"}), frozenset[str]()):
        tasked.peers(replace(follower, past_line=past_line))
        tasked.step()

    told = [followers for operation, followers in tasked.gateway.told if operation == "follower-fences"]
    assert [followers and followers["3"]["topics"] for followers in told] == [
        [{"topic": "__consumer_offsets", "topicId": None, "partitions": [1]}],
        {},
    ]
    assert tasked.woken == 3, "each is news"


def test_what_passes_unread_is_not_called_held_back(tasked: Tasked) -> None:
    tasked.full(ORDERS)
    before = tasked.step()
    tasked.gateway.passed_unread = 3
    leaking = tasked.step()
    said = tasked.words()
    tasked.clock.tick(LEASE)
    after = tasked.step()

    assert [before.holds, leaking.holds, after.holds] == [True, False, True]
    assert "its fetches are of a version that this gateway does not know" in said


def test_a_disk_that_comes_deeper_is_news(tasked: Tasked) -> None:
    orders = replace(ORDERS, log_dir="/a", critical=frozenset({2}))
    full = FullFollower(broker=BrokerId(3), reason=WHY, topics=(orders,), depths={"/a": Depth.LIMIT})
    tasked.choice = RESERVE
    for depth in (Depth.LIMIT, Depth.RESERVE, Depth.LAST, Depth.LIMIT):
        tasked.peers(replace(full, depths={"/a": depth}))
        tasked.step()

    assert [bool(followers) for _, followers in tasked.gateway.told] == [True, True, False]
    assert tasked.woken == 4
    assert tasked.said() == ["follower-full"] * 4


def test_a_report_that_is_too_old_counts_for_nothing(tasked: Tasked) -> None:
    tasked.full(ORDERS)
    tasked.step()
    tasked.clock.tick(60)
    tasked.step()

    assert tasked.gateway.told[-1] == ("skips", {})


@pytest.mark.parametrize("problem", [GONE, BadInput("no such operation")])
def test_a_gateway_that_fails_is_told_again_and_again(tasked: Tasked, problem: Exception) -> None:
    tasked.gateway.problem = problem
    tasked.full(ORDERS)
    wait = tasked.orders.step()
    failed = tasked.orders.report
    tasked.gateway.problem = None
    report = tasked.step()

    assert wait == RENEW
    assert failed.failure is not None
    assert failed.action is None
    assert (report.failure, report.action) == (None, FollowerAction.SKIP)
    assert tasked.said() == ["follower-full", "follower-full"]


def test_what_cannot_be_done_is_said_and_not_tried(tasked: Tasked) -> None:
    tasked.choice = IMPOSSIBLE
    tasked.full(ORDERS)
    tasked.step()

    assert tasked.gateway.told == []
    assert "this cannot be done: followers do not fetch through the gateway" in tasked.words()


def test_a_guard_that_observes_orders_nothing_and_says_what_it_would_do() -> None:
    tasked = Tasked(is_enforced=False)
    tasked.full(ORDERS)
    tasked.step()

    assert tasked.gateway.told == []
    assert "the 2 partitions there that this broker leads would not be replicated to it (skip)" in tasked.words()


def test_a_follower_of_nothing_that_is_led_here_needs_no_order(tasked: Tasked) -> None:
    tasked.full()
    tasked.step()

    assert tasked.gateway.told == []
    assert f"broker 3 has no room: {WHY}; no partition there is led here" in tasked.words()

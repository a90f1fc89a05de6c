"""The leader's throttle for replicas that are not in sync: set, withdrawn before others', put back after a kill."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.act.replica_throttle import OUR_RATE, ReplicaThrottle, ThrottleRecord
from brimline.model import BrokerId
from brimline.observe.cluster.replication_throttle import SeenThrottle

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = {"orders": (0, 2)}


class Killed(BaseException):
    pass


class ClusterInMemory:
    """``dies_before``: the number of the change before which the guard is killed."""

    def __init__(self) -> None:
        self.rate: str | None = None
        self.default_rate: str | None = None
        self.lists: dict[str, str] = {}
        self.dies_before: int | None = None
        self.changes = 0

    def look(self) -> SeenThrottle:
        others = () if self.default_rate is None else (self.default_rate,)
        return SeenThrottle(own_rate=self.rate, other_rates=others, lists=dict(self.lists))

    def alter_lists(self, lists: Mapping[str, str | None]) -> None:
        for topic, value in lists.items():
            self._change()
            if value is None:
                self.lists.pop(topic, None)
            else:
                self.lists[topic] = value

    def alter_rate(self, value: str | None) -> None:
        self._change()
        self.rate = value

    def _change(self) -> None:
        if self.changes == self.dies_before:
            raise Killed
        self.changes += 1


@pytest.fixture
def cluster() -> ClusterInMemory:
    return ClusterInMemory()


@pytest.fixture
def record(tmp_path: Path) -> ThrottleRecord:
    return ThrottleRecord(tmp_path / "throttle-1.json")


def started(cluster: ClusterInMemory, record: ThrottleRecord) -> ReplicaThrottle:
    return ReplicaThrottle(cluster, record, BrokerId(1), lambda: NOW)


def test_what_is_wanted_is_held_and_taken_back(cluster: ClusterInMemory, record: ThrottleRecord) -> None:
    throttle = started(cluster, record)

    assert throttle.hold(ORDERS) is None
    assert (cluster.rate, cluster.lists) == (OUR_RATE, {"orders": "0:1,2:1"})
    assert throttle.hold({"orders": (2,), "payments": (1,)}) is None
    assert (cluster.rate, cluster.lists) == (OUR_RATE, {"orders": "2:1", "payments": "1:1"})
    assert throttle.hold({"payments": (1,)}) is None
    assert cluster.lists == {"payments": "1:1"}

    throttle.release()
    assert (cluster.rate, cluster.lists, throttle.held) == (None, {}, None)
    assert not record.path.exists()


def test_it_is_set_once(cluster: ClusterInMemory, record: ThrottleRecord) -> None:
    throttle = started(cluster, record)
    throttle.hold(ORDERS)
    before = cluster.changes

    throttle.hold(ORDERS)

    assert cluster.changes == before


@pytest.mark.parametrize(
    ("rate", "default", "lists"),
    [
        pytest.param("50000000", None, {}, id="a rate"),
        pytest.param("1", None, {}, id="a rate like ours"),
        pytest.param(None, "50000000", {}, id="a rate of the whole cluster"),
        pytest.param(None, None, {"other": "0:1"}, id="a list of another topic"),
        pytest.param(None, None, {"orders": "*"}, id="a list of everything"),
    ],
)
def test_where_somebody_else_has_a_throttle_nothing_is_touched(
    cluster: ClusterInMemory, record: ThrottleRecord, rate: str | None, default: str | None, lists: dict[str, str]
) -> None:
    cluster.rate, cluster.default_rate, cluster.lists = rate, default, dict(lists)

    foreign = started(cluster, record).hold(ORDERS)

    assert foreign is not None
    assert (cluster.rate, cluster.default_rate, cluster.lists, cluster.changes) == (rate, default, lists, 0)
    assert not record.path.exists()


@pytest.mark.parametrize(
    ("rate", "lists"),
    [
        pytest.param("50000000", {}, id="a rate in place of ours"),
        pytest.param("50000000", {"orders": "0:1,1:1,2:1"}, id="a rate and a list, as kafka-reassign-partitions sets"),
        pytest.param(None, {"other": "*"}, id="a list beside ours"),
    ],
)
def test_ours_is_withdrawn_when_somebody_elses_appears(
    cluster: ClusterInMemory, record: ThrottleRecord, rate: str | None, lists: dict[str, str]
) -> None:
    throttle = started(cluster, record)
    throttle.hold(ORDERS)
    cluster.rate = rate or cluster.rate
    cluster.lists |= lists

    assert throttle.hold(ORDERS) is not None

    assert (cluster.rate, cluster.lists) == (rate, lists)
    assert throttle.held is None
    assert not record.path.exists()


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("then", ["hold", "release"])
def test_a_guard_that_is_killed_anywhere_goes_on_or_takes_back(
    cluster: ClusterInMemory, record: ThrottleRecord, step: int, then: str
) -> None:
    cluster.dies_before = step
    throttle = started(cluster, record)
    try:
        throttle.hold({"orders": (0,), "payments": (1,)})
        throttle.hold(ORDERS)
        throttle.release()
    except Killed:
        pass
    cluster.dies_before = None

    again = started(cluster, record)
    if then == "hold":
        assert again.hold(ORDERS) is None
        assert (cluster.rate, cluster.lists) == (OUR_RATE, {"orders": "0:1,2:1"})
    again.release()

    assert (cluster.rate, cluster.lists) == (None, {})
    assert not record.path.exists()


def test_a_damaged_record_still_tells_that_the_rate_is_ours(cluster: ClusterInMemory, record: ThrottleRecord) -> None:
    started(cluster, record).hold(ORDERS)
    record.path.write_text("{")

    again = started(cluster, record)
    again.release()

    assert (cluster.rate, cluster.lists) == (None, {"orders": "0:1,2:1"})
    assert "damaged" in again.warnings[0]

"""Which of KIP-1257's percentages are published, and how the states of volumes and gateway become numbers."""

from collections.abc import Collection

import pytest

from brimline.act.cordon import Cordoned
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.decide.followers import FollowerAction
from brimline.decide.peer_disks import Peer, heard
from brimline.disks.task import DiskReport, DiskSettings, DiskTask
from brimline.guard.ballast.feature import ballast_families
from brimline.guard.ballast.task import BallastStatus
from brimline.guard.disks.published import disk_families
from brimline.guard.feature import Core
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.feature import cordon_families, order_families, peer_families
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.guard.gateway_link.feature import OF_A_GATEWAY_THAT_ANSWERS, GatewayLink
from brimline.guard.gateway_link.task import GatewayReport
from brimline.guard.moves.feature import move_families
from brimline.guard.moves.task import MoveReport
from brimline.guard.percent.feature import Percentages
from brimline.guard.percent.task import PercentTask
from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.metric import Metric
from brimline.model import BrokerId, Bytes, Failure, FailureKind, TopicPartition
from brimline.observe.cluster.log_dirs import LedTopic
from brimline.settings import keys
from tests.decide.test_peer_disks import LIMITS, answer, described
from tests.guard.brokers import FakeBroker, facts, held
from tests.guard.files import config
from tests.guard.followers.test_orders import FENCE
from tests.guard.gateways import fence, refused, state
from tests.guard.percent.test_task import DOWN, FOREVER, PLAIN, TIERED
from tests.service.ticking import Answers, FakeDisks, TickingClock

ROWS = [("orders", 0, 500, False), ("orders", 0, 100, True), ("t", 0, 90, False), ("forever", 0, 70, False)]
TOPICS = {"orders": held(PLAIN), "t": held(TIERED, 0), "forever": held(FOREVER, 0)}


class Published:
    def __init__(self) -> None:
        self.board = MetricBoard()
        self.clock = TickingClock()
        disks = DiskReport(volumes=(), limits=LIMITS, checked=0.0)
        self.core = Core(config(""), self.clock, self.board, disks)

    def of(self, metric: Metric) -> dict[tuple[str, ...], float] | None:
        for family in self.board.families():
            if family.name == metric.name:
                return {row: float(value) for row, value in zip(family.label_values, family.values, strict=True)}
        return None

    def percentages(self, publish: str, *, publishes_percentages: bool, failure: Failure | None = None) -> None:
        broker = FakeBroker(facts(ROWS, TOPICS, publishes_percentages=publishes_percentages))
        broker.remote = {TopicPartition(topic, 0): (Bytes(600), Bytes(40)) for topic in ("t", "forever")}
        broker.failure = failure
        self.core.config = config(f"brimline.metrics.publish={publish}\n")
        PercentTask(broker, self.clock, 300.0, 30.0, Percentages(self.core).changed).step()


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.mark.parametrize("publishes_percentages", [False, True])
def test_everything_is_published_unless_something_else_is_asked_for(
    published: Published, *, publishes_percentages: bool
) -> None:
    published.percentages(str(keys.PUBLISH.default), publishes_percentages=publishes_percentages)

    assert published.of(catalogue.LOG_RETENTION_SIZE) == {("orders", "0"): 50, ("t", "0"): 0, ("forever", "0"): 0}


def test_on_an_old_broker_auto_publishes_everything(published: Published) -> None:
    published.percentages("auto", publishes_percentages=False)

    assert published.of(catalogue.LOG_RETENTION_SIZE) == {("orders", "0"): 50, ("t", "0"): 0, ("forever", "0"): 0}
    assert published.of(catalogue.FUTURE_LOG_RETENTION_SIZE) == {("orders", "0"): 10}
    assert published.of(catalogue.REMOTE_RETENTION_SIZE) == {("t", "0"): 64, ("forever", "0"): 0}
    assert published.of(catalogue.LOCAL_RETENTION_SIZE) == {("t", "0"): 90, ("forever", "0"): 70}


def test_on_a_new_broker_auto_publishes_only_what_it_shows_wrongly(published: Published) -> None:
    published.percentages("auto", publishes_percentages=True)

    assert published.of(catalogue.LOG_RETENTION_SIZE) is None
    assert published.of(catalogue.FUTURE_LOG_RETENTION_SIZE) is None
    assert published.of(catalogue.REMOTE_RETENTION_SIZE) == {("forever", "0"): 0}
    assert published.of(catalogue.LOCAL_RETENTION_SIZE) == {("forever", "0"): 70}


def test_all_publishes_everything_on_any_broker(published: Published) -> None:
    published.percentages("all", publishes_percentages=True)

    assert published.of(catalogue.LOCAL_RETENTION_SIZE) == {("t", "0"): 90, ("forever", "0"): 70}


def test_none_publishes_none(published: Published) -> None:
    published.percentages("none", publishes_percentages=False)

    assert published.of(catalogue.LOG_RETENTION_SIZE) is None
    assert published.of(catalogue.BROKER_CONNECTED) == {(): 1}


def test_a_change_to_none_takes_back_what_was_published(published: Published) -> None:
    published.percentages("all", publishes_percentages=False)
    published.percentages("none", publishes_percentages=False)

    assert published.of(catalogue.LOG_RETENTION_SIZE) is None


def test_a_broker_that_does_not_run_leaves_no_figures_and_is_counted(published: Published) -> None:
    published.percentages("all", publishes_percentages=False)
    published.percentages("all", publishes_percentages=False, failure=DOWN)

    assert published.of(catalogue.LOG_RETENTION_SIZE) is None
    assert published.of(catalogue.BROKER_CONNECTED) == {(): 0}
    assert published.of(catalogue.ERRORS) == {("unreachable",): 1}


def watched(published: Published, disks: FakeDisks, limits: DiskLimits, offline: Collection[str] = ()) -> None:
    answers = Answers()
    settings = DiskSettings(limits=limits, pace=Pace(interval=60.0), stall_timeout=10.0)
    task = DiskTask(list(disks.usable), settings, published.clock, answers, lambda _was, _volume: None, disks.look)
    task.offline = offline
    task.step()
    answers.wait(len(disks.usable))
    task.step()
    published.board.put(*disk_families(task.report, published.clock.seconds()))


def test_a_full_volume_is_1_for_each_of_its_log_dirs(published: Published) -> None:
    watched(published, FakeDisks(a=50, b=50), DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0)))

    assert published.of(catalogue.LOG_DIRECTORY_DISK_FULL) == {("a",): 1, ("b",): 1}
    assert published.of(catalogue.DISK_FULL_LOG_DIRECTORY_COUNT) == {(): 2}
    assert published.of(catalogue.VOLUME_TO_LIMIT) == {("a", "8:1"): -50, ("b", "8:1"): -50}


def test_an_unknown_volume_is_not_full_and_has_no_bytes(published: Published) -> None:
    disks = FakeDisks(a=50)
    disks.failure["a"] = Failure(kind=FailureKind.GONE, message="gone")

    watched(published, disks, DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0)))

    states = published.of(catalogue.VOLUME_STATE)
    assert published.of(catalogue.LOG_DIRECTORY_DISK_FULL) == {("a",): 0}
    assert published.of(catalogue.VOLUME_USABLE) == {}
    assert states is not None
    assert states[("a", "unknown", "unknown")] == 1


def test_a_log_dir_that_the_broker_holds_offline_is_not_ok(published: Published) -> None:
    watched(published, FakeDisks(a=500, b=500), DiskLimits(min_free_bytes=Bytes(0)), offline=["a"])

    states = published.of(catalogue.VOLUME_STATE)
    assert states is not None
    assert {row[::2] for row, value in states.items() if value} == {("a", "offline"), ("b", "ok")}


def test_inodes_are_published_where_the_file_system_counts_them(published: Published) -> None:
    disks = FakeDisks(a=500, b=500)
    disks.device["b"] = "8:2"
    disks.files["a"] = 7

    watched(published, disks, DiskLimits(min_free_files=10))

    assert published.of(catalogue.VOLUME_INODES) == {("a", "8:1"): 1000}
    assert published.of(catalogue.VOLUME_INODES_USABLE) == {("a", "8:1"): 7}
    assert published.of(catalogue.VOLUME_INODES_LIMIT) == {("a", "8:1"): 10}
    assert published.of(catalogue.LOG_DIRECTORY_DISK_FULL) == {("a",): 1, ("b",): 1}


def test_without_limits_the_distance_is_infinite(published: Published) -> None:
    watched(published, FakeDisks(a=50), DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0)))

    assert published.of(catalogue.VOLUME_TO_LIMIT) == {("a", "8:1"): float("inf")}


@pytest.mark.parametrize(("is_held", "paused"), [(True, 2), (False, 0)])
def test_moves_into_a_full_log_dir_are_counted_held_up_or_not(
    published: Published,
    is_held: bool,  # noqa: FBT001 (a row of the table)
    paused: int,
) -> None:
    moves = {"a": [TopicPartition("orders", 0), TopicPartition("orders", 1)]}

    published.board.put(*move_families(MoveReport(moves=moves, is_held=is_held)))

    assert published.of(catalogue.MOVES_INTO_FULL) == {("a",): 2}
    assert published.of(catalogue.MOVES_PAUSED) == {("a",): paused}


ORDERS = LedTopic(name="orders", topic_id=None, partitions=(0, 2))


def test_full_followers_are_published_and_healthy_brokers_only_counted(published: Published) -> None:
    peers = tuple(heard(Peer(broker=BrokerId(n)), answer(described(500)), LIMITS, 0.0, 30.0) for n in range(2, 5))
    full = FullFollower(
        broker=BrokerId(2),
        reason="log dir /a is full",
        log_dirs=("/a",),
        topics=(ORDERS,),
        held=(ORDERS,),
    )

    published.board.put(*peer_families(PeerReport(peers=peers, full=(full,), questions={"volumes": 7})))
    for action in (FollowerAction.FENCE, None):
        orders = OrderReport(choice=FENCE, is_enforced=True, action=action, followers=(full,))
        published.board.put(*order_families(orders))
        assert published.of(catalogue.FOLLOWER_PARTITIONS) == {("2", "fence"): 2}
        assert published.of(catalogue.FOLLOWER_HELD_BACK) == {("2", "fence"): 2 if action else 0}

    assert published.of(catalogue.PEERS) == {("fresh",): 3, ("stale",): 0, ("silent",): 0, ("no-volumes",): 0}
    assert published.of(catalogue.PEER_FULL_LOG_DIRS) == {("2",): 1}
    assert published.of(catalogue.PEER_QUESTIONS) == {("volumes",): 7}
    assert published.of(catalogue.FOLLOWER_ACTION_POSSIBLE) == {(): 1}


def test_cordoned_log_dirs_are_published_with_who_did_it(published: Published) -> None:
    cordoned = Cordoned(ours=frozenset({"/a"}), theirs=frozenset({"/b"}))

    published.board.put(*cordon_families(CordonReport(cordoned=cordoned)))

    assert published.of(catalogue.CORDONED) == {("/a", "guard"): 1, ("/b", "operator"): 1}


def test_the_gateways_figures_are_published(published: Published) -> None:
    answer = state(
        fences=[fence("full"), fence("manual", by="alice", topic="clicks", partitions=3)],
        refusals=[refused(), refused(topic="(other)", partition=-1, client="(other)")],
        wouldHaveRefused=[refused(batches=2)],
    )

    GatewayLink(published.core).changed(GatewayReport(is_wanted=True, state=answer))

    assert published.of(catalogue.GATEWAY_UP) == {(): 1}
    assert published.of(catalogue.GATEWAY_CONNECTIONS) == {("CLIENT",): 7}
    assert published.of(catalogue.GATEWAY_CLOSED) == {("client",): 1, ("header-timeout",): 1}
    assert published.of(catalogue.GATEWAY_BYTES) == {("to_broker",): 1000, ("to_clients",): 2000}
    assert published.of(catalogue.GATEWAY_FENCE) == {("/data/a", "", "full"): 1, ("", "clicks", "manual"): 1}
    assert published.of(catalogue.GATEWAY_FENCED_PARTITIONS) == {
        ("/data/a", "", "full"): 12,
        ("", "clicks", "manual"): 3,
    }
    assert published.of(catalogue.GATEWAY_REFUSED_BATCHES) == {
        ("orders", "3", "librdkafka 2.10.0"): 5,
        ("(other)", "", "(other)"): 5,
    }
    assert published.of(catalogue.GATEWAY_WOULD_REFUSE_BYTES) == {("orders", "3", "librdkafka 2.10.0"): 200}
    assert published.of(catalogue.GATEWAY_WITHHELD_BYTES) == {(): 7}
    assert published.of(catalogue.GATEWAY_ADDED_LATENCY) == {
        ("_bucket", "0.0001"): 10,
        ("_bucket", "0.001"): 15,
        ("_bucket", "+Inf"): 16,
        ("_sum", ""): 0.02,
        ("_count", ""): 16,
    }


def test_every_metric_of_a_gateway_is_published_and_withdrawn_together(published: Published) -> None:
    of_a_gateway = {metric for metric in catalogue.CATALOGUE if metric.name.startswith("gateway_")}
    GatewayLink(published.core).changed(GatewayReport(is_wanted=True, state=state()))
    while_up = {family.name for family in published.board.families()}

    GatewayLink(published.core).changed(GatewayReport(is_wanted=True, failure=DOWN))

    always = catalogue.REPLICATION_THROUGH_GATEWAY
    assert while_up == {metric.name for metric in (*of_a_gateway, always)}
    assert of_a_gateway - set(OF_A_GATEWAY_THAT_ANSWERS) == {catalogue.GATEWAY_UP}
    assert {family.name for family in published.board.families()} == {"gateway_up", always.name}
    assert published.of(catalogue.GATEWAY_UP) == {(): 0}


def test_ballasts(published: Published) -> None:
    status = BallastStatus(device="8:1", path="/a/.brimline-ballast", size=Bytes(7), wanted=Bytes(9), releases=2)
    published.board.put(*ballast_families([status], Bytes(9)))

    assert published.of(catalogue.BALLAST_BYTES) == {("/a", "8:1"): 7}
    assert published.of(catalogue.BALLAST_RELEASES) == {("/a", "8:1"): 2}
    assert published.of(catalogue.BALLAST_WANTED) == {(): 9}

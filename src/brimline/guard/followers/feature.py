"""Full followers, put together: who looks at the others' disks, who tells the gateway, who cordons, who throttles.

Also what ``/v1/state`` and the metrics tell of them.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

from brimline.act.broker_setting import CordonSetting
from brimline.act.cordon import Cordon
from brimline.act.ledger.ledger import Ledger
from brimline.act.replica_throttle import LeaderThrottle, ReplicaThrottle, ThrottleRecord
from brimline.act.shedding import Assignments, Shedding
from brimline.decide.followers import FollowerAction
from brimline.decide.peer_disks import PeerState
from brimline.disks.task import DiskReport
from brimline.documents.guard_state import (
    CordonDocument,
    FailureDocument,
    FollowerDocument,
    FollowersDocument,
    ShedDocument,
    ThrottleDocument,
    UnansweredPeer,
)
from brimline.gateway.client import GatewayClient, control_socket
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.followers.client import ClusterClient
from brimline.guard.followers.cordon import CordonReport, CordonTask
from brimline.guard.followers.findings import explain_followers, explain_throttle
from brimline.guard.followers.orders import FollowerOrders
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport, follower_choice, follower_reserve
from brimline.guard.followers.shed_words import ShedNews, shed_document, shed_families
from brimline.guard.followers.shedding import SheddingReport, SheddingTask
from brimline.guard.followers.task import FollowerTask
from brimline.guard.followers.throttle import (
    NOTHING_THROTTLED,
    ThrottleNews,
    ThrottleReport,
    ThrottleTask,
    throttle_sentence,
)
from brimline.guard.followers.words import WHAT_TO_DO, CordonNews, FollowerNews, action_sentence, follower_sentence
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import BrokerId, BrokerLogDirs, Failure, ObservationFailed
from brimline.service.worker import Worker
from brimline.settings import keys


def follower_document(
    peers: PeerReport,
    orders: OrderReport,
    seconds: float,
    throttle: ThrottleReport = NOTHING_THROTTLED,
    shed: ShedDocument | None = None,
) -> FollowersDocument | None:
    """``None`` where there is no other broker. ``seconds``: now, on the clock of the readings."""
    if not peers.peers and peers.failure is None:
        return None
    return FollowersDocument(
        action=orders.choice.action.value,
        why=action_sentence(orders),
        possible=orders.choice.obstacle is None,
        in_force=None if orders.action is None else orders.action.value,
        patience_seconds=peers.patience,
        failure=FailureDocument.of(orders.failure or peers.failure),
        peers={state.value: peers.count(state) for state in PeerState},
        unanswered=tuple(
            UnansweredPeer(
                broker=peer.broker,
                state=peer.state.value,
                age_seconds=None if peer.answered is None else round(seconds - peer.answered, 1),
                failure=FailureDocument.of(peer.failure),
            )
            for peer in peers.peers
            if peer.state is not PeerState.FRESH
        ),
        full=tuple(_follower(each, orders) for each in orders.followers),
        throttle=None if throttle.is_quiet else _throttle(throttle),
        shed=shed,
    )


def _throttle(report: ThrottleReport) -> ThrottleDocument:
    return ThrottleDocument(
        partitions=0 if report.held is None else report.held.partitions,
        since=None if report.held is None else report.held.since,
        foreign=report.foreign,
        failure=FailureDocument.of(report.failure),
        does=throttle_sentence(report),
    )


def _follower(follower: FullFollower, orders: OrderReport) -> FollowerDocument:
    return FollowerDocument(
        broker=follower.broker,
        log_dirs=follower.log_dirs,
        partitions=follower.partitions,
        held_back=orders.holds and follower.held_partitions > 0,
        held_back_partitions=follower.held_partitions if orders.holds else 0,
        failure=FailureDocument.of(follower.failure),
        does=follower_sentence(follower, orders),
        what_to_do=WHAT_TO_DO,
    )


def cordon_document(report: CordonReport) -> CordonDocument:
    return CordonDocument(
        wanted=report.is_wanted,
        supported=report.is_supported,
        log_dirs=tuple(sorted(report.cordoned.ours)),
        by_operator=tuple(sorted(report.cordoned.theirs)),
        kept_open=tuple(sorted(report.kept_open)),
        failure=FailureDocument.of(report.failure),
    )


def peer_families(report: PeerReport) -> list[MetricFamily]:
    """Of the brokers only those with a full disk have rows of their own: a cluster of 150 has 150 guards.

    Before anybody could say which brokers there are, none is counted, not even as 0.
    """
    asked = sorted(report.questions.items())
    states = () if report.failure is not None and not report.peers else tuple(PeerState)
    return [
        catalogue.PEERS.family(tuple((state.value,) for state in states), [report.count(state) for state in states]),
        catalogue.PEER_FULL_LOG_DIRS.family(
            tuple((str(each.broker),) for each in report.full), [len(each.log_dirs) for each in report.full]
        ),
        catalogue.PEER_QUESTIONS.family(tuple((kind,) for kind, _ in asked), [count for _, count in asked]),
    ]


def order_families(report: OrderReport) -> list[MetricFamily]:
    rows = tuple((str(each.broker), report.choice.action.value) for each in report.followers)
    is_done = report.holds
    return [
        catalogue.FOLLOWER_PARTITIONS.family(rows, [each.partitions for each in report.followers]),
        catalogue.FOLLOWER_HELD_BACK.family(
            rows, [each.held_partitions if is_done else 0 for each in report.followers]
        ),
        catalogue.FOLLOWER_ACTION_POSSIBLE.single(int(report.is_enforced and report.choice.obstacle is None)),
    ]


def cordon_families(report: CordonReport) -> list[MetricFamily]:
    rows = [
        *((path, "guard") for path in sorted(report.cordoned.ours)),
        *((path, "operator") for path in sorted(report.cordoned.theirs)),
    ]
    return [catalogue.CORDONED.family(tuple(rows), [1] * len(rows))]


class Followers(Feature):
    """A thread for each of the five, so that none waits for another."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._news, self._cordon_news, self._throttle_news = FollowerNews(), CordonNews(), ThrottleNews()
        config, clock, own = core.config, core.clock, core.broker
        self._shed_news = ShedNews(config.admin_access.servers)
        looking = Worker("followers", lambda: self._task.step())
        telling = Worker("follower orders", lambda: self._orders.step())
        cordoning = Worker("cordon", lambda: self._cordon.step())
        throttling = Worker("follower throttle", lambda: self._throttle.step(), at_end=lambda: self._throttle.end())
        shedding = Worker("shedding", lambda: self._shedding.step())
        self._look_again = looking.wake
        self._task = FollowerTask(
            own,
            ClusterClient(config.admin, own, clock),
            clock,
            lambda: core.config.limits,
            lambda: core.config.pace,
            random.random,
            self._saw,
            lambda: follower_reserve(core.config),
            lambda: core.config.number(keys.COMMITS_LINE),
        )
        self._orders = FollowerOrders(
            GatewayClient(control_socket(config)),
            clock,
            lambda: follower_choice(core.config),
            telling.wake,
            self._ordered,
            is_enforced=config.is_enforcing,
        )
        self._cordon = CordonTask(_cordon_of(core), clock, self._is_to_cordon, cordoning.wake, self._cordoned)
        self._throttled = _throttle_of(core)
        self._throttle = ThrottleTask(
            self._throttled, clock, self._is_to_throttle, throttling.wake, self._throttled_now
        )
        self._shedding = SheddingTask(_shedding_of(core), clock, self._is_to_shed, shedding.wake, self._shed_now)
        self.workers = [looking, telling, cordoning, throttling, shedding]

    @property
    def warnings(self) -> Sequence[str]:
        return self._throttled.warnings

    def decided(self, disks: DiskReport) -> None:
        self._cordon.decided(disks)

    def document(self, seconds: float) -> Mapping[str, object]:
        shed = shed_document(self._shedding.report, self.core.config.admin_access.servers)
        return {
            "followers": follower_document(
                self._task.report, self._orders.report, seconds, self._throttle.report, shed
            ),
            "cordon": cordon_document(self._cordon.report),
        }

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        record = ThrottleRecord.of(looked.config.state_dir, looked.config.node_id)
        yield from explain_throttle(looked.config.node_id, record.read(looked.clock.now()))
        yield from explain_followers(looked.config, _volumes_of_all(looked) if looked.broker_answers else None)

    def _is_to_cordon(self) -> bool:
        config = self.core.config
        return config.is_enforcing and bool(config.settings[keys.CORDON.name].value)

    def _is_to_throttle(self) -> bool:
        config = self.core.config
        is_on = config.is_enforcing and bool(config.settings[keys.FOLLOWER_THROTTLE.name].value)
        return is_on and follower_choice(config).action is not FollowerAction.SKIP

    def _is_to_shed(self) -> bool:
        config = self.core.config
        is_on = config.is_enforcing and config.text(keys.FOLLOWER_SHED) == keys.ON
        return is_on and follower_choice(config).action is FollowerAction.RESERVE

    def _shed_now(self, report: SheddingReport) -> None:
        if report.new:
            self._task.ask_details_again()
            self._look_again()
        self.core.board.put(*shed_families(report))
        self._shed_news.tell(report)

    def _throttled_now(self, report: ThrottleReport) -> None:
        held = 0 if report.held is None else report.held.partitions
        self.core.board.put(catalogue.FOLLOWER_THROTTLED.single(held))
        self._throttle_news.tell(report)

    def _saw(self, report: PeerReport) -> None:
        self._orders.decided(report)
        self._throttle.decided(report)
        self._shedding.decided(report)
        self._cordon.heard(report)
        self.core.board.put(*peer_families(report))
        self._news.peers(report)

    def _ordered(self, report: OrderReport) -> None:
        self.core.board.put(*order_families(report))
        self._news.orders(report)

    def _cordoned(self, report: CordonReport) -> None:
        self.core.board.put(*cordon_families(report))
        self._cordon_news.tell(report)


def _cordon_of(core: Core) -> Cordon:
    config = core.config
    ledger = Ledger(config.state_dir, core.broker, core.clock.now)
    return Cordon(CordonSetting(config.admin, core.broker), ledger, config.broker.log_dirs)


def _shedding_of(core: Core) -> Shedding:
    config, now = core.config, core.clock.now
    assignments = Assignments(config.admin, core.broker, now)
    return Shedding(assignments, Ledger(config.state_dir, core.broker, now), core.broker, now)


def _throttle_of(core: Core) -> ReplicaThrottle:
    record = ThrottleRecord.of(core.config.state_dir, core.broker)
    return ReplicaThrottle(LeaderThrottle(core.config.admin, core.broker), record, core.broker, core.clock.now)


def _volumes_of_all(looked: Looked) -> Mapping[BrokerId, BrokerLogDirs] | Failure:
    client = ClusterClient(looked.config.admin, looked.config.node_id, looked.clock)
    try:
        return client.volumes(client.brokers())
    except ObservationFailed as error:
        return error.failure
    finally:
        client.close()

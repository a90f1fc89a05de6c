"""Full followers, put together: who looks at the other brokers' disks, who tells the gateway, who cordons."""

import random
from collections.abc import Iterator, Mapping

from brimline.act.broker_setting import CordonSetting
from brimline.act.cordon import Cordon
from brimline.act.ledger.ledger import Ledger
from brimline.disks.task import DiskReport
from brimline.gateway.client import GatewayClient, control_socket
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.followers.client import ClusterClient
from brimline.guard.followers.cordon import CordonReport, CordonTask
from brimline.guard.followers.findings import explain_followers
from brimline.guard.followers.orders import FollowerOrders
from brimline.guard.followers.published import (
    cordon_document,
    cordon_families,
    follower_document,
    order_families,
    peer_families,
)
from brimline.guard.followers.report import OrderReport, PeerReport, follower_choice
from brimline.guard.followers.task import FollowerTask
from brimline.guard.followers.words import CordonNews, FollowerNews
from brimline.model import BrokerId, BrokerLogDirs, Failure, ObservationFailed
from brimline.service.worker import Worker
from brimline.settings import keys


class Followers(Feature):
    """A thread for each of the three, so that none waits for another."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._news, self._cordon_news = FollowerNews(), CordonNews()
        config, clock, own = core.config, core.clock, core.broker
        looking = Worker("followers", lambda: self._task.step())
        telling = Worker("follower orders", lambda: self._orders.step())
        cordoning = Worker("cordon", lambda: self._cordon.step())
        self._task = FollowerTask(
            own,
            ClusterClient(config.admin, own, clock),
            clock,
            lambda: core.config.limits,
            lambda: core.config.pace,
            random.random,
            self._saw,
        )
        self._orders = FollowerOrders(
            GatewayClient(control_socket(config)),
            clock,
            lambda: follower_choice(core.config),
            telling.wake,
            self._ordered,
            is_enforced=config.is_enforcing,
        )
        setting = CordonSetting(config.admin, own)
        ledger = Ledger(config.state_dir, own, clock.now)
        self._cordon = CordonTask(
            Cordon(setting, ledger, config.broker.log_dirs),
            clock,
            self._is_to_cordon,
            cordoning.wake,
            self._cordoned,
        )
        self.workers = [looking, telling, cordoning]

    def decided(self, disks: DiskReport) -> None:
        self._cordon.decided(disks)

    def document(self, seconds: float) -> Mapping[str, object]:
        return {
            "followers": follower_document(self._task.report, self._orders.report, seconds),
            "cordon": cordon_document(self._cordon.report),
        }

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        yield from explain_followers(looked.config, _volumes_of_all(looked) if looked.broker_answers else None)

    def _is_to_cordon(self) -> bool:
        config = self.core.config
        return config.is_enforcing and bool(config.settings[keys.CORDON.name].value)

    def _saw(self, report: PeerReport) -> None:
        self._orders.decided(report)
        self._cordon.heard(report)
        self.core.board.put(*peer_families(report))
        self._news.peers(report)

    def _ordered(self, report: OrderReport) -> None:
        self.core.board.put(*order_families(report))
        self._news.orders(report)

    def _cordoned(self, report: CordonReport) -> None:
        self.core.board.put(*cordon_families(report))
        self._cordon_news.tell(report)


def _volumes_of_all(looked: Looked) -> Mapping[BrokerId, BrokerLogDirs] | Failure:
    client = ClusterClient(looked.config.admin, looked.config.node_id, looked.clock)
    try:
        return client.volumes(client.brokers())
    except ObservationFailed as error:
        return error.failure
    finally:
        client.close()

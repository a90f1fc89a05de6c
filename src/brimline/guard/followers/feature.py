"""Full followers, put together: who looks at the other brokers' disks, who tells the gateway, who cordons."""

import random
from collections.abc import Callable
from typing import Protocol

from brimline.act.cordon import Cordon
from brimline.act.cordon_setting import CordonSetting
from brimline.act.ledger.ledger import Ledger
from brimline.decide.followers import Choice, choose_action
from brimline.disks.task import DiskReport
from brimline.gateway.client import GatewayClient, control_socket
from brimline.guard.followers.client import ClusterClient
from brimline.guard.followers.cordon import CordonReport, CordonTask
from brimline.guard.followers.orders import FollowerOrders
from brimline.guard.followers.report import OrderReport, PeerReport
from brimline.guard.followers.task import FollowerTask
from brimline.guard.followers.words import CordonNews, FollowerNews
from brimline.service.clock import Clock
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import GuardConfig


class FollowerPublisher(Protocol):
    """Who is told of every new report; ``Publisher`` makes metrics of them."""

    def peers(self, report: PeerReport) -> None: ...

    def follower_orders(self, report: OrderReport) -> None: ...

    def cordons(self, report: CordonReport) -> None: ...


def follower_choice(config: GuardConfig) -> Choice:
    fronted = config.layout.fronted
    return choose_action(
        config.text(keys.FOLLOWER_ACTION),
        carries_replication=any(each.carries_replication for each in fronted),
        carries_clients=bool(fronted),
    )


class Followers:
    """``config`` is what counts now. A thread for each of the three, so that none waits for another."""

    def __init__(self, config: Callable[[], GuardConfig], clock: Clock, publisher: FollowerPublisher) -> None:
        self._config = config
        self._publisher = publisher
        self._news, self._cordon_news = FollowerNews(), CordonNews()
        started_with = config()
        own = started_with.node_id
        looking = Worker("followers", lambda: self._task.step())
        telling = Worker("follower orders", lambda: self._orders.step())
        cordoning = Worker("cordon", lambda: self._cordon.step())
        self._task = FollowerTask(
            own,
            ClusterClient(started_with.admin, own, clock),
            clock,
            lambda: config().limits,
            lambda: config().pace,
            random.random,
            self._saw,
        )
        self._orders = FollowerOrders(
            GatewayClient(control_socket(started_with)),
            clock,
            lambda: follower_choice(config()),
            telling.wake,
            self._ordered,
            is_enforced=started_with.is_enforcing,
        )
        setting = CordonSetting(started_with.admin, own)
        ledger = Ledger(started_with.state_dir, own, clock.now)
        self._cordon = CordonTask(
            Cordon(setting, ledger, started_with.broker.log_dirs),
            clock,
            self._is_to_cordon,
            cordoning.wake,
            self._cordoned,
        )
        self.workers = [looking, telling, cordoning]

    @property
    def peers(self) -> PeerReport:
        return self._task.report

    @property
    def orders(self) -> OrderReport:
        return self._orders.report

    @property
    def cordon(self) -> CordonReport:
        return self._cordon.report

    def decided(self, disks: DiskReport) -> None:
        """From the disks' thread; returns at once."""
        self._cordon.decided(disks)

    def _is_to_cordon(self) -> bool:
        config = self._config()
        return config.is_enforcing and bool(config.settings[keys.CORDON.name].value)

    def _saw(self, report: PeerReport) -> None:
        self._orders.decided(report)
        self._cordon.heard(report)
        self._publisher.peers(report)
        self._news.peers(report)

    def _ordered(self, report: OrderReport) -> None:
        self._publisher.follower_orders(report)
        self._news.orders(report)

    def _cordoned(self, report: CordonReport) -> None:
        self._publisher.cordons(report)
        self._cordon_news.tell(report)

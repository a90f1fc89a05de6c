"""The guard's client of the whole cluster: asks all brokers at once, connects when needed, and anew after a failure.

A client that failed to reach a broker waits before it tries again, longer each time, up to half a minute. That suits
whoever wants to send something, and not a guard that wants to know soon that a broker is back. So a client with which
somebody could not be reached is replaced by a new one after a while.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Protocol

from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline, Reconnecting
from brimline.observe.cluster.log_dirs import Followed, LedTopic, ask_followed, ask_volumes
from brimline.service.clock import Clock

PATIENCE = timedelta(seconds=5)
"""For a hundred bytes of every broker."""
_PATIENCE_FOR_DETAILS = timedelta(seconds=10)
_RENEWED_AFTER = 10.0


Remembered = Mapping[BrokerId, Collection[LedTopic]]
"""Brokers that are full and do not answer, with what was known of them: leaders and followers in sync may change."""


class PeerCluster(Protocol):
    """What is asked of the cluster; ``ClusterClient`` asks a real one. Methods raise ``ObservationFailed``."""

    def brokers(self) -> Collection[BrokerId]: ...

    def volumes(self, brokers: Iterable[BrokerId]) -> Mapping[BrokerId, BrokerLogDirs]: ...

    def followed(self, full: Mapping[BrokerId, Collection[str]], remembered: Remembered) -> Followed: ...


class ClusterClient(Reconnecting):
    def __init__(self, config: ClientConfig, own: BrokerId, clock: Clock) -> None:
        super().__init__(config, self._connected_now)
        self._own = own
        self._clock = clock
        self._connected_at = 0.0

    def brokers(self) -> Collection[BrokerId]:
        """The live ones, as the cluster lists them now."""
        with self.connected() as connection:
            connection.refresh_brokers(Deadline(PATIENCE))
            return list(connection.brokers)

    def endpoints(self) -> Collection[tuple[str, int]]:
        """Hosts and ports of the other live brokers."""
        with self.connected() as connection:
            connection.refresh_brokers(Deadline(PATIENCE))
            return [(each.host, each.port) for each in connection.brokers.values() if each.broker != self._own]

    def volumes(self, brokers: Iterable[BrokerId]) -> Mapping[BrokerId, BrokerLogDirs]:
        with self.connected() as connection:
            answers = ask_volumes(connection, brokers, Deadline(PATIENCE), self._clock.now)
        failures = [each.failure for each in answers.values() if each.failure is not None]
        if any(_is_silence(failure) for failure in failures) and self._is_old:
            self.close()
        return answers

    def followed(self, full: Mapping[BrokerId, Collection[str]], remembered: Remembered) -> Followed:
        deadline = Deadline(_PATIENCE_FOR_DETAILS)
        with self.connected() as connection:
            return ask_followed(connection, self._own, full, deadline, self._clock.now, remembered)

    @property
    def _is_old(self) -> bool:
        return self._clock.seconds() - self._connected_at > _RENEWED_AFTER

    def _connected_now(self, config: ClientConfig) -> Connection:
        connection = Connection(config)
        self._connected_at = self._clock.seconds()
        return connection


def _is_silence(failure: Failure) -> bool:
    return failure.kind in (FailureKind.UNREACHABLE, FailureKind.TIMED_OUT, FailureKind.NOT_AUTHENTICATED)

"""Dynamic settings of one broker, over a connection of their own."""

from collections.abc import Collection
from datetime import timedelta

from brimline.model import BrokerId
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.alter_broker_config import (
    alter_own_dynamic_list,
    alter_own_dynamic_value,
    own_dynamic_list,
    own_dynamic_value,
)

_PATIENCE = timedelta(seconds=10)
CORDONED = "cordoned.log.dirs"
EVERY_LOG_DIR = "*"


class BrokerSetting(Reconnecting):
    """One value. Every method raises ``ObservationFailed`` when the broker gives no answer, or refuses."""

    def __init__(self, config: ClientConfig, broker: BrokerId, key: str) -> None:
        super().__init__(config)
        self._broker = broker
        self._key = key

    def own_value(self) -> str | None:
        """What the broker's own value is set to; ``None``: it has none, the cluster's default or its file counts."""
        with self.connected() as connection:
            return own_dynamic_value(connection, self._broker, self._key, Deadline(_PATIENCE))

    def alter(self, value: str | None) -> None:
        with self.connected() as connection:
            alter_own_dynamic_value(connection, self._broker, self._key, value, Deadline(_PATIENCE))

    def check(self, value: str | None) -> None:
        """Whether it could be altered so; changes nothing."""
        with self.connected() as connection:
            alter_own_dynamic_value(connection, self._broker, self._key, value, Deadline(_PATIENCE), only_check=True)


class CordonSetting(Reconnecting):
    """``cordoned.log.dirs``. Every method raises ``ObservationFailed`` when the broker gives no answer, or refuses."""

    def __init__(self, config: ClientConfig, broker: BrokerId) -> None:
        super().__init__(config)
        self._broker = broker

    def cordoned(self) -> Collection[str]:
        """What counts now, whoever put it there."""
        with self.connected() as connection:
            return own_dynamic_list(connection, self._broker, CORDONED, Deadline(_PATIENCE)).effective

    def add(self, log_dirs: Collection[str]) -> None:
        with self.connected() as connection:
            alter_own_dynamic_list(connection, self._broker, CORDONED, Deadline(_PATIENCE), add=log_dirs)

    def remove(self, log_dirs: Collection[str]) -> None:
        with self.connected() as connection:
            alter_own_dynamic_list(connection, self._broker, CORDONED, Deadline(_PATIENCE), remove=log_dirs)

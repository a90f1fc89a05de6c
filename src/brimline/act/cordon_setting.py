"""A broker's ``cordoned.log.dirs``, over a connection of its own: made when it is needed, and anew after a failure."""

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TypeVar

from brimline.model import BrokerId, ObservationFailed
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.alter_broker_config import alter_own_dynamic_list, own_dynamic_list

KEY = "cordoned.log.dirs"
EVERY_LOG_DIR = "*"
_PATIENCE = timedelta(seconds=10)

Answer = TypeVar("Answer")


class CordonSetting:
    """For one thread. Every method raises ``ObservationFailed`` when the broker gives no answer, or refuses."""

    def __init__(self, config: ClientConfig, broker: BrokerId) -> None:
        self._config = config
        self._broker = broker
        self._connection: Connection | None = None

    def cordoned(self) -> Collection[str]:
        """What counts now, whoever put it there."""
        found = self._ask(lambda asked, deadline: own_dynamic_list(asked, self._broker, KEY, deadline))
        return found.effective

    def add(self, log_dirs: Collection[str]) -> None:
        self._ask(lambda asked, deadline: alter_own_dynamic_list(asked, self._broker, KEY, deadline, add=log_dirs))

    def remove(self, log_dirs: Collection[str]) -> None:
        self._ask(lambda asked, deadline: alter_own_dynamic_list(asked, self._broker, KEY, deadline, remove=log_dirs))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, question: Callable[[Connection, Deadline], Answer]) -> Answer:
        try:
            if self._connection is None:
                self._connection = Connection(self._config)
            return question(self._connection, Deadline(_PATIENCE))
        except ObservationFailed:
            self.close()
            raise

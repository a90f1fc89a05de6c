"""A dynamic setting of one broker, over a connection of its own: made when it is needed, and anew after a failure."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from brimline.model import BrokerId, ObservationFailed
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.alter_broker_config import alter_own_dynamic_value, own_dynamic_value

_PATIENCE = timedelta(seconds=10)

Answer = TypeVar("Answer")


class BrokerSetting:
    """For one thread. Every method raises ``ObservationFailed`` when the broker gives no answer, or refuses."""

    def __init__(self, config: ClientConfig, broker: BrokerId, key: str) -> None:
        self._config = config
        self._broker = broker
        self._key = key
        self._connection: Connection | None = None

    def own_value(self) -> str | None:
        """What the broker's own value is set to; ``None``: it has none, the cluster's default or its file counts."""
        return self._ask(lambda connection, deadline: own_dynamic_value(connection, self._broker, self._key, deadline))

    def alter(self, value: str | None) -> None:
        self._ask(
            lambda connection, deadline: alter_own_dynamic_value(connection, self._broker, self._key, value, deadline)
        )

    def check(self, value: str | None) -> None:
        """Whether it could be altered so; changes nothing."""
        self._ask(
            lambda connection, deadline: alter_own_dynamic_value(
                connection, self._broker, self._key, value, deadline, only_check=True
            )
        )

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

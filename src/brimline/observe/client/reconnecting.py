"""A connection that is made when it is needed, and anew after a failure: the cluster may not be the one that it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from brimline.model import ObservationFailed
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection


class Reconnecting:
    """For one thread."""

    def __init__(self, config: ClientConfig, connect: Callable[[ClientConfig], Connection] = Connection) -> None:
        self.config = config
        self._connect = connect
        self._connection: Connection | None = None

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """``ObservationFailed`` inside of the block ends the connection, too."""
        try:
            if self._connection is None:
                self._connection = self._connect(self.config)
            yield self._connection
        except ObservationFailed:
            self.close()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

"""What the broker's own files add to ``brimline topics``: the segment at the head of every log."""

from collections.abc import Mapping
from contextlib import closing

from brimline.decide.reclaim.tables import BrokerTables
from brimline.decide.shrinking import heads
from brimline.decide.topic_use import Place
from brimline.guard.broker_client import BrokerClient
from brimline.guard.survey import BrokerSurveyor
from brimline.model import BrokerId
from brimline.model.topic_use import Head
from brimline.service.clock import Clock
from brimline.settings.config import GuardConfig


def heads_here(config: GuardConfig, clock: Clock) -> Mapping[Place, Head]:
    """Raises ``ObservationFailed`` when the broker gives no answer."""
    with closing(BrokerClient(config.admin, config.node_id, clock)) as client:
        tables = BrokerSurveyor(client, clock).inspect(config.reclaim_policy, config.broker.log_dirs).tables
    return heads_of(tables, config.node_id)


def heads_of(tables: BrokerTables, broker: BrokerId) -> Mapping[Place, Head]:
    return {
        (broker, tables.log_dir(row), partition): head
        for row, head in heads(tables.tables)
        if (partition := tables.tables.topic_partition(row)) is not None
    }

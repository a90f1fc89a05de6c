"""What the ceilings' trims of today free on all replicas: DeleteRecords moves the log start of every one.

A broker is simulated by itself, as its guard plans; so the sum of what the brokers delete is less than what their disks
get back. Of a partition the furthest trim counts, whoever asks for it: on each replica it frees what all of them free.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brimline.fleet.planner.broker_snapshot import BrokerSnapshot
from brimline.fleet.planner.gains import gains
from brimline.fleet.planner.tasks import BrokerRows, FailedBroker
from brimline.fleet.simulate.what_if import WhatIf

FREED_ROWS = pa.schema([pa.field("freed_bytes", pa.int64())])
"""A row for each broker; null where its snapshot could not be used."""

Trims: TypeAlias = Mapping[tuple[str, str, int], int]
"""The furthest new log start of today, by cluster, topic id and partition."""


def trims_of_today(rows: pa.Table) -> Trims:
    """From the simulated rows of all brokers. Without its id a topic is trimmed by nobody."""
    trimmed = rows.filter(pc.and_(pc.is_valid(rows.column("trimmed_to")), pc.is_valid(rows.column("topic_id"))))
    furthest = trimmed.group_by(["cluster_id", "topic_id", "partition"]).aggregate([("trimmed_to", "max")])
    return {
        (row["cluster_id"], row["topic_id"], row["partition"]): row["trimmed_to_max"] for row in furthest.to_pylist()
    }


def freed_rows(what_if: WhatIf, trims: Trims) -> BrokerRows:
    return BrokerRows(of_broker=partial(_freed, what_if, trims), of_failure=_nothing_known)


def freed_bytes(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(each or 0 for batch in batches for each in batch.column(0).to_pylist())


def _freed(what_if: WhatIf, trims: Trims, broker: BrokerSnapshot) -> pa.RecordBatch:
    cluster = broker.header.cluster_id
    asked = [
        (log, trims[cluster, topic_id, partition])
        for (topic_id, partition), log in broker.current_logs.items()
        if (cluster, topic_id, partition) in trims
    ]
    logs, targets = (np.array(column, dtype=np.int64) for column in (zip(*asked, strict=True) if asked else ((), ())))
    found = gains(what_if.applied(broker.tables), logs, targets)
    return pa.RecordBatch.from_pylist([{"freed_bytes": int(found.bytes.sum())}], schema=FREED_ROWS)


def _nothing_known(_failed: FailedBroker) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"freed_bytes": None}], schema=FREED_ROWS)

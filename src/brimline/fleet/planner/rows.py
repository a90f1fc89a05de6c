"""Brokers' plans as rows: what its guard would do with these facts, to the byte, because it is the same kernel.

A row per trim. A device without one has a single row whose columns of the trim are null, so that every device that was
looked at is in the table with its outcome. The ``device_`` columns are the same in all rows of a device: not to be
added up over rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot
from brimline.fleet.planner.lot import Lot, lot_of
from brimline.fleet.planner.tasks import BrokerRows, FailedBroker
from brimline.landing.header import Header
from brimline.model.reclaim import DeviceFacts
from brimline.model.reclaim_plan import DevicePlan, ReclaimPlan
from brimline.model.scan import Int64Column

AT = pa.timestamp("us", tz="UTC")
SNAPSHOT_UNUSABLE = "snapshot-unusable"
"""Beside the labels of ``DeviceOutcome``: no device of the broker could be planned for; ``failure`` says why."""

PLAN_ROWS = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("snapshot_id", pa.string(), nullable=False),
        pa.field("taken_at", AT, nullable=False),
        pa.field("failure", pa.string()),
        pa.field("device", pa.string()),
        pa.field("device_log_dirs", pa.list_(pa.string())),
        pa.field("device_outcome", pa.string(), nullable=False),
        pa.field("device_ceiling_percent", pa.int32()),
        pa.field("device_total_bytes", pa.int64()),
        pa.field("device_used_bytes", pa.int64()),
        pa.field("device_limit_bytes", pa.int64()),
        pa.field("device_going_bytes", pa.int64()),
        pa.field("device_excess_bytes", pa.int64()),
        pa.field("device_removable_bytes", pa.int64()),
        pa.field("device_taken_bytes", pa.int64()),
        pa.field("device_taken_segments", pa.int64()),
        pa.field("device_missing_bytes", pa.int64()),
        pa.field("device_local_retention_bytes", pa.int64()),
        pa.field("log_dir", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("from_offset", pa.int64()),
        pa.field("new_log_start_offset", pa.int64()),
        pa.field("taken_segments", pa.int64()),
        pa.field("taken_bytes", pa.int64()),
        pa.field("oldest_at", AT),
        pa.field("newest_at", AT),
    ]
)
_DEVICE, _LOG_DIR = (PLAN_ROWS.names.index(name) for name in ("device", "log_dir"))
"""Where the columns of a broker end, and those of a device."""


def plan_rows(brokers: Sequence[BrokerSnapshot]) -> pa.RecordBatch:
    """Broker by broker; ``ValueError`` if the tables of one contradict each other."""
    lot = lot_of(brokers)
    if not lot.tables.devices:
        return pa.RecordBatch.from_pylist([], schema=PLAN_ROWS)
    planned = plan(lot.tables, is_explained=False)
    log, device = _rows(lot, planned)
    columns = [
        *_broker_columns(lot.headers, lot.broker_of_device[device]),
        *_device_columns(lot, planned, device),
        *_trim_columns(lot, planned, log),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLAN_ROWS)


def _rows_of_broker(broker: BrokerSnapshot) -> pa.RecordBatch:
    return plan_rows([broker])


def failure_row(failed: FailedBroker) -> pa.RecordBatch:
    file = failed.file
    row = {
        "cluster_id": file.cluster_id,
        "broker_id": file.broker_id,
        "snapshot_id": file.snapshot_id,
        "taken_at": file.taken_at_ms * 1000,
        "failure": failed.why,
        "device_outcome": SNAPSHOT_UNUSABLE,
    }
    return pa.RecordBatch.from_pylist([row], schema=PLAN_ROWS)


PLAN = BrokerRows(of_broker=_rows_of_broker, of_brokers=plan_rows, of_failure=failure_row)


def _rows(lot: Lot, planned: ReclaimPlan) -> tuple[Int64Column, Int64Column]:
    """Of each row the log, -1 for none, and the device: device by device, its trims in the order of the logs."""
    trimmed = planned.trimmed_logs
    devices = len(lot.tables.devices)
    of_trim = lot.tables.logs.device[trimmed].astype(np.int64)
    idle = np.setdiff1d(np.arange(devices, dtype=np.int64), of_trim)
    log = np.concatenate((trimmed, np.full(len(idle), -1, dtype=np.int64)))
    device = np.concatenate((of_trim, idle))
    order = np.argsort(device, kind="stable")
    return log[order], device[order]


def _broker_columns(headers: Sequence[Header], broker: Int64Column) -> Iterator[pa.Array]:
    values = [(each.cluster_id, each.broker_id, each.snapshot_id, each.taken_at_ms * 1000, None) for each in headers]
    return _taken(values, PLAN_ROWS.names[:_DEVICE], broker)


def _device_columns(lot: Lot, planned: ReclaimPlan, device: Int64Column) -> Iterator[pa.Array]:
    each = zip(lot.tables.devices, lot.log_dirs_of_device, planned.devices, strict=True)
    values = [(facts.name, log_dirs, *_figures(facts, plan)) for facts, log_dirs, plan in each]
    return _taken(values, PLAN_ROWS.names[_DEVICE:_LOG_DIR], device)


def _taken(values: Sequence[tuple[Any, ...]], names: Sequence[str], row: Int64Column) -> Iterator[pa.Array]:
    """The columns of these names, from the values of each broker or device."""
    rows = pa.array(row)
    for column, name in zip(zip(*values, strict=True), names, strict=True):
        yield pa.array(column, PLAN_ROWS.field(name).type).take(rows)


def _figures(facts: DeviceFacts, plan: DevicePlan) -> tuple[str | int | None, ...]:
    return (
        plan.outcome.label,
        facts.policy.ceiling_percent,
        facts.total_bytes,
        plan.used_bytes,
        plan.limit_bytes,
        plan.going.total,
        plan.excess_bytes,
        plan.removable_bytes,
        plan.taken_bytes,
        plan.taken_segments,
        plan.missing_bytes,
        plan.local_retention_bytes,
    )


def _trim_columns(lot: Lot, planned: ReclaimPlan, log: Int64Column) -> list[pa.Array]:
    logs, outcomes, none = lot.tables.logs, planned.logs, log < 0

    def of_logs(column: npt.NDArray[np.generic]) -> pa.Array:
        return (
            pa.array(column[log], mask=none) if len(column) else pa.nulls(len(log), pa.from_numpy_dtype(column.dtype))
        )

    def named(names: Sequence[str | None], place: npt.NDArray[np.integer]) -> pa.Array:
        """By hand: there are many names, and few of them are asked for."""
        places = place[log].tolist() if len(place) else [0] * len(log)
        return pa.array(
            [None if is_none else names[row] for row, is_none in zip(places, none.tolist(), strict=True)], pa.string()
        )

    return [
        named(lot.log_dirs, lot.log_dir_of_log),
        named(lot.topic_names, logs.topic),
        named(lot.topic_ids, logs.topic),
        of_logs(logs.partition),
        of_logs(outcomes.from_offset),
        of_logs(outcomes.new_log_start_offset),
        of_logs(outcomes.taken_segments),
        of_logs(outcomes.taken_bytes),
        of_logs(outcomes.oldest_ms * 1000).view(AT),
        of_logs(outcomes.newest_ms * 1000).view(AT),
    ]

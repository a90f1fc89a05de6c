"""One broker's plan as rows: what its guard would do with these facts, to the byte, because it is the same kernel.

A row per trim. A device without one has a single row whose columns of the trim are null, so that every device that was
looked at is in the table with its outcome. The ``device_`` columns are the same in all rows of a device: not to be
added up over rows.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot
from brimline.fleet.planner.tasks import BrokerRows, FailedBroker
from brimline.model.reclaim import TopicTable
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


def plan_rows(broker: BrokerSnapshot) -> pa.RecordBatch:
    if not broker.tables.devices:
        return pa.RecordBatch.from_pylist([], schema=PLAN_ROWS)
    planned = plan(broker.tables, is_explained=False)
    log, device = _rows(broker, planned)
    header = broker.header
    at = pa.scalar(header.taken_at_ms * 1000, AT)
    same = (header.cluster_id, header.broker_id, header.snapshot_id, at, None)
    columns = [
        *(pa.repeat(pa.scalar(value, field.type), len(log)) for value, field in zip(same, PLAN_ROWS, strict=False)),
        *_device_columns(broker, planned, device),
        *_trim_columns(broker, planned, log),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLAN_ROWS)


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


PLAN = BrokerRows(of_broker=plan_rows, of_failure=failure_row)


def _rows(broker: BrokerSnapshot, planned: ReclaimPlan) -> tuple[Int64Column, Int64Column]:
    """Of each row the log, -1 for none, and the device: device by device, its trims in the order of the logs."""
    trimmed = planned.trimmed_logs
    devices = len(broker.tables.devices)
    of_trim = broker.tables.logs.device[trimmed].astype(np.int64)
    idle = np.setdiff1d(np.arange(devices, dtype=np.int64), of_trim)
    log = np.concatenate((trimmed, np.full(len(idle), -1, dtype=np.int64)))
    device = np.concatenate((of_trim, idle))
    order = np.argsort(device, kind="stable")
    return log[order], device[order]


def _device_columns(broker: BrokerSnapshot, planned: ReclaimPlan, device: Int64Column) -> list[pa.Array]:
    facts, plans = broker.tables.devices, planned.devices
    rows = device.tolist()

    def of_devices(values: Sequence[str | int | None] | Sequence[Sequence[str]], kind: pa.DataType) -> pa.Array:
        return pa.array([values[row] for row in rows], type=kind)

    figures = [(fact.total_bytes, *_figures(each)) for fact, each in zip(facts, plans, strict=True)]
    return [
        of_devices([each.name for each in facts], pa.string()),
        of_devices([broker.log_dirs_of(row) for row in range(len(facts))], pa.list_(pa.string())),
        of_devices([each.outcome.label for each in plans], pa.string()),
        of_devices([each.policy.ceiling_percent for each in facts], pa.int32()),
        *(of_devices(values, pa.int64()) for values in zip(*figures, strict=True)),
    ]


def _figures(plan: DevicePlan) -> tuple[int | None, ...]:
    return (
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


def _trim_columns(broker: BrokerSnapshot, planned: ReclaimPlan, log: Int64Column) -> list[pa.Array]:
    logs, outcomes, none = broker.tables.logs, planned.logs, log < 0

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
        named(broker.log_dirs, broker.log_dir_of_log),
        named(TopicTable.of(broker.tables.topics).names, logs.topic),
        named(broker.topic_ids, logs.topic),
        of_logs(logs.partition),
        of_logs(outcomes.from_offset),
        of_logs(outcomes.new_log_start_offset),
        of_logs(outcomes.taken_segments),
        of_logs(outcomes.taken_bytes),
        of_logs(outcomes.oldest_ms * 1000).view(AT),
        of_logs(outcomes.newest_ms * 1000).view(AT),
    ]

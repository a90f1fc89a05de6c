"""The ceiling's plan of one broker as the file that ``brimline reclaim --apply --plan`` takes.

It is the plan that its own guard would make of the same snapshot under that ceiling, the limit of a cycle included.
Whoever carries it out finds it held against the disks as they are then: what is not true any more is left out.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from brimline import __version__
from brimline.act.ledger.entries import PlannedTrim, SegmentRange
from brimline.act.plan_file import CeilingFrom, FiledDevice, FiledPlan, plan_document
from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot, read_broker_at
from brimline.fleet.planner.tasks import Files
from brimline.fleet.session.errors import FleetError
from brimline.fleet.simulate.what_if import WhatIf
from brimline.landing.seal import BadSnapshot
from brimline.model import BrokerId, Bytes, Offset, TopicPartition
from brimline.model.reclaim import CEILING_OFF, ReclaimTables
from brimline.model.reclaim_plan import ReclaimPlan, ReclaimReason

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def filed_plan(broker: BrokerSnapshot, ceiling_percent: int) -> FiledPlan | None:
    """``None`` when there is nothing to trim."""
    tables = WhatIf(ceiling_percent=ceiling_percent).applied(broker.tables)
    planned = plan(tables)
    devices = tuple(
        _device(broker, tables, planned, row)
        for row, device in enumerate(planned.devices)
        if device.taken_segments and ceiling_percent < CEILING_OFF
    )
    if not devices:
        return None
    return FiledPlan(
        made_at=_EPOCH + timedelta(milliseconds=broker.header.taken_at_ms),
        made_by=f"brimline {__version__} fleet simulate",
        cluster_id=broker.header.cluster_id,
        broker=BrokerId(broker.header.broker_id),
        policy=tables.devices[0].policy,
        ceiling_from=CeilingFrom.HAND,
        devices=devices,
    )


def _device(broker: BrokerSnapshot, tables: ReclaimTables, planned: ReclaimPlan, row: int) -> FiledDevice:
    facts, figures = tables.devices[row], planned.devices[row]
    logs = [log for log in planned.trimmed_logs.tolist() if tables.logs.device[log] == row and _has_id(broker, log)]
    oldest_first = sorted(logs, key=lambda log: int(planned.logs.oldest_ms[log]))
    return FiledDevice(
        device=facts.name,
        log_dirs=broker.log_dirs_of(row),
        total_bytes=Bytes(facts.total_bytes or 0),
        used_bytes=Bytes(figures.used_bytes or 0),
        going_bytes=figures.going.total,
        excess_bytes=Bytes(figures.excess_bytes or 0),
        trims=tuple(_trim(broker, tables, planned, log) for log in oldest_first),
    )


def _has_id(broker: BrokerSnapshot, log: int) -> bool:
    """Without its id a topic might be another one by the time that somebody trims it; no guard plans for it either."""
    return broker.topic_ids[int(broker.tables.logs.topic[log])] is not None


def _trim(broker: BrokerSnapshot, tables: ReclaimTables, planned: ReclaimPlan, log: int) -> PlannedTrim:
    outcomes, topic = planned.logs, int(tables.logs.topic[log])
    first, count = int(outcomes.first_taken[log]), int(outcomes.taken_segments[log])
    base_offset = tables.segments.base_offset
    topic_id = broker.topic_ids[topic]
    return PlannedTrim(
        partition=TopicPartition(tables.topics[topic].name, int(tables.logs.partition[log])),
        topic_id=None if topic_id is None else UUID(topic_id),
        log_dir=broker.log_dirs[int(broker.log_dir_of_log[log])],
        log_start=Offset(int(tables.logs.log_start_offset[log])),
        target=Offset(int(outcomes.new_log_start_offset[log])),
        segments=SegmentRange(
            first=Offset(int(base_offset[first])), last=Offset(int(base_offset[first + count - 1])), count=count
        ),
        allocated_bytes=Bytes(int(outcomes.taken_bytes[log])),
        oldest_ms=int(outcomes.oldest_ms[log]),
        newest_ms=int(outcomes.newest_ms[log]),
        reason=ReclaimReason.TAKEN.sentence,
    )


def write_plans(files: Files, ceiling_percent: int, folder: Path) -> Sequence[Path]:
    """A file for every broker that has something to delete. A snapshot that cannot be used has none: it was named."""
    written = []
    for file in files:
        try:
            found = filed_plan(read_broker_at(file.path), ceiling_percent)
        except (BadSnapshot, ValueError):
            continue
        if found is not None:
            path = folder / f"{quote(found.cluster_id, safe='')}-{found.broker}.json"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(plan_document(found), ensure_ascii=False, indent=1) + "\n")
            except OSError as error:
                raise FleetError(f"the plan cannot be written to {path}: {error.strerror}") from error
            written.append(path)
    return written

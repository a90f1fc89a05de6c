"""Real logs to trim: a plan made from the files of a real broker, carried out against the real cluster."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from brimline.act.ledger.entries import CycleId, Plan, PlannedTrim, SegmentRange
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import CycleRecord
from brimline.act.trims.cluster import TrimCluster
from brimline.act.trims.files import files_left
from brimline.act.trims.rules import TrimPace
from brimline.act.trims.trims import TrimExecutor
from brimline.model import Bytes, Offset, TopicPartition
from brimline.observe.client.config import ClientConfig
from brimline.observe.scan.scanner import LogDirScanner
from brimline.sandbox import Sandbox
from tests.waiting import PATIENCE_SECONDS

SMALL_SEGMENTS = {"segment.bytes": str(1 << 20), "retention.ms": "-1", "retention.bytes": "-1"}
PACE = TrimPace(
    space_patience=PATIENCE_SECONDS,
    between_batches=0.1,
    between_looks=0.2,
    check_again=0.5,
    retry=0.5,
    patience=PATIENCE_SECONDS,
)


def planned(
    sandbox: Sandbox, topic: str, segments: int, *, broker: int = 1, log_dir: Path | None = None
) -> PlannedTrim:
    """So many of the oldest segments of partition 0, as the files of this broker show them."""
    path = sandbox.outside(log_dir or sandbox.broker(broker).log_dirs[0])
    scan = LogDirScanner(path).scan(topic_ids=True)
    row = scan.folders.names.index(f"{topic}-0")
    begin, end = scan.folders.segments_begin[row], scan.folders.segments_begin[row + 1]
    bases = scan.segments.base_offset[begin:end].tolist()
    assert len(bases) > segments, f"{topic} has only the segments {bases}"
    return PlannedTrim(
        partition=TopicPartition(topic, 0),
        topic_id=scan.folders.topic_id(row),
        log_dir=str(path),
        log_start=Offset(bases[0]),
        target=Offset(bases[segments]),
        segments=SegmentRange(first=Offset(bases[0]), last=Offset(bases[segments - 1]), count=segments),
        allocated_bytes=Bytes(int(scan.segments.allocated_bytes[begin : begin + segments].sum())),
        oldest_ms=-1,
        newest_ms=-1,
        reason="the oldest of the device",
    )


def plan_of(cycle: CycleId, trims: Sequence[PlannedTrim]) -> Plan:
    return Plan(
        cycle=cycle,
        device="0:1",
        log_dirs=tuple(dict.fromkeys(trim.log_dir for trim in trims)),
        total_bytes=Bytes(0),
        used_bytes=Bytes(0),
        ceiling_percent=80,
        excess_bytes=Bytes(sum(trim.allocated_bytes for trim in trims)),
        going_bytes=Bytes(0),
        by="test",
        trims=tuple(trims),
    )


@contextmanager
def begun(state_dir: Path, config: ClientConfig, *trims: PlannedTrim) -> Iterator[TrimExecutor]:
    ledger, cluster = Ledger(state_dir, 1, lambda: datetime.now(UTC)), TrimCluster(config)
    try:
        ledger.refresh()
        plan = plan_of(ledger.new_cycle_id("0:1"), trims)
        ledger.append(plan)
        yield TrimExecutor(ledger, plan.cycle, cluster, files_left, time.monotonic, PACE)
    finally:
        cluster.close()
        ledger.close()


def to_its_end(trims: TrimExecutor) -> CycleRecord:
    """The pace bounds it."""
    while (wait := trims.step()) is not None:
        time.sleep(wait)
    return trims.cycle


def carried_out(state_dir: Path, config: ClientConfig, *trims: PlannedTrim) -> CycleRecord:
    with begun(state_dir, config, *trims) as executor:
        return to_its_end(executor)

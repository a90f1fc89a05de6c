"""``brimline ledger --output csv``: one row per trim, RFC 4180, the header always. Unknown is empty, never 0."""

import csv
from collections.abc import Iterator
from typing import TextIO

from brimline.act.ledger_lines import time_text
from brimline.act.ledger_state import CycleRecord
from brimline.act.ledger_story import Story
from brimline.act.ledger_writing import topic_id_text
from brimline.cli.ledger_json import moment_text

COLUMNS = (
    "cycle",
    "begun_at",
    "device",
    "by",
    "topic",
    "partition",
    "topic_id",
    "log_dir",
    "log_start",
    "target",
    "segments",
    "first_base_offset",
    "last_base_offset",
    "allocated_bytes",
    "oldest",
    "newest",
    "reason",
    "state",
    "requests",
    "requested_at",
    "low_watermark",
    "error",
    "freed_bytes",
    "why",
    "ended_at",
)


def write_ledger_csv(story: Story, out: TextIO) -> None:
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for cycle in story.cycles:
        writer.writerows(_rows(cycle))


def _rows(cycle: CycleRecord) -> Iterator[tuple[object, ...]]:
    plan = cycle.plan
    for trim in cycle.trims:
        planned = trim.planned
        yield (
            plan.cycle,
            time_text(cycle.begun_at),
            plan.device,
            plan.by,
            planned.partition.topic,
            planned.partition.partition,
            topic_id_text(planned.topic_id),
            planned.log_dir,
            planned.log_start,
            planned.target,
            planned.segments.count,
            planned.segments.first,
            planned.segments.last,
            planned.allocated_bytes,
            moment_text(planned.oldest_ms),
            moment_text(planned.newest_ms),
            planned.reason,
            trim.phase.value,
            trim.requests,
            None if trim.requested_at is None else time_text(trim.requested_at),
            trim.low_watermark,
            trim.error,
            trim.freed_bytes,
            trim.why,
            None if trim.ended_at is None else time_text(trim.ended_at),
        )

"""``brimline reclaim --output csv``: one row per trim, RFC 4180, the header always. Unknown is empty, never 0."""

import csv
from collections import Counter
from typing import TextIO

from brimline.act.ledger_writing import topic_id_text
from brimline.cli.ledger_json import moment_text
from brimline.guard.reclaim_preview import Preview
from brimline.guard.reclaim_trims import doomed_range

COLUMNS = (
    "broker",
    "device",
    "log_dir",
    "topic",
    "partition",
    "topic_id",
    "log_start",
    "target",
    "segments",
    "first_base_offset",
    "last_base_offset",
    "allocated_bytes",
    "records_at_most",
    "oldest",
    "newest",
    "groups",
    "reason",
)


def write_reclaim_csv(shown: Preview, out: TextIO) -> None:
    groups = Counter(loss.partition for group in shown.radius.groups for loss in group.partitions)
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for device in shown.devices:
        for trim in device.trims:
            writer.writerow(
                (
                    shown.filed.broker,
                    device.device,
                    trim.log_dir,
                    trim.partition.topic,
                    trim.partition.partition,
                    topic_id_text(trim.topic_id),
                    trim.log_start,
                    trim.target,
                    trim.segments.count,
                    trim.segments.first,
                    trim.segments.last,
                    trim.allocated_bytes,
                    doomed_range(trim).records,
                    moment_text(trim.oldest_ms),
                    moment_text(trim.newest_ms),
                    groups[trim.partition],
                    trim.reason,
                )
            )

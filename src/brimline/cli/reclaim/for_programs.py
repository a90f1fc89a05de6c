"""``brimline reclaim`` for programs: CSV and JSON.

``brimline reclaim --output csv``: one row per trim, RFC 4180, the header always. Unknown is empty, never 0.

``brimline reclaim --output json``: the plan as a file, and under ``about`` all that the table shows.

The plan is described in ``act.plan_file``. ``about`` counts for nothing when it is carried out::

    {"devices": [
       {"device": "8:1", "logDirs": ["…"], "outcome": "enough-taken",
        "usedPercent": 91.2, "usedPercentAfterGoing": 90.1, "usedPercentAfter": 79.9,
        "plannedBytes": 1, "plannedSegments": 1, "removableBytes": 1, "localRetentionBytes": 0,
        "going": {"logStart": 0, "retentionBytes": 0, "retentionMs": 0, "deletedFiles": 0, "deleteFolders": 0},
        "ageHours": [{"hours": 5, "segments": 1, "bytes": 1}],      what goes, by full hours of age, oldest first
        "segments": [{"reason": "active", "sentence": "…", "segments": 1, "bytes": 1}],   all, and why
        "floor": null | {"bytes": 1, "percent": 40.1, "isImpossible": false,
                         "parts": [{"what": "active segments", "bytes": 1, "cure": "…",
                                    "topics": [{"topic", "bytes"}]}]}}],
     "topics": [{"topic": "…", "partitions": 1, "segments": 1, "bytes": 1, "recordsAtMost": 1,
                 "oldest": "…", "newest": "…", "hoursLost": 1.5, "groups": 1}],
     "groups": [{"group": "…", "activity": "active|empty|unknown", "recordsAtMost": 1,
                 "partitions": [{"topic", "partition", "committed", "newLogStart", "recordsAtMost", "wasBelow"}]}],
     "groupsAsked": 1,
     "unknownGroups": [{"what": "…", "count": null, "kind": "not-authorized", "message": "…"}],
     "leftOut": [{"topic", "partition", "target", "downTo": null, "why": "…"}],      of a plan that was made before
     "differs": [{"key": "…", "plan": "0", "properties": "80", "counts": "plan"}],   likewise: other limits than here
     "brakes": ["…"]}                          sentences about those of the guards of other replicas, where they count

What is unknown is ``null``. Keys are added, never changed or removed, while ``version`` stays.
"""

import csv
import json
from collections import Counter
from typing import TextIO

from brimline.act.ledger.writing import topic_id_text
from brimline.act.plan_file import plan_document
from brimline.cli.ledger.for_programs import RANGE_COLUMNS, moment_text
from brimline.decide.reclaim.floor import Floor
from brimline.guard.reclaim.preview import DevicePreview, Preview
from brimline.guard.reclaim.recheck import LeftOut
from brimline.guard.reclaim.trims import doomed_range
from brimline.model.blast_radius import GroupLoss, TopicLoss, UnknownGroups
from brimline.model.reclaim import AN_HOUR_MS

COLUMNS = (
    "broker",
    "device",
    "log_dir",
    "topic",
    "partition",
    "topic_id",
    *RANGE_COLUMNS,
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


def write_reclaim_json(shown: Preview, out: TextIO) -> None:
    json.dump(plan_document(shown.filed, about_document(shown)), out, ensure_ascii=False, indent=1)
    out.write("\n")


def about_document(shown: Preview) -> dict[str, object]:
    return {
        "devices": [_device(device) for device in shown.devices],
        "topics": [_topic(topic) for topic in shown.radius.topics],
        "groups": [_group(group) for group in shown.radius.groups],
        "groupsAsked": shown.radius.asked_groups,
        "unknownGroups": [_unknown(unknown) for unknown in shown.radius.unknown],
        "leftOut": [_left_out(left_out) for left_out in shown.left_out],
        "brakes": list(shown.brakes),
        "differs": [
            {"key": each.key, "plan": each.in_plan, "properties": each.in_file, "counts": each.counts}
            for each in shown.differs
        ],
    }


def _device(device: DevicePreview) -> dict[str, object]:
    planned = device.planned
    return {
        "device": device.device,
        "logDirs": list(device.log_dirs),
        "outcome": planned.outcome.label,
        "usedPercent": _percent(device.facts.used_bytes, device),
        "usedPercentAfterGoing": _percent(device.used_after_going, device),
        "usedPercentAfter": _percent(device.used_after, device),
        "plannedBytes": device.trimmed_bytes,
        "plannedSegments": device.trimmed_segments,
        "removableBytes": planned.removable_bytes,
        "localRetentionBytes": planned.local_retention_bytes,
        "going": {
            "logStart": planned.going.log_start,
            "retentionBytes": planned.going.retention_bytes,
            "retentionMs": planned.going.retention_ms,
            "deletedFiles": planned.going.deleted_files,
            "deleteFolders": planned.going.delete_folders,
        },
        "ageHours": [
            {"hours": span.from_ms // AN_HOUR_MS, "segments": span.segments, "bytes": span.bytes}
            for span in device.ages.spans(AN_HOUR_MS)
        ],
        "segments": [
            {
                "reason": each.reason.label,
                "sentence": each.reason.sentence,
                "segments": each.segments,
                "bytes": each.bytes,
            }
            for each in device.sums
        ],
        "floor": None if device.floor is None else _floor(device.floor),
    }


def _percent(used: int | None, device: DevicePreview) -> float | None:
    total = device.facts.total_bytes
    return None if used is None or not total else round(used * 100 / total, 3)


def _floor(floor: Floor) -> dict[str, object]:
    return {
        "bytes": floor.bytes,
        "percent": round(floor.percent, 3),
        "isImpossible": floor.is_impossible,
        "parts": [
            {
                "what": part.kind.value,
                "bytes": part.bytes,
                "cure": part.kind.cure,
                "topics": [{"topic": share.topic, "bytes": share.bytes} for share in part.topics],
            }
            for part in floor.parts
        ],
    }


def _topic(topic: TopicLoss) -> dict[str, object]:
    return {
        "topic": topic.topic,
        "partitions": topic.partitions,
        "segments": topic.segments,
        "bytes": topic.bytes,
        "recordsAtMost": topic.records,
        "oldest": moment_text(topic.oldest_ms),
        "newest": moment_text(topic.newest_ms),
        "hoursLost": None if topic.lost_ms is None else round(topic.lost_ms / AN_HOUR_MS, 3),
        "groups": topic.groups,
    }


def _group(group: GroupLoss) -> dict[str, object]:
    return {
        "group": group.group,
        "activity": group.activity.value,
        "recordsAtMost": group.records,
        "partitions": [
            {
                "topic": loss.partition.topic,
                "partition": loss.partition.partition,
                "committed": loss.committed,
                "newLogStart": loss.new_log_start,
                "recordsAtMost": loss.records,
                "wasBelow": loss.was_below,
            }
            for loss in group.partitions
        ],
    }


def _unknown(unknown: UnknownGroups) -> dict[str, object]:
    return {
        "what": unknown.what,
        "count": unknown.count,
        "kind": unknown.failure.kind.value,
        "message": unknown.failure.message,
    }


def _left_out(left_out: LeftOut) -> dict[str, object]:
    return {
        "topic": left_out.trim.partition.topic,
        "partition": left_out.trim.partition.partition,
        "target": left_out.trim.target,
        "downTo": left_out.down_to,
        "why": left_out.why,
    }

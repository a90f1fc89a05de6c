"""``brimline topics`` for programs.

``--output csv``: one row per topic and log dir, RFC 4180, the header always; what is of the whole topic is repeated.

``--output json``::

    {"format": "brimline.topics", "version": 1, "observedAt": "2026-01-31T12:00:00.000Z",
     "failures": [{"broker": 2, "message": "…"}],       brokers that did not answer: their replicas are missing
     "offline": [{"broker": 1, "logDir": "…"}],         log dirs that are offline: theirs are missing, too
     "unknownGroups": [{"groups": "…", "message": "…"}],     others may read a topic too
     "topics": [
       {"topic": "…", "isInternal": false, "partitions": 1, "replicas": 1, "bytes": 1, "oneCopyBytes": 1,
        "writtenLastHourBytes": 1, "cleanupPolicy": "delete", "retentionMs": 1, "retentionMsSetBy": "topic" | "broker",
        "retentionBytes": -1, "retentionBytesSetBy": "broker", "oldestRecord": "2026-01-30T12:00:00.000Z",
        "isTiered": false, "remoteBytes": null, "onlyLocalBytes": null,
        "groups": [{"group": "…", "activity": "active", "recordsBehind": 1}],
        "stays": "within-limits", "why": "…", "goingBytes": null,
        "disks": [{"broker": 1, "logDir": "…", "bytes": 1, "replicas": 1}]}]}

What is unknown is ``null`` (empty in CSV), never 0. ``goingBytes`` is known with ``--config`` only. Keys are added,
never changed or removed, while ``version`` stays.
"""

import csv
import json
from datetime import UTC, datetime
from typing import TextIO

from brimline.cli.topics.report import TopicsReport
from brimline.model.times import time_text
from brimline.model.topic_use import TopicSummary

COLUMNS = (
    *("topic", "broker", "log_dir", "bytes", "replicas", "topic_bytes", "one_copy_bytes", "written_last_hour_bytes"),
    *("cleanup_policy", "retention_ms", "retention_ms_set_by", "retention_bytes", "retention_bytes_set_by"),
    *("oldest_record", "remote_bytes", "only_local_bytes", "groups", "furthest_behind", "records_behind"),
    *("stays", "why", "going_bytes"),
)


def write_csv(report: TopicsReport, out: TextIO) -> None:
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for topic in report.topics:
        facts = _facts(topic)
        last = topic.groups[0] if topic.groups else None
        of_topic = (
            *(topic.bytes, topic.one_copy_bytes, topic.written_bytes, facts["cleanupPolicy"], facts["retentionMs"]),
            *(facts["retentionMsSetBy"], facts["retentionBytes"], facts["retentionBytesSetBy"], facts["oldestRecord"]),
            *(topic.remote_bytes, topic.only_local_bytes, len(topic.groups)),
            *((None, None) if last is None else (last.group, last.records)),
            *(topic.stays.label, topic.why, topic.going_bytes),
        )
        for place in topic.places:
            writer.writerow((topic.name, place.broker, place.log_dir, place.bytes, place.replicas, *of_topic))


def write_json(report: TopicsReport, out: TextIO) -> None:
    failures = [{"broker": each.broker, "message": str(each.failure)} for each in report.failed]
    unknown = [{"groups": each.what, "message": each.failure.message} for each in report.groups.unknown]
    document = {
        "format": "brimline.topics",
        "version": 1,
        "observedAt": time_text(report.observed_at),
        "failures": failures,
        "offline": [{"broker": broker, "logDir": path} for broker, path in report.offline],
        "unknownGroups": unknown,
        "topics": [_facts(topic) for topic in report.topics],
    }
    out.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def _facts(topic: TopicSummary) -> dict[str, object]:
    use, rules = topic.use, topic.use.rules
    policies = [] if rules is None else ["compact"] * rules.compacts + ["delete"] * rules.deletes
    return {
        "topic": topic.name,
        "isInternal": None if rules is None else rules.is_internal,
        "partitions": len(use.partitions),
        "replicas": topic.replicas,
        "bytes": topic.bytes,
        "oneCopyBytes": topic.one_copy_bytes,
        "writtenLastHourBytes": topic.written_bytes,
        "cleanupPolicy": None if rules is None else ",".join(policies),
        "retentionMs": None if rules is None else rules.retention_ms,
        "retentionMsSetBy": _set_by(topic, "retention.ms"),
        "retentionBytes": None if rules is None else rules.retention_bytes,
        "retentionBytesSetBy": _set_by(topic, "retention.bytes"),
        "oldestRecord": _time(topic.oldest_ms),
        "isTiered": None if rules is None else rules.is_tiered,
        "remoteBytes": topic.remote_bytes,
        "onlyLocalBytes": topic.only_local_bytes,
        "groups": [
            {"group": each.group, "activity": each.activity.value, "recordsBehind": each.records}
            for each in topic.groups
        ],
        "stays": topic.stays.label,
        "why": topic.why,
        "goingBytes": topic.going_bytes,
        "disks": [
            {"broker": place.broker, "logDir": place.log_dir, "bytes": place.bytes, "replicas": place.replicas}
            for place in topic.places
        ],
    }


def _set_by(topic: TopicSummary, key: str) -> str | None:
    if topic.use.rules is None:
        return None
    return "topic" if key in topic.use.own else "broker"


def _time(moment_ms: int | None) -> str | None:
    """``null`` for what no calendar has: a producer may write any number."""
    try:
        return None if moment_ms is None else time_text(datetime.fromtimestamp(moment_ms / 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return None

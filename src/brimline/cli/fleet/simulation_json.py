"""``brimline fleet simulate --output json``: everything that was found, one document, for programs.

::

    {"format": "brimline.simulation", "version": 1,
     "whatIf": {"ceilingPercent": 80 | null, "maxUsedPercent": 90 | null, "days": 7,      null: as each broker has it
                "retention": [{"pattern": "…", "retentionBytes": 1 | null, "retentionMs": 1 | null}]},
     "brokers": 3, "newestSnapshot": "2026-01-31T12:00:00.000Z" | null,
     "freedTodayBytes": 1,                                  by the ceilings' trims of today, on all replicas
     "topics": [{"cluster": "…", "topic": "…", "topicId": "…", "partitions": 1, "replicas": 3,
                 "bytes": 1, "bytesADay": 1,                                  of all replicas
                 "byRetentionBytes": 1, "byCeilingBytes": 1, "byCeilingTodayBytes": 1, "refusedBytes": 1,
                 "ceilingOnDay": 0 | null, "refusedOnDay": 3 | null,          days from today, which is 0; null: never
                 "oldest": "…" | null, "oldestAtEnd": "…" | null}],           about when the oldest record was made
     "devices": [{"cluster": "…", "broker": 1, "device": "8:1", "logDirs": "/data/a, /data/b",
                  "totalBytes": 1, "usedBytes": 1, "usedBytesAtEnd": 1,
                  "byRetentionBytes": 1, "byCeilingBytes": 1, "refusedBytes": 1,
                  "ceilingPercent": 80, "fenceBytes": 1 | null,
                  "fullOnDay": null, "ceilingMissedOnDay": null}],
     "unusable": [{"cluster": "…", "broker": 2, "why": "…"}]}

Keys are added, never changed or removed, while ``version`` stays.
"""

import json
from typing import TextIO

from brimline.cli.ledger.for_programs import moment_text
from brimline.fleet.simulate.simulate import SimulatedDevice, Simulation, TopicOutcome


def write_simulation_json(found: Simulation, out: TextIO) -> None:
    what_if = found.what_if
    document = {
        "format": "brimline.simulation",
        "version": 1,
        "whatIf": {
            "ceilingPercent": what_if.ceiling_percent,
            "maxUsedPercent": what_if.max_used_percent,
            "days": what_if.days,
            "retention": [
                {
                    "pattern": rule.pattern.pattern,
                    "retentionBytes": rule.retention_bytes,
                    "retentionMs": rule.retention_ms,
                }
                for rule in what_if.retention
            ],
        },
        "brokers": found.brokers,
        "newestSnapshot": _moment(found.now_ms),
        "freedTodayBytes": found.freed_today_bytes,
        "topics": [_topic(topic) for topic in found.topics],
        "devices": [_device(device) for device in found.devices],
        "unusable": [
            {"cluster": each.cluster_id, "broker": each.broker_id, "why": each.why} for each in found.unusable
        ],
    }
    json.dump(document, out, ensure_ascii=False, indent=1)
    out.write("\n")


def _topic(topic: TopicOutcome) -> dict[str, object]:
    return {
        "cluster": topic.cluster_id,
        "topic": topic.topic,
        "topicId": topic.topic_id,
        "partitions": topic.partitions,
        "replicas": topic.replicas,
        "bytes": topic.bytes,
        "bytesADay": topic.bytes_a_day,
        "byRetentionBytes": topic.by_retention_bytes,
        "byCeilingBytes": topic.by_ceiling_bytes,
        "byCeilingTodayBytes": topic.by_ceiling_today_bytes,
        "refusedBytes": topic.refused_bytes,
        "ceilingOnDay": topic.ceiling_on_day,
        "refusedOnDay": topic.refused_on_day,
        "oldest": _moment(topic.oldest_ms),
        "oldestAtEnd": _moment(topic.oldest_ms_at_end),
    }


def _device(device: SimulatedDevice) -> dict[str, object]:
    return {
        "cluster": device.cluster_id,
        "broker": device.broker_id,
        "device": device.device,
        "logDirs": device.log_dirs,
        "totalBytes": device.total_bytes,
        "usedBytes": device.used_bytes,
        "usedBytesAtEnd": device.used_bytes_at_end,
        "byRetentionBytes": device.by_retention_bytes,
        "byCeilingBytes": device.by_ceiling_bytes,
        "refusedBytes": device.refused_bytes,
        "ceilingPercent": device.ceiling_percent,
        "fenceBytes": device.fence_bytes,
        "fullOnDay": device.full_on_day,
        "ceilingMissedOnDay": device.ceiling_missed_on_day,
    }


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else moment_text(milliseconds)

"""``/v1/state``: what the guard knows now, as one JSON document.

::

    {"format": "brimline.guard-state", "version": 1, "observedAt": "2026-01-31T12:00:00.000Z",
     "guard": {"version": "…", "startedAt": "…", "enforcement": "observe", "config": "…/server.properties",
               "deadTasks": []},
     "broker": {"id": 1, "connected": true, "publishesPercentages": false, "failure": null},
     "limits": {"maxUsedPercent": 99, "minFreeBytes": 1073741824, "releaseMarginPercent": 0,
                "retentionDiskUsagePercent": 100, "checkIntervalMs": 60000},
     "volumes": [
       {"device": "8:1", "mountPoint": "/data", "logDirs": ["/data/a"], "state": "ok" | "full" | "unknown",
        "breaches": ["disk.max.used.percent"], "totalBytes": 1, "usableBytes": 1, "reservedBytes": 0,
        "usedPercent": 12.345, "bytesToLimit": 1, "fillRateBytesPerSecond": 0.5, "secondsToLimit": null,
        "nextLookSeconds": 60.0, "observedAt": "…", "failure": null | {"kind": "stalled", "message": "…"},
        "wouldDo": ["would refuse Produce …"]}],
     "moves": null | {
       "paused": true, "since": "…", "valueBefore": null | "20000000", "does": "holds up the move of …",
       "logDirs": [{"logDir": "/data/a", "partitions": ["orders-0"]}], "failure": null | {…}, "whatToDo": "…"},
     "followers": null | {
       "action": "skip" | "fence", "why": "skip, because …", "possible": true, "inForce": null | "skip" | "fence",
       "patienceSeconds": 180.0, "failure": null | {…},
       "peers": {"fresh": 2, "stale": 0, "silent": 0, "no-volumes": 0},
       "unanswered": [{"broker": 3, "state": "stale", "ageSeconds": 12.5, "failure": null | {…}}],
       "full": [{"broker": 3, "logDirs": ["/data/a"], "partitions": 12, "heldBack": true, "failure": null | {…},
                 "does": "broker 3 has no room: …", "whatToDo": "…"}]},
     "cordon": {"wanted": true, "supported": null | true, "logDirs": ["/data/a"], "byOperator": [], "keptOpen": [],
                "failure": null | {…}},
     "ballast": null | {
       "wantedBytes": 1073741824, "volumes": [
         {"device": "8:1", "path": "/data/a/.brimline-ballast", "bytes": 1073741824, "inPlace": true, "releases": 0,
          "unrecorded": 0, "failure": null | "…", "does": "1.00 GiB to be given back …"}]},
     "reclaim": null | {
       "ceilingPercent": 80, "mode": "apply" | "plan", "intervalMs": 60000,
       "paused": null | {"by": "root", "reason": "…", "since": "…"},
       "devices": [
         {"device": "8:1", "logDirs": ["/data/a"], "state": "trimming", "troubled": false, "problem": null | "…",
          "does": "deletes the oldest segments …", "decidedAt": null | "…", "ageSeconds": 1.5,
          "plan": null | {"outcome": "enough-taken", "usedBytes": 1, "limitBytes": 1, "goingBytes": 0, "excessBytes": 1,
                          "takenBytes": 1, "takenSegments": 1, "missingBytes": 0, "removableBytes": 1,
                          "localRetentionBytes": 0},
          "floor": null | {"bytes": 1, "percent": 12.345, "impossible": false, "sentence": "…", "parts": [
                           {"kind": "active segments", "bytes": 1, "percent": 1.0, "whatHelps": "…",
                            "topics": [{"topic": "…", "bytes": 1}]}]},
          "cycles": [{"cycle": "8:1-17", "by": "…", "begunAt": "…", "endedAt": null, "excessBytes": 1,
                      "plannedBytes": 1, "plannedSegments": 1, "freedBytes": 0, "freedSegments": 0,
                      "trims": {"unsent": 1, "waiting": 0, "done": 0, "abandoned": 0, "withdrawn": 0},
                      "givenUpBecause": []}],
          "lastCycle": null | {… the same …},
          "sinceStart": {"cycles": 1, "plannedBytes": 1, "plannedSegments": 1, "trimsDone": 1, "trimsAbandoned": 0,
                         "trimsWithdrawn": 0, "freedBytes": 1, "freedSegments": 1}}]},
     "gateway": null | {
       "up": true, "failure": null | {"kind": "unreachable", "message": "…"},
       "state": null | {
         "version": "…", "pid": 1, "startedAt": "…", "enforcement": "gateway", "rejectError": 56, "draining": false,
         "listeners": [{"name": "CLIENT", "address": "…:9092", "upstream": "…:19092", "protocol": "PLAINTEXT",
                        "connections": 1}],
         "connections": 1,
         "fences": [{"logDir": "/data/a", "topic": null, "cause": "full" | "guard" | "manual", "reason": "…",
                     "since": "…", "by": null, "partitions": 12, "whatToDo": "…"}],
         "refused": {"batches": 1, "bytes": 1}, "wouldHaveRefused": {"batches": 0, "bytes": 0},
         "lately": {"seconds": 60.0, "batches": 1, "bytes": 1,
                    "most": [{"topic": "…", "partition": 0, "client": "…", "batches": 1, "bytes": 1}]}}},
     "retention": {
       "plain":  null | {"ageSeconds": 1.5, "partitions": 12, "over100": 1,
                         "highest": [{"topic": "…", "partition": 0, "percent": 104}], "unknown": {"topic": "why"}},
       "tiered": null | {… the same for the totals …, "unknown": {"topic-0": "why"}}},
     "landing": null | {
       "uri": "/snapshots", "last": "snapshots/…/1/….parquet", "lastBytes": 1, "lastSeconds": 0.5, "ageSeconds": 1.5,
       "sent": 1, "failed": 0, "dropped": 0, "spool": {"snapshots": 0, "bytes": 0}, "failure": null | "why"}}

What is unknown is ``null``. ``highest`` has the ten fullest; all of them are in ``/metrics``. ``gateway`` is ``null``
where there is none and none is wanted; ``lately`` is what it refused in the last minute, or what it would have refused.
``moves`` are those between log dirs that go into a full one. ``followers`` is ``null`` where there is no other broker;
``unanswered`` has those whose disks are not freshly known, ``full`` those with a full disk. ``landing`` is ``null``
where no snapshots are wanted.
Keys are added, never changed or removed, while ``version`` stays.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from brimline import __version__
from brimline.disks.task import DiskReport
from brimline.documents.parts import failure_document
from brimline.guard.disks.published import volumes_document
from brimline.guard.percent.task import PercentReport
from brimline.model.times import time_text
from brimline.settings import keys
from brimline.settings.config import GuardConfig

FORMAT, VERSION = "brimline.guard-state", 1


def head_document(
    config: GuardConfig,
    disks: DiskReport,
    percents: PercentReport,
    *,
    now: datetime,
    started_at: datetime,
    mount_points: Mapping[str, str],
    dead_tasks: Sequence[str] = (),
) -> Mapping[str, object]:
    """What is there before any feature."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "observedAt": time_text(now),
        "guard": {
            "version": __version__,
            "startedAt": time_text(started_at),
            "enforcement": config.text(keys.ENFORCEMENT),
            "config": config.path,
            "deadTasks": list(dead_tasks),
        },
        "broker": {
            "id": config.node_id,
            "connected": percents.publishes_percentages is not None and percents.failure is None,
            "publishesPercentages": percents.publishes_percentages,
            "failure": failure_document(percents.failure),
        },
        "limits": {
            "maxUsedPercent": disks.limits.max_used_percent,
            "minFreeBytes": disks.limits.min_free_bytes,
            "releaseMarginPercent": disks.limits.release_margin_percent,
            "retentionDiskUsagePercent": config.number(keys.RETENTION_PERCENT),
            "checkIntervalMs": config.number(keys.CHECK_INTERVAL),
        },
        "volumes": volumes_document(disks, mount_points, enforced=config.is_enforcing),
    }


def state_document(parts: Iterable[Mapping[str, object]]) -> bytes:
    document = {name: member for part in parts for name, member in part.items()}
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from brimline import __version__
from brimline.disks.sentences import would_do
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.ballast.feature import ballast_document
from brimline.guard.ballast.task import BallastStatus
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.published import cordon_document, follower_document
from brimline.guard.followers.report import OrderReport, PeerReport
from brimline.guard.gateway_link.published import failure_document, gateway_document, time_text
from brimline.guard.gateway_link.task import GatewayReport
from brimline.guard.landing.feature import landing_document
from brimline.guard.landing.task import LandingReport
from brimline.guard.moves.task import MoveReport
from brimline.guard.moves.words import move_document
from brimline.guard.percent.percentages import Column
from brimline.guard.percent.task import PercentReport
from brimline.guard.reclaim.published import reclaim_document
from brimline.guard.reclaim.report import ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.model import Bytes, used_percent
from brimline.settings import keys
from brimline.settings.config import GuardConfig

FORMAT, VERSION = "brimline.guard-state", 1
_HIGHEST = 10

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """Everything that the document tells, gathered at one moment."""

    now: datetime
    seconds: float
    started_at: datetime
    config: GuardConfig
    disks: DiskReport
    percents: PercentReport
    mount_points: Mapping[str, str]
    gateway: GatewayReport
    moves: MoveReport
    peers: PeerReport
    orders: OrderReport
    cordon: CordonReport
    ballasts: Sequence[BallastStatus] = ()
    reclaims: Sequence[ReclaimReport] = ()
    landing: LandingReport | None = None
    dead_tasks: Sequence[str] = ()


def state_document(state: GuardState) -> bytes:
    config = state.config
    document = {
        "format": FORMAT,
        "version": VERSION,
        "observedAt": time_text(state.now),
        "guard": {
            "version": __version__,
            "startedAt": time_text(state.started_at),
            "enforcement": config.text(keys.ENFORCEMENT),
            "config": config.path,
            "deadTasks": list(state.dead_tasks),
        },
        "broker": {
            "id": config.node_id,
            "connected": state.percents.publishes_percentages is not None and state.percents.failure is None,
            "publishesPercentages": state.percents.publishes_percentages,
            "failure": failure_document(state.percents.failure),
        },
        "limits": {
            "maxUsedPercent": state.disks.limits.max_used_percent,
            "minFreeBytes": state.disks.limits.min_free_bytes,
            "releaseMarginPercent": state.disks.limits.release_margin_percent,
            "retentionDiskUsagePercent": config.number(keys.RETENTION_PERCENT),
            "checkIntervalMs": config.number(keys.CHECK_INTERVAL),
        },
        "volumes": [_volume(volume, state) for volume in state.disks.volumes],
        "moves": _moves(state),
        "followers": follower_document(state.peers, state.orders, state.seconds),
        "cordon": cordon_document(state.cordon),
        "ballast": ballast_document(state.ballasts, Bytes(config.number(keys.BALLAST_BYTES))),
        "reclaim": reclaim_document(state.reclaims, ReclaimSettings.of(config), state.seconds),
        "gateway": gateway_document(state.gateway, config.path),
        "retention": _retention(state),
        "landing": landing_document(state.landing, config.text(keys.LANDING_URI), state.seconds),
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")


def _volume(volume: VolumeStatus, state: GuardState) -> Json:
    reading = volume.reading
    known = reading.total_bytes is not None and reading.usable_bytes is not None
    return {
        "device": reading.device,
        "mountPoint": state.mount_points.get(reading.device),
        "logDirs": list(volume.log_dirs),
        "state": volume.state.value,
        "breaches": [breach.value for breach in volume.breaches],
        "totalBytes": reading.total_bytes,
        "usableBytes": reading.usable_bytes,
        "reservedBytes": reading.reserved_bytes,
        "usedPercent": round(used_percent(reading.total_bytes or 0, reading.usable_bytes or 0), 3) if known else None,
        "bytesToLimit": volume.bytes_to_limit,
        "fillRateBytesPerSecond": None if volume.fill_rate is None else round(volume.fill_rate, 1),
        "secondsToLimit": None if volume.seconds_left is None else round(volume.seconds_left, 1),
        "nextLookSeconds": round(volume.next_look, 3),
        "observedAt": time_text(reading.observed_at),
        "failure": failure_document(reading.failure),
        "wouldDo": would_do(volume, enforced=state.gateway.is_wanted),
    }


def _moves(state: GuardState) -> Json | None:
    config = state.config
    broker = config.node_id
    return move_document(state.moves, broker, config.admin_access.servers, enforced=config.is_enforcing)


def _retention(state: GuardState) -> Json:
    plain, tiered = state.percents.plain, state.percents.tiered
    return {
        "plain": None
        if plain is None
        else {
            **_column(plain.current, state.seconds - plain.seconds),
            "unknown": {topic: failure.message for topic, failure in plain.unknown.items()},
        },
        "tiered": None
        if tiered is None
        else {
            **_column(tiered.total, state.seconds - tiered.seconds),
            "unknown": {str(partition): reason.sentence for partition, reason in tiered.unknown.items()},
        },
    }


def _column(column: Column, age: float) -> Json:
    fullest = np.argsort(-column.values, kind="stable")[:_HIGHEST].tolist()
    return {
        "ageSeconds": round(age, 3),
        "partitions": len(column),
        "over100": int((column.values > 100).sum()),
        "highest": [
            {"topic": column.rows[row][0], "partition": int(column.rows[row][1]), "percent": int(column.values[row])}
            for row in fullest
        ],
    }

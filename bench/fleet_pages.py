"""The pages of ``brimline web`` over a warehouse of 2,000 brokers, as a browser asks for them.

``python -m bench.fleet_pages PLACE`` measures a warehouse that is there. Else one is made up: 4,000 volumes with two
weeks of readings, 2 million replicas, and segments of the brokers whose pages are asked for.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from bench.fleet_landing import UNTIL_MS, files_in
from bench.ratio import AgainstGoal
from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.synth.spec import FleetSpec
from brimline.fleet.synth.synth import synthesise

BROKERS, CLUSTERS, LOG_DIRS, REPLICAS, READINGS = 2_000, 10, 2, 1_000, 112
GOAL_SECONDS = 1.0
ROUNDS = 5
_GIB = 1 << 30
_CLUSTER_NAMES = pa.array([f"cluster-{each:02}" for each in range(CLUSTERS)])
_DEVICES = pa.array([f"/dev/nvme{each}n1" for each in range(LOG_DIRS)])
_NOW = datetime.fromtimestamp(UNTIL_MS / 1000, UTC)


def figures(place: str | None = None) -> Iterator[AgainstGoal]:
    with tempfile.TemporaryDirectory(prefix="brimline-bench-") as name:
        warehouse = place or str(made(Path(name)))
        with serving(warehouse) as url:
            first = seconds_of(f"{url}/")
            yield AgainstGoal(what="the fleet, the first time", unit="s", ours=first, goal=GOAL_SECONDS)
            again = statistics.median(seconds_of(f"{url}/") for _ in range(ROUNDS))
            yield AgainstGoal(what=f"again, median of {ROUNDS}", unit="s", ours=again, goal=GOAL_SECONDS)
            yield AgainstGoal(what="the first time, in times of that", unit="times", ours=first / again)
            for what, path in _pages(url):
                worst = max(seconds_of(f"{url}{path}") for _ in range(ROUNDS))
                yield AgainstGoal(what=f"{what}, worst of {ROUNDS}", unit="s", ours=worst, goal=GOAL_SECONDS)


def _pages(url: str) -> Iterator[tuple[str, str]]:
    """The disks are the most urgent one that a plan can be made for, and the ones behind it."""
    fleet = read(f"{url}/")
    href = next(path for path in _disks(fleet) if "UNKNOWN</span>" not in read(f"{url}/{path}"))
    cluster, disk = re.findall(r"cluster=([^&]+)", href)[0], f"/{href}"
    topic = re.findall(r'<td class="path">([^<]+)</td>', read(f"{url}{disk}").partition("Topics on this disk")[2])[0]
    yield "the last of its pages", "/?page=9999"
    yield "of one cluster", f"/?cluster={cluster}"
    yield "of one broker", "/?broker=7"
    yield "of one topic", f"/?{urlencode({'topic': topic})}"
    yield "full within a week", "/?days=7"
    yield "a disk", disk
    yield "a disk's slider", f"{disk}&ceiling=50&part=plan"
    yield "what if, while it is simulated", "/what-if?ceiling=60&days=7"
    yield "the fleet, meanwhile", "/"


def _disks(page: str) -> list[str]:
    return [each.replace("&amp;", "&") for each in re.findall(r'href="(disk[^"]+)"', page)]


@contextmanager
def serving(warehouse: str) -> Iterator[str]:
    command = [sys.executable, "-m", "brimline.cli", "web", "--warehouse", warehouse, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0].rstrip("/")
        finally:
            process.terminate()


def seconds_of(url: str) -> float:
    begin = time.perf_counter()
    read(url)
    return time.perf_counter() - begin


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=600) as answer:
        text: str = answer.read().decode()
    return text


# A warehouse ---------------------------------------------------------------------------------------------------------


def made(folder: Path) -> Path:
    spec = FleetSpec(until_ms=UNTIL_MS, seed=7, clusters=1, brokers=8, replicas=REPLICAS, days=0, ceiling_percent=60)
    synthesise(spec, str(folder / "landing"), lambda _: None)
    volumes = [(broker, log_dir) for broker in range(BROKERS) for log_dir in range(LOG_DIRS)]
    write = {"volume_pressure": _pressure(volumes), "forecast": _forecast(volumes), "newest": _newest(files_in(folder))}
    for table, rows in write.items():
        write_deltalake(folder / table, pa.Table.from_pylist(rows))
    write_deltalake(folder / "volumes", _readings(), partition_by=["taken_on"])
    write_deltalake(folder / "retention_pressure", _replicas())
    return folder


def _where(broker: int, log_dir: int) -> dict[str, Any]:
    cluster, device = _CLUSTER_NAMES[broker % CLUSTERS].as_py(), _DEVICES[log_dir].as_py()
    return {"cluster_id": cluster, "broker_id": broker, "device": device}


def _log_dir(number: int) -> str:
    return f"/var/lib/kafka/data-{number}"


def _used(broker: int, log_dir: int) -> float:
    used = 30.0 + (broker * 37 + log_dir * 11) % 65 + broker % 9 / 10
    return used + 2 if used > 94 and broker < BROKERS // 8 else used


def _is_full(broker: int, log_dir: int) -> bool:
    return _used(broker, log_dir) > 95


def _pressure(volumes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    return [
        {
            **_where(*volume),
            "log_dir": _log_dir(volume[1]),
            "state": "full" if _is_full(*volume) else "ok",
            "used_percent": _used(*volume),
            "total_bytes": 1000 * _GIB,
            "usable_bytes": round((100 - _used(*volume)) * 10 * _GIB),
            "breaches": "disk.max.used.percent" if _is_full(*volume) else None,
            "failure": None if sum(volume) else "gone",
            "max_used_percent": 95,
            "min_free_bytes": _GIB,
            "ceiling_percent": 85,
            "taken_at": _NOW,
            "is_stale": False,
        }
        for volume in volumes
    ]


def _forecast(volumes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    days = {volume: max(95 - _used(*volume), 0.1) * 2 for volume in volumes}
    return [
        {
            **_where(*volume),
            "outlook": "filling",
            "days_to_full": days[volume],
            "soonest_days": days[volume] * 0.7,
            "latest_days": days[volume] * 1.6,
            "growth_bytes_per_day": 5.0 * _GIB,
        }
        for volume in volumes
    ]


def _newest(files: list[SnapshotFile]) -> list[dict[str, Any]]:
    """Every broker has the segments of one of a few."""
    found = []
    for broker in range(BROKERS):
        file = files[broker % len(files)]
        snapshot = {"taken_at": _NOW, "snapshot_id": f"{broker}-{file.snapshot_id}"}
        segments = {**snapshot, "path": file.path, "rows": file.segments}
        named = {f"segments_{name}": value for name, value in segments.items()}
        whose = {name: value for name, value in _where(broker, 0).items() if name != "device"}
        found.append({**whose, **snapshot, "source": "synth", **named})
    return found


def _readings() -> pa.Table:
    """Newest first, of each volume."""
    number = np.arange(BROKERS * LOG_DIRS * READINGS)
    volume, reading = number // READINGS, number % READINGS
    moments = [_NOW - timedelta(hours=3 * each) for each in range(READINGS)]
    days = pa.array([moment.date() for moment in moments])
    return pa.table(
        {
            "cluster_id": _CLUSTER_NAMES.take(pa.array(volume // LOG_DIRS % CLUSTERS)),
            "broker_id": pa.array((volume // LOG_DIRS).astype(np.int32)),
            "device": _DEVICES.take(pa.array(volume % LOG_DIRS)),
            "taken_at": pa.array(moments).take(pa.array(reading)),
            "taken_on": days.take(pa.array(reading)),
            "total_bytes": pa.repeat(1000 * _GIB, len(number)),
            "usable_bytes": pa.array(300 * _GIB + reading * _GIB),
        }
    )


def _replicas() -> pa.Table:
    number = np.arange(BROKERS * REPLICAS)
    broker, replica = number // REPLICAS, number % REPLICAS
    topics = pa.array([f"team-{each % 40:02}.events-{each:04}" for each in range(750)])
    log_dirs = pa.array([_log_dir(each) for each in range(LOG_DIRS)])
    return pa.table(
        {
            "cluster_id": _CLUSTER_NAMES.take(pa.array(broker % CLUSTERS)),
            "broker_id": pa.array(broker.astype(np.int32)),
            "topic": topics.take(pa.array((replica * 7 + broker) % 750)),
            "log_dir": log_dirs.take(pa.array(replica % LOG_DIRS)),
            "size_bytes": pa.array((number * 7919) % (40 * _GIB)),
        }
    )


if __name__ == "__main__":
    for figure in figures(*sys.argv[1:]):
        print(figure.row(), flush=True)

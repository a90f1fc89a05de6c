"""Every query of the dashboard and every alert, asked of a real Prometheus that scrapes a real guard.

What is empty is empty for a reason: in ``EMPTY``, as the panel's own description has it, and in ``NOT_TOLD``.
"""

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import CALM, TIERED, brimline_inside, create_topic
from tests.integration.gatewayed import gateway, state_dir
from tests.integration.guarded import ENDS_WITH_US, RunningGuard, guard
from tests.integration.kafka_clients import meanwhile
from tests.integration.raw_produce import raw_producer
from tests.integration.reclaim_world import MIB, QUICK_BROKER, RECLAIM, TRIMMABLE, Writer
from tests.metrics.test_operators_files import ALERTS, DASHBOARD
from tests.waiting import PATIENCE_SECONDS, eventually

PROMETHEUS = shutil.which("prometheus")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (Debian: package prometheus)"),
]

GUARDED, ALONE = "guarded", "alone"
"""Two instances: one with all that it needs, and one that came when its broker was gone."""
CEILING = 40
EMPTY: Mapping[tuple[str, str], str] = {}
NOT_TOLD: Mapping[str, str] = {}
UNKNOWN_WITHOUT_BROKER: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Prometheus:
    url: str

    def api(self, path: str, **arguments: str) -> Any:
        query = urllib.parse.urlencode(arguments)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=PATIENCE_SECONDS) as answer:
            return json.loads(answer.read())["data"]

    def ask(self, expression: str) -> list[Any]:
        """The rows of its answer at this moment."""
        found: list[Any] = self.api("query", query=expression)["result"]
        return found


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, RunningGuard]) -> Iterator[Prometheus]:
    """With the shipped alerts, and every target with a label that says its cluster."""
    static = [
        {"targets": [f"127.0.0.1:{running.port}"], "labels": {"instance": name, "cluster": "west"}}
        for name, running in targets.items()
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS.absolute())],
        "scrape_configs": [{"job_name": "brimline", "static_configs": static}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    log = folder / "prometheus.log"
    options = ["--web.listen-address=127.0.0.1:0", f"--storage.tsdb.path={folder / 'data'}"]
    command = [*ENDS_WITH_US, str(PROMETHEUS), f"--config.file={folder / 'prometheus.yml'}", *options]
    with log.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: process.poll() is not None or re.search(r"Listening on.*address=\S+:\d\d", log.read_text()))
        assert process.poll() is None, log.read_text()
        (port,) = re.findall(r"Listening on.*address=\S+:(\d+)", log.read_text())
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def watching(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A broker behind its gateway; a topic that outgrows the ceiling all the time, a tiered one, and a fenced one."""
    folder = tmp_path_factory.mktemp("prometheus")
    volume = VolumeSpec(size=Bytes(128 * MIB))
    properties = {**CALM, **QUICK_BROKER, "remote.log.manager.task.interval.ms": "1000"}
    spec = SandboxSpec(version=request.param, fronted=True, tiered=True, volumes=(volume,), properties=properties)
    with Sandbox(spec) as sandbox:
        create_topic(sandbox, "busy", config=TRIMMABLE)
        create_topic(sandbox, "limited", config={**TRIMMABLE, "retention.bytes": str(2 * MIB)})
        create_topic(sandbox, "tiered", config={**TIERED, "retention.bytes": str(100 * MIB)})
        create_topic(sandbox, "fenced")
        keys = {
            **RECLAIM,
            "disk.max.used.percent": "95",
            "log.retention.disk.usage.percent": str(CEILING),
            "brimline.enforcement": "gateway",
            "brimline.ballast.bytes": str(MIB),
            "brimline.state.dir": str(state_dir(sandbox)),
        }
        without_broker = {
            **keys,
            "brimline.admin.bootstrap.servers": "127.0.0.1:1",
            "brimline.state.dir": str(state_dir(sandbox)) + "-alone",
        }
        with (
            gateway(sandbox, folder / "gateway", keys),
            guard(sandbox, folder / ALONE, {**without_broker, "brimline.ballast.bytes": "0"}) as alone,
            guard(sandbox, folder / GUARDED, keys) as guarded,
            prometheus(folder, {GUARDED: guarded, ALONE: alone}) as watching,
            meanwhile(lambda ended: keep_busy(sandbox, ended)),
        ):
            refuse_once(sandbox)
            eventually(lambda: watching.ask(f'brimline_reclaim_freed_bytes_total{{instance="{GUARDED}"}} > 0'))
            eventually(lambda: watching.ask("brimline_topic_growth_bytes_per_hour > 0"))
            eventually(lambda: watching.ask("kafka_log_remote_remotelogmanager_localretentionsizeinpercent > 0"))
            eventually(lambda: watching.ask(f'brimline_broker_connected{{instance="{ALONE}"}} == 0'))
            yield watching


def keep_busy(sandbox: Sandbox, ended: Event) -> None:
    writer = Writer(sandbox.bootstrap_servers)
    writer.write("limited", 4)
    writer.write("tiered", 4)
    while not ended.wait(0.1):
        writer.write("busy", 1)


def refuse_once(sandbox: Sandbox) -> None:
    config = str(sandbox.broker(1).node.server_properties.with_name("gateway.properties"))
    done = brimline_inside(sandbox, "fence", "--config", config, "--topic", "fenced", "--reason", "test")
    assert done.returncode == 0, done.stderr
    with raw_producer(sandbox.bootstrap_servers) as raw:
        eventually(lambda: raw.produce([("fenced", 0)])["fenced", 0].code)


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def of_instance(expression: str, instance: str) -> str:
    return expression.replace("$cluster", "west").replace("$instance", instance).replace("$topic", ".*")


def shown(watching: Prometheus, instance: str) -> dict[tuple[str, str], list[Any]]:
    """Panel and legend → what stands there."""
    return {
        (panel["title"], target["legendFormat"]): watching.ask(of_instance(target["expr"], instance))
        for panel in panels()
        for target in panel["targets"]
    }


def test_x(watching: Prometheus) -> None:
    import time
    time.sleep(6)
    a = shown(watching, GUARDED)
    b = shown(watching, ALONE)
    for k in a:
        print(k, [(r["metric"], r["value"][1]) for r in a[k]][:3], "| ALONE", [r["value"][1] for r in b[k]][:3])
    for g in watching.api("rules")["groups"]:
        for r in g["rules"]:
            print(r["name"], r["health"], r["state"], [ (x["labels"].get("instance"), x["state"]) for x in r["alerts"]])
    text = ALERTS.read_text()
    exprs = re.findall(r"expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", text)
    sels = {s for e in exprs for s in re.findall(r"(?:brimline|kafka_log)_[a-z_]+(?:\{[^}]*\})?", e)} | set(re.findall(r"\{__name__[^}]*\}", text))
    for s in sorted(sels):
        print(s, len(watching.ask(f'{s}')), [ (r["metric"].get("instance")) for r in watching.ask(s)][:4])
    assert 0

"""The guard's beans have the very names of a stock broker's: one exporter, the same rules, the same series."""

import subprocess
from pathlib import Path

import pytest

from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx_settings import JmxSettings
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import TIERED, create_topic, produce
from tests.metrics.bridges import serving
from tests.metrics.jmx_exporter import GENERAL_RULES, RULES, Series, scrape
from tests.metrics.waiting import eventually, free_port

pytestmark = pytest.mark.integration

SPEC = SandboxSpec(
    version="4.3.1",
    tiered=True,
    volumes=(VolumeSpec(), VolumeSpec()),
    properties={
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "1000",
        "remote.log.manager.task.interval.ms": "1000",
    },
)
PERCENTAGES = {
    catalogue.LOG_RETENTION_SIZE.prometheus: catalogue.LOG_RETENTION_SIZE,
    catalogue.REMOTE_RETENTION_SIZE.prometheus: catalogue.REMOTE_RETENTION_SIZE,
    catalogue.LOCAL_RETENTION_SIZE.prometheus: catalogue.LOCAL_RETENTION_SIZE,
}
DISK_FULL = catalogue.LOG_DIRECTORY_DISK_FULL.prometheus
OFFLINE = "kafka_log_logmanager_logdirectoryoffline"


def percentages(series: Series) -> Series:
    return {key: value for key, value in series.items() if key[0] in PERCENTAGES}


def test_what_a_stock_broker_publishes_the_guard_publishes_under_the_same_names(tmp_path: Path) -> None:
    with Sandbox(SPEC) as sandbox:
        create_topic(sandbox, "my.topic_a-b", config={"retention.bytes": "4000000"})
        create_topic(sandbox, "tiered", config={**TIERED, "retention.bytes": "6000000"})
        produce(sandbox, "my.topic_a-b", 2)
        produce(sandbox, "tiered", 3)
        stock_port = start_jmx(sandbox.brokers[0].pid)
        rules = f"{RULES.read_text()}{GENERAL_RULES}"
        eventually(lambda: sum(v > 0 for v in percentages(scrape(stock_port, tmp_path, rules=rules)).values()) == 3)
        stock = scrape(stock_port, tmp_path, rules=rules)
        raw_stock = scrape(stock_port, tmp_path, rules=f"rules:\n{GENERAL_RULES}")
        log_dirs = tuple((str(log_dir),) for log_dir in sandbox.brokers[0].log_dirs)

    board = MetricBoard()
    for name, metric in PERCENTAGES.items():
        found = [(dict(labels), int(value)) for (n, labels), value in stock.items() if n == name]
        rows = tuple((labels["topic"], labels["partition"]) for labels, _ in found)
        board.put(metric.family(rows, [value for _, value in found]))
    board.put(catalogue.LOG_DIRECTORY_DISK_FULL.family(log_dirs, (0, 0)))
    settings = JmxSettings(port=free_port())
    with serving(board, settings):
        guards = scrape(settings.port, tmp_path, rules=rules)
        raw_guards = scrape(settings.port, tmp_path, rules=f"rules:\n{GENERAL_RULES}")

    assert percentages(guards) == percentages(stock)
    assert {labels for name, labels in raw_guards if name == DISK_FULL} == {
        labels for name, labels in raw_stock if name == OFFLINE
    }


def _jcmd(pid: int, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["jcmd", str(pid), *command], check=False, capture_output=True, text=True)


def start_jmx(pid: int) -> int:
    """The broker's own JMX, switched on while it runs.

    A busy JVM may not let a tool attach at the first try, may start the agent and answer too late, or may find the port
    taken meanwhile; so what was begun is ended before it is tried again, on another port.
    """
    said = ""
    for _ in range(5):
        port = free_port()
        settings = [f"jmxremote.port={port}", "jmxremote.authenticate=false", "jmxremote.ssl=false"]
        done = _jcmd(pid, "ManagementAgent.start", *settings)
        if done.returncode == 0:
            return port
        said = done.stdout + done.stderr
        _jcmd(pid, "ManagementAgent.stop")
    raise AssertionError(f"no JMX: {said}")

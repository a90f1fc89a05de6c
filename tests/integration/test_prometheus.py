"""Every query of the dashboard and every alert, asked of a real Prometheus that scrapes a real guard.

What is empty is empty for a reason: in ``EMPTY``, as the panel's own description has it, and in ``NOT_TOLD``.
"""

import json
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
NO_BROKER = "until the broker has answered once"
NO_ANSWER = "while the broker does not answer"
NO_GATEWAY = "Empty while no gateway answers"
ENFORCES = "let through by gateways that observe"
EMPTY: Mapping[str, Mapping[tuple[str, str], str]] = {
    GUARDED: {
        ("Errors", "{{kind}}"): "nothing failed",
        ("Errors", "no broker"): "every broker answers",
        ("Errors", "no JMX"): "JMX works or is off",
        ("Refused batches by topic", "{{topic}} (only counted)"): ENFORCES,
        ("Refused bytes by client", "{{client}} (only counted)"): ENFORCES,
        ("Held back for full followers", "{{instance}} for {{follower}}: {{action}}"): "nothing is held back",
    },
    ALONE: {
        ("Partitions at their limit", "partitions"): NO_BROKER,
        ("Largest topics", "{{topic}}"): "until the broker has answered once",
        ("Growth of topics", "{{topic}}"): "until a guard has looked twice",
        ("Reserve", "{{instance}} {{log_dir}} {{part}}"): NO_BROKER,
        ("Nearest to retention.bytes", ""): NO_BROKER,
        ("Nearest to local.retention.bytes", ""): NO_BROKER,
        ("Age of the figures", "{{instance}} percentages"): "the broker has not answered yet",
        ("Errors", "no JMX"): "JMX works or is off",
        ("Fences in force", "fences"): NO_GATEWAY,
        ("Connections", "connections"): NO_GATEWAY,
        ("Added latency, p99", "p99"): NO_GATEWAY,
        ("Refused batches by topic", "{{topic}}"): "nothing was refused since the gateway started",
        ("Refused batches by topic", "{{topic}} (only counted)"): ENFORCES,
        ("Refused bytes by client", "{{client}}"): "nothing was refused since the gateway started",
        ("Refused bytes by client", "{{client}} (only counted)"): ENFORCES,
        ("Fenced partitions", "{{instance}} {{log_dir}}{{topic}} ({{cause}})"): "no fence",
        ("Traffic through the gateways", "{{instance}} {{direction}}"): NO_GATEWAY,
        ("Added latency", "{{instance}} p50"): NO_GATEWAY,
        ("Added latency", "{{instance}} p99"): NO_GATEWAY,
        ("Connections by listener", "{{instance}} {{listener}}"): NO_GATEWAY,
        ("Connections by listener", "{{instance}} accepted a second"): NO_GATEWAY,
        ("Requests and closed connections", "{{instance}} requests"): NO_GATEWAY,
        ("Requests and closed connections", "{{instance}} Produce"): NO_GATEWAY,
        ("Requests and closed connections", "closed: {{reason}}"): NO_GATEWAY,
        ("Used, ceiling and floor", "{{instance}} {{log_dir}} floor"): "the broker has not answered",
        ("Above the ceiling", "{{instance}} {{log_dir}} to be deleted"): "Empty until the first plan",
        ("Above the ceiling", "{{instance}} {{log_dir}} being deleted"): "Empty until the first plan",
        ("Above the ceiling", "{{instance}} {{log_dir}} not removable"): "Empty until the first plan",
        ("Full followers", "full"): NO_ANSWER,
        ("Not held back", "growing"): NO_ANSWER,
        ("Brokers that are not seen", "unseen"): "while the own broker does not answer",
        ("Cordoned log dirs", "cordoned"): NO_ANSWER,
        ("Held back for full followers", "{{instance}} for {{follower}}: {{action}}"): "nothing is held back",
    },
}
"""Panel and legend → why nothing stands there, in the words of the panel's description.

Of a guard whose broker never answered that is whatever only the broker knows: it is not shown as 0.
"""
BY_CHANCE = {("Time to the limit", "{{instance}} {{log_dir}}"): "No line: not filling"}
"""Empty at one moment and not at the next."""
NOT_TOLD: Mapping[str, str] = {
    "brimline_follower_partitions_held_back": "no follower is full",
    "brimline_follower_partitions_without_room": "no follower is full",
    "brimline_follower_replicas_shed": "no follower is full",
    "brimline_interception_failed": "interception is off",
    "brimline_jmx_bridge_up": "JMX is off",
    "brimline_notices": "the log cleaner can be held",
}
"""Metrics that an alert asks for and that are not there, and why. All others must be: else it could never fire."""
IN_FORCE = {
    GUARDED: {"KafkaFencedByHand", "KafkaDataDeletedByCeiling", "KafkaPartitionAtRetentionLimit"},
    ALONE: {"BrimlineBrokerUnreachable", "BrimlineGatewayDown"},
}
"""Alerts that wait for their time to fire: what they tell was made here."""


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
    properties = {
        **CALM,
        **QUICK_BROKER,
        "remote.log.manager.task.interval.ms": "1000",
        # Kafka's own gigabyte would be a reserve of half of this volume, which the busy topic passes now and then
        "remote.log.index.file.cache.total.size.bytes": str(MIB),
    }
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
            "brimline.reclaim.protected.topics": "limited",
            "brimline.enforcement": "gateway",
            "brimline.ballast.bytes": str(MIB),
            "brimline.state.dir": str(state_dir(sandbox)),
        }
        without_broker = {
            **keys,
            "brimline.admin.bootstrap.servers": "127.0.0.1:1",
            "brimline.state.dir": f"{state_dir(sandbox)}-alone",
            "brimline.reclaim.mode": "plan",
            "brimline.ballast.bytes": "0",
        }
        with (
            gateway(sandbox, folder / "gateway", keys),
            guard(sandbox, folder / ALONE, without_broker) as alone,
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


def empty_panels(watching: Prometheus, instance: str) -> set[tuple[str, str]]:
    return {place for place, rows in shown(watching, instance).items() if not rows} - BY_CHANCE.keys()


@pytest.mark.parametrize("instance", [GUARDED, ALONE])
def test_what_is_empty_on_the_dashboard_is_what_its_description_says(watching: Prometheus, instance: str) -> None:
    eventually(lambda: empty_panels(watching, instance) == set(EMPTY[instance]), pause=1)

    described = {panel["title"]: panel["description"] for panel in panels()}
    reasons = {**EMPTY[instance], **BY_CHANCE}
    assert [place for place, reason in reasons.items() if reason not in described[place[0]]] == []


def test_the_dashboards_choices_are_filled(watching: Prometheus) -> None:
    choices = {each["name"]: each["query"]["query"] for each in variables() if each["type"] == "query"}
    found = {name: values(watching, query) for name, query in choices.items()}

    assert found["cluster"] == {"west"}
    assert found["instance"] == {GUARDED, ALONE}
    assert found["topic"] >= {"busy", "limited", "tiered"}


def variables() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["templating"]["list"]
    return found


def values(watching: Prometheus, query: str) -> set[str]:
    """What Grafana makes of ``label_values(series, label)``."""
    asked = re.fullmatch(r"label_values\((.*), (\w+)\)", of_instance(query, ".*"))
    assert asked, query
    return set(watching.api(f"label/{asked[2]}/values", **{"match[]": asked[1]}))


def test_figures_are_the_guards_own(watching: Prometheus) -> None:
    """One of each kind that was made here, none of them by chance."""
    now = shown(watching, GUARDED)

    assert float(now["Partitions at their limit", "partitions"][0]["value"][1]) >= 1
    assert float(now["Fences in force", "fences"][0]["value"][1]) == 1
    assert float(now["Deleted by the ceiling, 24 h", "deleted"][0]["value"][1]) > MIB
    nearest = {row["metric"]["topic"]: float(row["value"][1]) for row in now["Nearest to retention.bytes", ""]}
    assert nearest["limited"] >= 100
    local = {row["metric"]["topic"] for row in now["Nearest to local.retention.bytes", ""]}
    assert local == {"tiered"}


def test_prometheus_takes_every_alert_and_what_they_ask_for_is_there(watching: Prometheus) -> None:
    rules = [rule for group in watching.api("rules")["groups"] for rule in group["rules"]]
    absent = {
        selector
        for rule in rules
        for selector in re.findall(r"(?:brimline|kafka_log)_[a-z_]+(?:{[^}]*})?|{__name__[^}]*}", rule["query"])
        if not selector.startswith("brimline_gateway_fence{cause!=") and not watching.ask(selector)
    }

    assert {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError") or rule["health"] != "ok"} == {}
    assert {rule["name"] for rule in rules} == set(re.findall(r"- alert: (\w+)", ALERTS.read_text()))
    assert {selector.partition("{")[0] for selector in absent} == set(NOT_TOLD)


@pytest.mark.parametrize("instance", [GUARDED, ALONE])
def test_the_alerts_tell_what_was_made(watching: Prometheus, instance: str) -> None:
    eventually(lambda: IN_FORCE[instance] <= alerts_of(watching, instance), pause=1)


def alerts_of(watching: Prometheus, instance: str) -> set[str]:
    alerts = watching.api("alerts")["alerts"]
    return {each["labels"]["alertname"] for each in alerts if each["labels"]["instance"] == instance}


@pytest.mark.parametrize("alert", ["KafkaDiskFullWithinTheHour", "KafkaDiskFullWithinTwelveHours"])
def test_a_disk_that_is_filling_is_no_alarm_while_a_ceiling_holds_it(watching: Prometheus, alert: str) -> None:
    (rule,) = [rule for group in watching.api("rules")["groups"] for rule in group["rules"] if rule["name"] == alert]
    filling = f'brimline_volume_to_limit_seconds{{instance="{GUARDED}"}} > 0 < 3600'

    eventually(lambda: watching.ask(f"({filling}) unless on (instance, log_dir, device) ({rule['query']})"))

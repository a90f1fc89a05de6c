"""The real jmx_exporter, a JMX client that nobody here wrote, reading beans over the network.

Its jar comes the way the sandbox's jars come: exact coordinates, checked against a hash, kept in the per-user cache.
"""

import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from brimline.sandbox.jars import ivy
from brimline.sandbox.jars.cache import cache_dir, install
from brimline.sandbox.jars.lock import Coordinates, LockedJar
from brimline.sandbox.java import QUICK_START, find_java
from tests.processes import free_port
from tests.waiting import PATIENCE_SECONDS, eventually

VERSION = "0.20.0"
"""The last one whose stand-alone server is in the public registry."""
JAR = LockedJar(
    VERSION,
    Coordinates("io.prometheus.jmx", "jmx_prometheus_httpserver", VERSION),
    "19eb6ba6d5bc899cc5726d86651683e0fecb718da3190da133c48ece08d89aab",
)
RULES = Path("deploy/jmx_exporter/brimline-rules.yml")

# Gauges with two tags, one and none, to the same effect as in the exporter's example for Kafka.
GENERAL_RULES = r"""
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+), (.+)=(.+), (.+)=(.+)><>Value'
    name: kafka_$1_$2_$3
    type: GAUGE
    labels: {"$4": "$5", "$6": "$7"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+), (.+)=(.+)><>Value'
    name: kafka_$1_$2_$3
    type: GAUGE
    labels: {"$4": "$5"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+)><>Value'
    name: kafka_$1_$2_$3
    type: GAUGE
"""

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@contextmanager
def exporter(
    jmx_port: int,
    directory: Path,
    *,
    rules: str,
    options: Mapping[str, object] | None = None,
    system_properties: Sequence[str] = (),
) -> Iterator[Callable[[], Series]]:
    """A scrape of the JMX server at every call; ``jmx_scrape_error`` says if it failed."""
    (jar,) = install([JAR], cache_dir() / "jmx_exporter" / VERSION, ivy.retrieve)
    port = free_port()
    config = directory / f"jmx_exporter-{port}.yml"
    settings = {"hostPort": f"127.0.0.1:{jmx_port}", "lowercaseOutputName": "true", **(options or {})}
    config.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()) + rules)
    command = [str(find_java()), *QUICK_START, *system_properties, "-jar", str(jar), f"127.0.0.1:{port}", str(config)]
    said = config.with_suffix(".log")
    with said.open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: _answers(port) or _ended(running, said))
        yield lambda: parse(_fetch(port))
    finally:
        running.kill()
        running.wait()


def scrape(
    jmx_port: int,
    directory: Path,
    *,
    rules: str,
    options: Mapping[str, object] | None = None,
    system_properties: Sequence[str] = (),
) -> Series:
    """Once."""
    with exporter(jmx_port, directory, rules=rules, options=options, system_properties=system_properties) as read:
        return read()


def start_jmx(pid: int) -> int:
    """A broker's own JMX, switched on while it runs; its port.

    A busy JVM may not let a tool attach at the first try, may start the agent and answer too late, or may find the port
    taken meanwhile; so what was begun is ended before it is tried again, on another port.
    """
    ports: list[int] = []

    def is_started() -> bool:
        ports.append(free_port())
        settings = [f"jmxremote.port={ports[-1]}", "jmxremote.authenticate=false", "jmxremote.ssl=false"]
        if _jcmd(pid, "ManagementAgent.start", *settings) == 0:
            return True
        _jcmd(pid, "ManagementAgent.stop")
        return False

    eventually(is_started)
    return ports[-1]


def _jcmd(pid: int, *command: str) -> int:
    return subprocess.run(["jcmd", str(pid), *command], check=False, capture_output=True).returncode


def parse(text: str) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ended(running: "subprocess.Popen[bytes]", said: Path) -> bool:
    assert running.poll() is None, said.read_text()
    return False


def _fetch(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SECONDS) as answer:
        return str(answer.read().decode())

"""The real jmx_exporter, a JMX client that nobody here wrote, reading beans over the network.

Its jar comes the way the sandbox's jars come: exact coordinates, checked against a hash, kept in the per-user cache.
"""

import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from brimline.sandbox import ivy
from brimline.sandbox.caches import cache_dir
from brimline.sandbox.jar_cache import install
from brimline.sandbox.java import QUICK_START, find_java
from brimline.sandbox.lock import Coordinates, LockedJar
from tests.metrics.waiting import PATIENCE_SECONDS, free_port

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


def scrape(
    jmx_port: int,
    directory: Path,
    *,
    rules: str,
    options: Mapping[str, object] | None = None,
    system_properties: Sequence[str] = (),
) -> Series:
    """Everything that one scrape of the JMX server gives; ``jmx_scrape_error`` says if it failed."""
    (jar,) = install([JAR], cache_dir() / "jmx_exporter" / VERSION, ivy.retrieve)
    config = directory / "jmx_exporter.yml"
    settings = {"hostPort": f"127.0.0.1:{jmx_port}", "lowercaseOutputName": "true", **(options or {})}
    config.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()) + rules)
    port = free_port()
    command = [str(find_java()), *QUICK_START, *system_properties, "-jar", str(jar), f"127.0.0.1:{port}", str(config)]
    exporter = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return parse(_fetch(f"http://127.0.0.1:{port}/metrics"))
    finally:
        exporter.kill()
        exporter.wait()


def parse(text: str) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _fetch(url: str) -> str:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        with suppress(OSError), urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return str(answer.read().decode())
        time.sleep(0.05)
    raise TimeoutError(f"{url} did not answer")

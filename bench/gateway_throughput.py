"""Throughput of Kafka's own perf tools by each way, and what the proxies on it cost in CPU time.

Client, proxy and broker share this machine's cores, so throughput is noisy: the ways take turns, another one first in
every round. The CPU seconds per GB are the steadier figure.
"""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bench.gateway_paths import DIRECT, HAPROXY, Site, Way
from bench.gateway_rows import ThreeWays, medians

RECORD_BYTES = 1024
PARTITIONS = 4
PRODUCER = ("batch.size=65536", "linger.ms=5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Records of one run of a tool. The first ``warm_up`` of the producer's do not count for its speed."""

    rounds: int
    produced: int
    warm_up: int
    fetched: int
    tls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One run of a tool by one way."""

    megabytes_per_second: float
    cpu_seconds_per_gigabyte: float | None


Round = Mapping[str, Passed]
"""By the name of the way."""


def rows(site: Site, load: Load) -> Iterator[ThreeWays]:
    tools = PerfTools(site, load)
    produced: list[Round] = []
    fetched: list[Round] = []
    with site.ways() as ways, closing(tools), tools.topic("fetched"):
        tools.produce("fetched", ways[0], load.fetched)
        for number in range(load.rounds):
            in_turn = _beginning_with(number, ways)
            produced.append({way.name: passed_by(tools.produce_anew, way, load.produced) for way in in_turn})
            fetched.append({way.name: passed_by(partial(tools.fetch, "fetched"), way, load.fetched) for way in in_turn})
    tls = ", TLS" if load.tls else ""
    yield from _summary(f"produce{tls}", produced, has_goal=not load.tls)
    yield from _summary(f"fetch{tls}", fetched, has_goal=not load.tls)


class PerfTools:
    """The stock tools, each run a process of its own."""

    def __init__(self, site: Site, load: Load) -> None:
        self._sandbox = site.sandbox
        self._load = load
        self._config = site.directory / "client.properties"
        trust = f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={site.sandbox.ca_pem}\n"
        self._config.write_text(trust if load.tls else "")
        self._admin = KafkaAdminClient(bootstrap_servers=site.sandbox.admin_servers, request_timeout_ms=60_000)

    def close(self) -> None:
        self._admin.close()

    @contextmanager
    def topic(self, name: str) -> Iterator[str]:
        """Deleted afterwards: the volume is memory."""
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        yield name
        self._admin.delete_topics([name])

    def produce_anew(self, way: Way, records: int) -> float:
        with self.topic(f"produced.{way.name}") as name:
            return self.produce(name, way, records)

    def produce(self, topic: str, way: Way, records: int) -> float:
        """Megabytes per second after the warm-up, as the tool says."""
        said = self._run(
            "producer-perf-test",
            *("--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_BYTES)),
            *("--throughput", "-1", "--warmup-records", str(self._load.warm_up), "--command-property", *PRODUCER),
            *("--bootstrap-server", self._address(way), "--command-config", str(self._config)),
        )
        found = re.findall(r"^(?=.*steady state).*\(([\d.]+) MB/sec\)", said, re.MULTILINE)
        if len(found) != 1:
            raise RuntimeError(f"the producer's output is not understood:\n{said}")
        return float(found[0])

    def fetch(self, topic: str, way: Way, records: int) -> float:
        """Megabytes per second from the assignment of its partitions on, as the tool says."""
        said = self._run(
            "consumer-perf-test",
            *("--topic", topic, "--num-records", str(records), "--hide-header"),
            *("--bootstrap-server", self._address(way), "--command-config", str(self._config)),
        )
        columns = said.split(", ")
        if len(columns) != 10 or int(columns[4]) < records:
            raise RuntimeError(f"the consumer's output is not understood:\n{said}")
        return float(columns[8])

    def _address(self, way: Way) -> str:
        return f"127.0.0.1:{way.tls_port if self._load.tls else way.port}"

    def _run(self, tool: str, *arguments: str) -> str:
        done = subprocess.run(self._sandbox.tool_command(tool, *arguments), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{tool} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def _beginning_with(number: int, ways: Sequence[Way]) -> list[Way]:
    first = number % len(ways)
    return [*ways[first:], *ways[:first]]


def passed_by(tool: Callable[[Way, int], float], way: Way, records: int) -> Passed:
    before = way.proxy.cpu_seconds() if way.proxy else 0.0
    speed = tool(way, records)
    cost = (way.proxy.cpu_seconds() - before) / (records * RECORD_BYTES / 1e9) if way.proxy else None
    return Passed(megabytes_per_second=speed, cpu_seconds_per_gigabyte=cost)


def _summary(what: str, rounds: Sequence[Round], *, has_goal: bool) -> Iterator[ThreeWays]:
    yield ThreeWays(
        what=what,
        unit="MB/s",
        figures=medians({way: passed.megabytes_per_second for way, passed in each.items()} for each in rounds),
        against=DIRECT,
        goal="at least 0.95" if has_goal else "",
    )
    costs = [
        {way: cost for way, passed in each.items() if (cost := passed.cpu_seconds_per_gigabyte) is not None}
        for each in rounds
    ]
    yield ThreeWays(
        what=f"{what}: CPU of the proxy",
        unit="s/GB",
        figures=medians(costs),
        against=HAPROXY,
        goal="at most 1.5" if has_goal else "",
    )

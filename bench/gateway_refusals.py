"""How fast Produce requests are refused: a client that hammers at a fence must not cost the others much.

HAProxy refuses nothing, so the gateway stands beside the broker itself, whose quickest refusal is of a topic that it
does not have.
"""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bench.gateway_clients import Clients
from bench.gateway_paths import DIRECT, HAPROXY, Proxy, Site, Way
from bench.gateway_requests import answer, produce
from bench.gateway_rows import ThreeWays, medians

PARTITIONS = (1, 1000)
"""In one request."""
UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR = 3, 56
RECORD_BYTES = 100
DEPTH = 16
SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuser:
    """Who refuses Produce to which topic, and with which error."""

    name: str
    port: int
    topic: str
    error: int

    def request(self, partitions: int) -> bytes:
        return produce(self.topic, partitions, RECORD_BYTES)

    def must_refuse(self, partitions: int) -> None:
        """Otherwise something else would be measured."""
        last_partition = struct.pack(">ih", partitions - 1, self.error)
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            if last_partition not in answer(connection, self.request(partitions)):
                raise RuntimeError(f"{self.name} did not refuse {self.topic} with error {self.error}")


def rows(site: Site, clients: Clients, rounds: int) -> Iterator[ThreeWays]:
    with closing(KafkaAdminClient(bootstrap_servers=site.sandbox.admin_servers, request_timeout_ms=60_000)) as admin:
        admin.create_topics([NewTopic("fenced", max(PARTITIONS), 1)])
    with site.ways() as ways:
        refusers = [_refuser(way) for way in ways if way.name != HAPROXY]
        for partitions in PARTITIONS:
            for refuser in refusers:
                refuser.must_refuse(partitions)
            _warm_up, *rates = [
                {each.name: clients.pipeline(each.request(partitions), DEPTH, SECONDS, each.port) for each in refusers}
                for _ in range(rounds + 1)
            ]
            what = f"Produce requests refused, {partitions:,} partition{'s' if partitions > 1 else ''} each"
            yield ThreeWays(what=what, unit="/s", figures=medians(rates), against=DIRECT)


def _refuser(way: Way) -> Refuser:
    if way.proxy is None:
        return Refuser(name=way.name, port=way.port, topic="unknown", error=UNKNOWN_TOPIC_OR_PARTITION)
    fence(way.proxy, "fenced")
    return Refuser(name=way.name, port=way.port, topic="fenced", error=KAFKA_STORAGE_ERROR)


def fence(gateway: Proxy, topic: str) -> None:
    """By hand, through the control socket."""
    request = {"op": "fence", "topic": topic, "reason": "benchmark", "by": "bench"}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(gateway.control_socket))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as lines:
            said = json.loads(lines.readline())
    if not said["ok"]:
        raise RuntimeError(f"the gateway did not fence {topic}: {said}")

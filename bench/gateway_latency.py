"""What a way adds to a round trip: one connection, one request under way, blocks of round trips in turns.

Client, proxy and backend stay on one core, where only one of them ever has something to do. Left to the scheduler they
wake each other now on the same core and now on the other; that costs more than a proxy does, and would be measured in
its place.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bench.gateway_clients import Clients, RoundTrip
from bench.gateway_paths import DIRECT, HAPROXY, Site, Way
from bench.gateway_requests import metadata, produce
from bench.gateway_rows import ThreeWays, medians

BLOCK = 4000
"""Round trips; forty of them are above its p99."""
PAYLOAD = 900
"""Makes a request of about a kilobyte."""
TOPIC = "pinged"
PERCENTILES: Mapping[str, Callable[[RoundTrip], float]] = {"p50": lambda trip: trip.p50, "p99": lambda trip: trip.p99}

Round = Mapping[str, RoundTrip]
"""By the name of the way."""


def rows(site: Site, clients: Clients, rounds: int) -> Iterator[ThreeWays]:
    """The backend does nothing but answer, so that a microsecond shows."""
    (port,) = site.sandbox.reserve_ports(1)
    requests = {"Produce": produce(TOPIC, 1, PAYLOAD), "Metadata": metadata("x" * PAYLOAD)}
    with one_core(), clients.echo(port), site.ways_to(port) as ways:
        for name, request in requests.items():
            taken = _in_turns(clients, request, rounds, ways)
            for percentile, figure in PERCENTILES.items():
                yield ThreeWays(
                    what=f"1 KB {name}, {percentile} added",
                    unit="µs",
                    figures=medians(_added(each, figure) for each in taken),
                    against=HAPROXY,
                    goal="at most 1.5",
                )


def rows_to_the_broker(site: Site, clients: Clients, rounds: int) -> Iterator[ThreeWays]:
    """Whole round trips, on all cores: what the added time is to a client."""
    with closing(KafkaAdminClient(bootstrap_servers=site.sandbox.admin_servers)) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
    with site.ways() as ways:
        taken = _in_turns(clients, produce(TOPIC, 1, PAYLOAD), rounds, ways)
    for percentile, figure in PERCENTILES.items():
        yield ThreeWays(
            what=f"1 KB Produce to the broker, {percentile} in all",
            unit="µs",
            figures=medians({way: figure(trip) for way, trip in each.items()} for each in taken),
            against=DIRECT,
        )


def _in_turns(clients: Clients, request: bytes, rounds: int, ways: Sequence[Way]) -> list[Round]:
    """The first round warms up and is thrown away."""
    _, *taken = clients.ping_pong(request, rounds + 1, BLOCK, [way.port for way in ways])
    return [dict(zip((way.name for way in ways), trips, strict=True)) for trips in taken]


def _added(trips: Round, figure: Callable[[RoundTrip], float]) -> dict[str, float]:
    """Against the direct block of the same round: what disturbs one disturbs the other."""
    return {way: figure(trip) - figure(trips[DIRECT]) for way, trip in trips.items() if way != DIRECT}


@contextmanager
def one_core() -> Iterator[None]:
    """For all that is started meanwhile, and ahead of everything else on it where that is allowed."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cores)

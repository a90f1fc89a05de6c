"""The gateway against that of an older commit, side by side in front of one broker, each with its guard, in turns.

Nothing is fenced, and every limit is far away. A row is the median of the ratios of its pairs, with the interval in
which the true one lies in 95 of 100 such runs: the ranks that the binomial distribution says, whatever the noise is.

``python -m bench.older_gateway [COMMIT] [--pairs 3]`` prints it.
"""

import argparse
import io
import math
import statistics
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from bench.gateway_clients import Clients
from bench.gateway_latency import BLOCK, PAYLOAD, TOPIC, one_core
from bench.gateway_paths import BRIMLINE, GATEWAY, HAPROXY, Launcher, Site, Way, running_gateway, site
from bench.gateway_requests import produce
from bench.gateway_throughput import Load, PerfTools, passed_by
from brimline.sandbox import Sandbox

OLDER, TODAY = "older", "today"
COMMIT = "2f40139"
PAIRS = 16
LOAD = Load(rounds=0, produced=1_000_000, warm_up=100_000, fetched=2_000_000)
LIMITS = {"disk.max.used.percent": "99", "disk.min.free.bytes": str(1 << 29)}
HEADER = "| what | older | today | today / older | 95 % interval | pairs |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    what: str
    unit: str
    pairs: Sequence[tuple[float, float]]
    """Older and today's."""

    def row(self) -> str:
        ratios = sorted(today / older for older, today in self.pairs)
        low, high = interval(ratios)
        older, today = (f"{statistics.median(side):.4g} {self.unit}" for side in zip(*self.pairs, strict=True))
        middle = f"{statistics.median(ratios):.3f} | {low:.3f} to {high:.3f}"
        return f"| {self.what} | {older} | {today} | {middle} | {len(ratios)} |"


def interval(ascending: Sequence[float]) -> tuple[float, float]:
    """Of the median. With fewer than six figures nothing can be said so surely: then it is all of them."""
    count, left_out, outside = len(ascending), 0, 0.0
    while (outside := outside + math.comb(count, left_out) / 2**count) <= 0.025:
        left_out += 1
    first = max(left_out - 1, 0)
    return ascending[first], ascending[-1 - first]


def figures(commit: str = COMMIT, pairs: int = PAIRS) -> Iterator[Ratios]:
    with tempfile.TemporaryDirectory() as folder, site(with_gateway=False) as place:
        programs = {OLDER: older_program(commit, Path(folder)), TODAY: BRIMLINE}
        clients = Clients.build(place.directory)
        yield _to_a_backend(_with(place, programs, with_guard=False), clients, pairs)
        guarded = _with(place, programs, with_guard=True)
        with guarded.ways() as (direct, *ways):
            yield _to_the_broker(place.sandbox, clients, ways, pairs)
            yield from _cpu(guarded, direct, ways, pairs)


def older_program(commit: str, folder: Path) -> tuple[str, ...]:
    root = Path(__file__).parents[1]
    archive = subprocess.run(["git", "-C", str(root), "archive", commit, "src"], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return ("env", f"PYTHONPATH={folder / 'src'}", *BRIMLINE)


def _with(place: Site, programs: dict[str, tuple[str, ...]], *, with_guard: bool) -> Site:
    """The two gateways in the places of two proxies."""
    launchers: dict[str, Launcher] = {
        name: partial(running_gateway, place.sandbox, program=program, limits=LIMITS, with_guard=with_guard)
        for name, program in programs.items()
    }
    fronts = {OLDER: place.fronts[HAPROXY], TODAY: place.fronts[GATEWAY]}
    return replace(place, launchers=launchers, fronts=fronts)


def _to_a_backend(place: Site, clients: Clients, pairs: int) -> Ratios:
    """As in ``gateway_latency``: on one core, to what only answers."""
    (port,) = place.sandbox.reserve_ports(1)
    with one_core(), clients.echo(port), place.ways_to(port) as (_, *ways):
        taken = _round_trips(clients, ways, pairs)
    return Ratios(what="1 KB Produce to a backend that only answers, p50", unit="µs", pairs=taken)


def _to_the_broker(sandbox: Sandbox, clients: Clients, ways: Sequence[Way], pairs: int) -> Ratios:
    with closing(KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
    return Ratios(what="1 KB Produce to the broker, p50", unit="µs", pairs=_round_trips(clients, ways, pairs))


def _round_trips(clients: Clients, ways: Sequence[Way], pairs: int) -> list[tuple[float, float]]:
    """Two pairs in a round, the second one the other way round; the first round warms up."""
    first, second = (way.port for way in ways)
    request = produce(TOPIC, 1, PAYLOAD)
    _, *rounds = clients.ping_pong(request, 1 + -(-pairs // 2), BLOCK, [first, second, second, first])
    return [pair for a, b, c, d in rounds for pair in ((a.p50, b.p50), (d.p50, c.p50))]


def _cpu(place: Site, direct: Way, ways: Sequence[Way], pairs: int) -> Iterator[Ratios]:
    tools = PerfTools(place, LOAD)
    with closing(tools), tools.topic("fetched"):
        tools.produce("fetched", direct, LOAD.fetched)
        guards: list[tuple[float, float]] = []
        kinds: dict[str, tuple[Callable[[Way, int], float], int]] = {
            "produced": (tools.produce_anew, LOAD.produced),
            "fetched": (partial(tools.fetch, "fetched"), LOAD.fetched),
        }
        for what, (tool, records) in kinds.items():
            taken = []
            for number in range(pairs):
                in_turn = ways if number % 2 else ways[::-1]
                before = [_guard_cpu(way) for way in ways]
                costs = {way.name: passed_by(tool, way, records).cpu_seconds_per_gigabyte or 0.0 for way in in_turn}
                taken.append((costs[OLDER], costs[TODAY]))
                older, today = (_guard_cpu(way) - then for way, then in zip(ways, before, strict=True))
                guards.append((older, today))
            yield Ratios(what=f"CPU of the gateway, {what}", unit="s/GB", pairs=taken)
        yield Ratios(what="CPU of the guard beside it, in the time of such a pair", unit="s", pairs=guards)


def _guard_cpu(way: Way) -> float:
    return way.proxy.guard.cpu_seconds() if way.proxy and way.proxy.guard else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.older_gateway", description="Against an older gateway.")
    parser.add_argument("commit", nargs="?", default=COMMIT)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args()
    print(HEADER)
    for figure in figures(options.commit, options.pairs):
        print(figure.row(), flush=True)


if __name__ == "__main__":
    main()

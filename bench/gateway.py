"""The gateway beside HAProxy and beside no proxy at all.

``python -m bench.gateway`` prints the whole table, ``--quick`` a short form of it for daily use; neither keeps it.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from bench import gateway_attacks, gateway_latency, gateway_memory, gateway_refusals, gateway_throughput
from bench.gateway_clients import Clients
from bench.gateway_paths import Site, site
from bench.gateway_rows import HEADER, ThreeWays
from bench.gateway_throughput import Load

Rows = Callable[[Site, Clients], Iterable[ThreeWays]]


def parts(*, plain: Load, tls: Load, ping_pong_rounds: int, refusal_rounds: int) -> dict[str, Rows]:
    """All rows, under the names by which some can be asked for."""
    return {
        "throughput": lambda site, _: gateway_throughput.rows(site, plain),
        "tls": lambda site, _: gateway_throughput.rows(site, tls),
        "latency": partial(gateway_latency.rows, rounds=ping_pong_rounds),
        "broker-latency": partial(gateway_latency.rows_to_the_broker, rounds=ping_pong_rounds),
        "memory": lambda site, _: gateway_memory.rows(site),
        "refusals": partial(gateway_refusals.rows, rounds=refusal_rounds),
        "attacks": lambda _site, _clients: gateway_attacks.rows(),
    }


FULL = parts(
    plain=Load(rounds=7, produced=600_000, warm_up=150_000, fetched=2_000_000),
    tls=Load(rounds=3, produced=400_000, warm_up=100_000, fetched=1_000_000, tls=True),
    ping_pong_rounds=25,
    refusal_rounds=5,
)
QUICK = parts(
    plain=Load(rounds=3, produced=600_000, warm_up=150_000, fetched=2_000_000),
    tls=Load(rounds=3, produced=400_000, warm_up=100_000, fetched=1_000_000, tls=True),
    ping_pong_rounds=9,
    refusal_rounds=3,
)
DAILY = ("throughput", "latency", "memory")


def figures() -> Iterator[ThreeWays]:
    return measured(FULL.values(), with_gateway=True)


def measured(rows: Iterable[Rows], *, with_gateway: bool) -> Iterator[ThreeWays]:
    with site(with_gateway=with_gateway) as place:
        clients = Clients.build(place.directory)
        for each in rows:
            yield from each(place, clients)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description="The gateway's benchmark.")
    parser.add_argument("--quick", action="store_true", help=f"fewer rounds; unless named: {', '.join(DAILY)}")
    parser.add_argument("--without-gateway", action="store_true", help="direct and HAProxy only")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(FULL)}")
    options = parser.parse_args()
    known = QUICK if options.quick else FULL
    if unknown := set(options.parts) - set(known):
        parser.error(f"no {', '.join(unknown)}: choose from {', '.join(known)}")
    asked = options.parts or (DAILY if options.quick else known)
    print(HEADER)
    for figure in measured([known[name] for name in asked], with_gateway=not options.without_gateway):
        print(figure.row(), flush=True)


if __name__ == "__main__":
    main()

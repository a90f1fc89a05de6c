"""What an idle connection costs a proxy: memory before and after many of them, each of which has asked once."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

from bench.gateway_paths import Site, Way
from bench.gateway_requests import answer, api_versions
from bench.gateway_rows import ThreeWays

CONNECTIONS = 2000
WARM_UP = 100
"""Buffers and code that the first connections bring into memory are not the price of one more."""


def rows(site: Site) -> Iterator[ThreeWays]:
    with site.ways() as (_, *ways):
        figures = {way.name: _kilobytes_per_connection(way) for way in ways}
    yield ThreeWays(what=f"memory per connection, {CONNECTIONS:,} idle", unit="KB", figures=figures, goal="under 30 KB")


def _kilobytes_per_connection(way: Way) -> float:
    assert way.proxy is not None
    with ExitStack() as stack:
        for _ in range(WARM_UP):
            stack.enter_context(_asked_once(way.port))
        before = way.proxy.resident_kilobytes()
        for _ in range(CONNECTIONS):
            stack.enter_context(_asked_once(way.port))
        return (way.proxy.resident_kilobytes() - before) / CONNECTIONS


def _asked_once(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    answer(connection, api_versions())
    return connection

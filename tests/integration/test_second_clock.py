"""The controller's time of day: told by brokers from 3.9 on, and no second clock if it is this machine's."""

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from brimline.model import Bytes
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster import second_clock
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec

pytestmark = pytest.mark.integration

A_MINUTE_MS = 60_000
OTHERS = [pytest.param(version, marks=pytest.mark.long) for version in ("3.2.3", "3.9.2")]


@pytest.fixture(scope="module", params=["4.3.1", *OTHERS])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(version=request.param, volumes=(VolumeSpec(size=Bytes(64 << 20)),))) as running:
        yield running


def told(sandbox: Sandbox) -> int | None:
    connection = Connection(ClientConfig(bootstrap_servers=(sandbox.bootstrap_servers,)))
    try:
        return second_clock.controllers_time_ms(connection, Deadline(timedelta(seconds=10)))
    finally:
        connection.close()


def test_a_controller_elsewhere_tells_its_time(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(sandbox) is None, "it is on this machine"
    monkeypatch.setattr(second_clock, "_is_here", lambda _: False)

    time_ms = told(sandbox)

    is_old = sandbox.spec.version == "3.2.3"
    assert (time_ms is None) is is_old
    assert is_old or abs((time_ms or 0) - time.time() * 1000) < A_MINUTE_MS

"""A full disk beside a healthy one: what the healthy one's producers notice of it.

Windows of the same length in turns, on one broker: both disks have room, then one is fenced and its own producer is
refused all the time. Each window is fixed beforehand and looked at once: whoever waits for a good moment finds one.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.ratio import AgainstGoal
from brimline.sandbox import Sandbox
from brimline.torture.clients.table import JAVA_4, KAFKA_PYTHON, LIBRDKAFKA_IDEMPOTENT
from tests.integration.full_disks import (
    BY_PERCENT,
    FIRST,
    PATIENT,
    create_topic_in,
    fill_beyond_limit,
    refused_batches,
    two_disks,
    wait_for_refusal,
)
from tests.integration.gateway_clients.load import Load, producing
from tests.integration.gateway_clients.verification import verify_read_back
from tests.integration.gatewayed import RunningGateway, gateway
from tests.waiting import eventually

ROUNDS = 7
WINDOW_SECONDS = 5.0
RATE = 500.0
"""Records per second of each producer."""
HEALTHY = (JAVA_4, LIBRDKAFKA_IDEMPOTENT, KAFKA_PYTHON)
GOAL_PERCENT = 10.0


def figures() -> Iterator[AgainstGoal]:
    with Sandbox(two_disks("4.3.1")) as sandbox, tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        full, other = sandbox.broker(1).log_dirs
        create_topic_in(sandbox, "refused", full)
        create_topic_in(sandbox, "healthy", *[other] * len(HEALTHY))
        running = stack.enter_context(gateway(sandbox, Path(directory) / "log", BY_PERCENT))
        servers = sandbox.bootstrap_servers
        with ExitStack() as clients:
            loads = [
                clients.enter_context(producing(client, servers, "healthy", partitions=(number,), rate=RATE))
                for number, client in enumerate(HEALTHY)
            ]
            refused = clients.enter_context(producing(JAVA_4, servers, "refused", rate=RATE, properties=PATIENT))
            for load in (*loads, refused):
                load.wait_for_acks(int(RATE))
            lost = [_lost_percents(sandbox, running, full, loads, refused) for _ in range(ROUNDS)]
        for load in (*loads, refused):
            assert load.acked() == set(range(load.sent))
            verify_read_back(sandbox, load)
    for number, load in enumerate(loads):
        median = statistics.median(each[number] for each in lost)
        yield AgainstGoal(what=f"of its rate, {load.client} loses", unit="%", ours=median, goal=GOAL_PERCENT)


def _lost_percents(
    sandbox: Sandbox, running: RunningGateway, full: Path, loads: list[Load], refused: Load
) -> list[float]:
    before = _rates(loads)
    refusals = refused_batches(running, refused.topic)
    foreign = fill_beyond_limit(sandbox, full)
    eventually(lambda: running.fenced() == {FIRST})
    wait_for_refusal(running, refused.topic, beyond=refusals)
    during = _rates(loads)
    sandbox.unfill(foreign)
    eventually(lambda: running.fenced() == set())
    refused.wait_for_acks(int(RATE))
    return [100 * (1 - now / then) for now, then in zip(during, before, strict=True)]


def _rates(loads: list[Load]) -> list[float]:
    began = time.monotonic()
    time.sleep(WINDOW_SECONDS)
    return [load.rate_between(began, began + WINDOW_SECONDS) for load in loads]

"""Moves between log dirs on a real broker: held up while the log dir they go into is full, and never for longer."""

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from brimline.act.move_pause import KEY, PAUSED
from brimline.model import BrokerId, Bytes
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.alter_broker_config import own_dynamic_value
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.full_followers import run_advice
from tests.integration.gatewayed import ENFORCING, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.segment_files import segment_files
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
SIZE = 64 * MIB
GROWTH = MIB
WATCH_SECONDS = 4.0
FETCH = 64 << 10
"""What the broker copies at once, and the size of the batches: one that is held up does so once in 11 s."""
DEFAULT, OPERATORS = MIB // 4, MIB // 2
"""The cluster's throttle, and the operator's for this broker: by either a move takes minutes. They are the bytes of a
second; what was saved up in the ten seconds before may go at once."""
UNLIMITED = 2**40
LIMITS = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(128 * MIB)}


class Moving:
    """The partition ``moved-0``, which this test sends from one log dir to the other and back."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._admin = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        self._observer = Connection(ClientConfig.from_properties(sandbox.admin_servers))
        create_topic(sandbox, "moved")
        _produce(sandbox)
        default = ("--entity-type", "brokers", "--entity-default", "--alter", "--add-config", f"{KEY}={DEFAULT}")
        done = sandbox.java_tool("configs", "--bootstrap-server", sandbox.admin_servers, *default)
        assert done.returncode == 0, done.stderr

    def close(self) -> None:
        self._admin.close()
        self._observer.close()

    @property
    def source(self) -> Path:
        return next(path for path in self._log_dirs if (self.sandbox.outside(path) / "moved-0").exists())

    @property
    def target(self) -> Path:
        return next(path for path in self._log_dirs if path != self.source)

    @property
    def throttle(self) -> int | None:
        """The broker's own, as the broker itself tells: a moment before it goes by it."""
        patience = Deadline(timedelta(seconds=PATIENCE_SECONDS))
        value = own_dynamic_value(self._observer, BrokerId(1), KEY, patience)
        return None if value is None else int(value)

    def set_throttle(self, value: int) -> None:
        """As the operator, while no guard interferes."""
        self.ask_for_throttle(value)
        eventually(lambda: self.throttle == value)

    def ask_for_throttle(self, value: int | None) -> None:
        change = ("DELETE", None) if value is None else ("SET", str(value))
        resource = ConfigResource(ConfigResourceType.BROKER, "1", {KEY: change})
        self._admin.alter_configs([resource], incremental=True, raise_on_unknown=False)

    def begin(self, target: Path) -> None:
        """Asked for until it is so.

        A broker that has just cancelled another move may not listen at once. One that does not go by its throttle yet
        is done in a blink: then the partition is sent back, to begin once more.
        """
        home = self.source

        def is_begun() -> bool:
            if self.is_in(target):
                self._admin.alter_replica_log_dirs({("moved", 0, 1): str(home)})
                eventually(lambda: self.is_in(home))
            self._admin.alter_replica_log_dirs({("moved", 0, 1): str(target)})
            return self.is_moving(target)

        eventually(is_begun)

    def copied(self, target: Path) -> int:
        """Bytes of the copy so far; 0 when there is none."""
        copies = self.sandbox.outside(target).glob("moved-0.*-future")
        return sum(sum(segment_files(copy).values()) for copy in copies)

    def is_moving(self, target: Path) -> bool:
        return any(self.sandbox.outside(target).glob("moved-0.*-future"))

    def is_in(self, log_dir: Path) -> bool:
        return self.source == log_dir and not self.is_moving(log_dir)

    @property
    def _log_dirs(self) -> tuple[Path, ...]:
        return self.sandbox.broker(1).log_dirs


def _produce(sandbox: Sandbox) -> None:
    """Bytes that cannot be compressed, each record a batch of its own."""
    producer = Producer({"bootstrap.servers": sandbox.admin_servers, "batch.num.messages": 1})
    for _ in range(SIZE // 60_000):
        producer.produce("moved", os.urandom(1000) * 60, partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0, "not everything was acknowledged"


on_newest = pytest.mark.parametrize("moving", ["4.3.1"], indirect=True, scope="module")


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def moving(request: pytest.FixtureRequest) -> Iterator[Moving]:
    volume = VolumeSpec(size=Bytes(256 * MIB))
    properties = {"replica.fetch.max.bytes": str(FETCH)}
    with Sandbox(SandboxSpec(version=request.param, volumes=(volume, volume), properties=properties)) as sandbox:
        sandbox.outside(state_dir(sandbox)).mkdir(mode=0o700)
        moving = Moving(sandbox)
        yield moving
        moving.close()


def enforcing(sandbox: Sandbox) -> dict[str, str]:
    return {**ENFORCING, **LIMITS, "brimline.state.dir": str(state_dir(sandbox))}


def is_paused(running: RunningGuard) -> bool:
    moves = running.state()["moves"]
    return moves is not None and moves["paused"]


def pace(moving: Moving, target: Path) -> float:
    """Bytes a second, over a few of them. What a busy machine adds to the seconds makes it smaller."""
    began, before = time.monotonic(), moving.copied(target)
    time.sleep(WATCH_SECONDS)
    return (moving.copied(target) - before) / (time.monotonic() - began)


def make_full(moving: Moving, log_dir: Path) -> Path:
    # What a test before this one has moved away is deleted later, and would make room again
    eventually(lambda: not list(moving.sandbox.outside(log_dir).glob("*-delete")))
    return moving.sandbox.fill(log_dir, leave_free=Bytes(96 * MIB))


def test_a_move_is_held_up_and_the_operators_throttle_is_back_though_the_guard_was_killed(
    moving: Moving, tmp_path: Path
) -> None:
    sandbox, source, target = moving.sandbox, moving.source, moving.target
    moving.set_throttle(OPERATORS)
    with guard(sandbox, tmp_path / "first", enforcing(sandbox)) as first:
        moving.begin(target)
        at_first = moving.copied(target)
        eventually(lambda: moving.copied(target) >= at_first + GROWTH)
        foreign = make_full(moving, target)
        eventually(lambda: is_paused(first))
        eventually(lambda: pace(moving, target) < OPERATORS / 4)
        gauges = first.samples("brimline_moves_paused")
        first.process.kill()
    while_nobody_guards = moving.throttle
    with guard(sandbox, tmp_path / "second", enforcing(sandbox)) as second:
        eventually(lambda: is_paused(second))
        still = moving.throttle
        second.process.kill()
    sandbox.unfill(foreign)
    held = moving.copied(target)
    with guard(sandbox, tmp_path / "third", enforcing(sandbox)) as third:
        eventually(lambda: moving.throttle == OPERATORS)
        eventually(lambda: moving.copied(target) >= held + GROWTH or moving.is_in(target))
        eventually(lambda: third.state()["moves"] is None)
    moving.set_throttle(UNLIMITED)
    eventually(lambda: moving.is_in(target))

    assert gauges == {f'log_dir="{target}"': 1}
    assert (while_nobody_guards, still) == (int(PAUSED), int(PAUSED))
    assert "moves-paused" in first.events()
    assert "moves-resumed" in third.events()
    assert not list(sandbox.outside(state_dir(sandbox)).glob("move-pause-*"))
    assert moving.source == target != source


@on_newest
def test_a_throttle_that_is_cleared_is_put_on_again_and_the_command_of_the_log_line_cancels_the_move(
    moving: Moving, tmp_path: Path
) -> None:
    """Clearing is what ``kafka-reassign-partitions --verify`` does. A move into a log dir that is full already."""
    sandbox, source, target = moving.sandbox, moving.source, moving.target
    moving.set_throttle(OPERATORS)
    foreign = make_full(moving, target)
    with guard(sandbox, tmp_path / "log", enforcing(sandbox)) as running:
        moving.begin(target)
        eventually(lambda: is_paused(running))
        moving.ask_for_throttle(None)
        eventually(lambda: "moves-paused-again" in running.events())
        eventually(lambda: moving.throttle == int(PAUSED))
        advice = next(line["message"] for line in running.said() if line["event"] == "moves-paused")
        cancelled = run_advice(sandbox, advice)
        eventually(lambda: not moving.is_moving(target))
        eventually(lambda: moving.throttle is None)
        eventually(lambda: running.state()["moves"] is None)
    sandbox.unfill(foreign)

    assert cancelled.returncode == 0, cancelled.stderr
    assert moving.is_in(source)
    assert "moves-resumed" in running.events()


@on_newest
@pytest.mark.long
def test_one_that_observes_touches_nothing(moving: Moving, tmp_path: Path) -> None:
    sandbox, target = moving.sandbox, moving.target
    moving.set_throttle(OPERATORS)
    foreign = make_full(moving, target)
    with guard(sandbox, tmp_path / "log", {**enforcing(sandbox), "brimline.enforcement": "observe"}) as running:
        moving.begin(target)
        eventually(lambda: any("would pause the move of moved-0" in line["message"] for line in running.said()))
        throttle = moving.throttle
    moving.set_throttle(UNLIMITED)
    eventually(lambda: moving.is_in(target))
    sandbox.unfill(foreign)

    assert throttle == OPERATORS

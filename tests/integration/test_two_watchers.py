"""Guard and gateway each watch the disks. What one of them finds the other finds at its next look, which comes at once;
and each fences alone.

Whoever is to be told has an interval of hours and no quick looks: it looks when it is told to, or not at all.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.sandbox import Sandbox
from tests.integration.full_disks import (
    BY_PERCENT,
    KAFKA_STORAGE_ERROR,
    SECOND,
    STORED,
    clean_up,
    create_topic_in,
    end_offset,
    fill_beyond_limit,
    two_disks,
    verify_unharmed,
)
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.raw_produce import raw_producer
from tests.integration.shared import shared
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

SLOW = {**BY_PERCENT, "disk.usage.check.interval.ms": "36000000", "brimline.disk.fast.sampling": "false"}
_BLIND = """
import os
see = os.statvfs
def statvfs(path):
    if os.path.exists({flag!r}):
        raise OSError(5, "Input/output error")
    return see(path)
os.statvfs = statvfs
"""
"""A file system that answers everything but how much room it has, from when a file is there."""


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    with shared(two_disks("4.3.1")) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    yield running_sandbox
    verify_unharmed(running_sandbox)
    clean_up(running_sandbox)


def keys_of_guard(sandbox: Sandbox, limits: dict[str, str]) -> dict[str, str]:
    return {**ENFORCING, "brimline.state.dir": str(state_dir(sandbox)), "brimline.cordon": "false", **limits}


def causes(running: RunningGateway) -> set[str]:
    return {fence["cause"] for fence in running.state()["fences"]}


def is_told(running: RunningGateway, watching: RunningGuard) -> None:
    eventually(lambda: watching.state()["gateway"]["up"])
    assert running.fenced() == set()


def test_what_the_gateway_finds_the_guard_judges_by_its_next_look(sandbox: Sandbox, tmp_path: Path) -> None:
    _, second = sandbox.broker(1).log_dirs
    with (
        gateway(sandbox, tmp_path / "gateway", BY_PERCENT) as running,
        guard(sandbox, tmp_path / "guard", keys_of_guard(sandbox, SLOW)) as watching,
    ):
        is_told(running, watching)
        foreign = fill_beyond_limit(sandbox, second)
        eventually(lambda: watching.states()[SECOND] == "full")
        eventually(lambda: causes(running) == {"full", "guard"})
        sandbox.unfill(foreign)
        eventually(lambda: watching.states()[SECOND] == "ok")
        eventually(lambda: running.fenced() == set())

    assert [event for event in watching.events() if event in ("disk-full", "refuse")] == ["disk-full", "refuse"]


def test_what_the_guard_finds_the_gateway_judges_and_keeps_without_the_guard(sandbox: Sandbox, tmp_path: Path) -> None:
    first, second = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "kept", first, second)
    with gateway(sandbox, tmp_path / "gateway", SLOW) as running, raw_producer(sandbox.bootstrap_servers) as client:
        with guard(sandbox, tmp_path / "guard", keys_of_guard(sandbox, BY_PERCENT)) as watching:
            is_told(running, watching)
            foreign = fill_beyond_limit(sandbox, second)
            eventually(lambda: causes(running) == {"full", "guard"})
            watching.process.kill()
            watching.process.wait(PATIENCE_SECONDS)
        eventually(lambda: causes(running) == {"full"})
        said = client.produce([("kept", 0), ("kept", 1)])
        assert [said["kept", n].code for n in (0, 1)] == [STORED, KAFKA_STORAGE_ERROR]
        assert end_offset(sandbox, "kept", 1) == 0

        sandbox.unfill(foreign)
        with guard(sandbox, tmp_path / "guard-again", keys_of_guard(sandbox, BY_PERCENT)):
            eventually(lambda: running.fenced() == set())
        assert client.produce([("kept", 1)])["kept", 1].code == STORED


@pytest.mark.long
def test_the_gateway_fences_with_the_guard_dead(sandbox: Sandbox, tmp_path: Path) -> None:
    first, second = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "alone", first, second)
    with gateway(sandbox, tmp_path / "gateway", BY_PERCENT) as running:
        with guard(sandbox, tmp_path / "guard", keys_of_guard(sandbox, BY_PERCENT)) as watching:
            is_told(running, watching)
            watching.process.kill()
            watching.process.wait(PATIENCE_SECONDS)
        foreign = fill_beyond_limit(sandbox, second)
        eventually(lambda: causes(running) == {"full"})
        with raw_producer(sandbox.bootstrap_servers) as client:
            assert client.produce([("alone", 1)])["alone", 1].code == KAFKA_STORAGE_ERROR
            sandbox.unfill(foreign)
            eventually(lambda: running.fenced() == set())
            assert client.produce([("alone", 1)])["alone", 1].code == STORED
    assert end_offset(sandbox, "alone", 1) == 1


def test_the_guards_word_fences_where_the_gateway_is_blind(sandbox: Sandbox, tmp_path: Path) -> None:
    first, second = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "told", first, second)
    flag = tmp_path / "is-blind"
    (tmp_path / "sitecustomize.py").write_text(_BLIND.format(flag=str(flag)))
    program = ("env", f"PYTHONPATH={tmp_path}", sys.executable, "-m", "brimline.cli")
    with (
        gateway(sandbox, tmp_path / "gateway", BY_PERCENT, program=program) as running,
        guard(sandbox, tmp_path / "guard", keys_of_guard(sandbox, BY_PERCENT)) as watching,
    ):
        is_told(running, watching)
        flag.touch()
        foreign = fill_beyond_limit(sandbox, second)
        eventually(lambda: causes(running) == {"guard"})
        with raw_producer(sandbox.bootstrap_servers) as client:
            said = client.produce([("told", 0), ("told", 1)])
            assert [said["told", n].code for n in (0, 1)] == [STORED, KAFKA_STORAGE_ERROR]
            sandbox.unfill(foreign)
            eventually(lambda: running.fenced() == set())
            assert client.produce([("told", 1)])["told", 1].code == STORED
    assert "fenced" not in running.events()

"""Hostile frames of every API through a fence, a real broker as the judge: `brimline torture hostile`."""

import pytest

from tests.integration.cluster import brimline
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("real_volumes")]


def attack(version: str, frames: int, *more: str, timeout: float) -> None:
    done = brimline("torture", "hostile", "--kafka", version, "--frames", str(frames), *more, timeout=timeout)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "violations             0" in done.stdout


def test_some_thousand_hostile_frames_do_no_harm() -> None:
    attack("4.3.1", 3_000, "--seed", "7", "--no-connections", timeout=3 * PATIENCE_SECONDS)


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_many_hostile_frames_and_connections_do_no_harm() -> None:
    attack("4.3.1", 200_000, "--seed", "2", timeout=2300)


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_hostile_frames_and_connections_do_an_older_broker_no_harm() -> None:
    attack("3.9.2", 50_000, "--seed", "3", timeout=2300)

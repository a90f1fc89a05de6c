"""Hostile frames of every API through a fence, a real broker as the judge: `brimline torture hostile`."""

import pytest

from tests.integration.cluster import brimline

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("real_volumes")]


def attack(version: str, frames: int, *more: str, timeout: float) -> None:
    done = brimline("torture", "hostile", "--kafka", version, "--frames", str(frames), *more, timeout=timeout)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "violations             0" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(600)
def test_some_thousand_hostile_frames_do_no_harm() -> None:
    attack("4.3.1", 3_000, "--seed", "7", "--no-connections", timeout=500)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_hostile_frames_do_no_harm() -> None:
    attack("4.3.1", 1_000_000, "--seed", "2", timeout=3500)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_hostile_frames_and_connections_do_an_older_broker_no_harm() -> None:
    attack("3.9.2", 100_000, "--seed", "3", timeout=1100)

"""Clients talk to the broker directly, and pass through the gateway only while a disk is near its limit or full."""

import subprocess
import sys

import pytest

from tests.namespaces import needs_network_namespaces
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.integration, needs_network_namespaces]


ON_MACHINES = "interception_machines"


def run_inside(scenario: str, version: str, module: str = "interception_inside", patience: float = 4.0) -> None:
    """In a network namespace of its own: rules of the kernel are nobody else's there, and go with it."""
    command = ["unshare", "--net", sys.executable, "-m", f"tests.integration.{module}", scenario, version]
    seconds = patience * PATIENCE_SECONDS
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-20_000:]


@pytest.mark.parametrize("version", ["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def test_a_full_disk_refuses_its_producers_and_with_room_nobody_passes_through_the_gateway(version: str) -> None:
    run_inside("rounds", version)


@pytest.mark.long
def test_whatever_is_killed_its_rules_go_at_once_and_no_record_is_lost() -> None:
    run_inside("kills", "4.3.1")


@pytest.mark.long
def test_a_trial_turns_clients_aside_and_refuses_nothing() -> None:
    run_inside("observed", "4.3.1")


@pytest.mark.long
def test_a_fence_by_hand_turns_clients_aside() -> None:
    run_inside("by_hand", "4.3.1")


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
@pytest.mark.parametrize("scenario", ["full_follower", "shared_listener"])
def test_a_full_follower_leaves_out_its_own_fetches_and_catches_up(scenario: str, version: str) -> None:
    run_inside(scenario, version, ON_MACHINES)


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_three_brokers_and_every_client_ten_rounds(version: str) -> None:
    run_inside("everyone", version, ON_MACHINES, patience=10.0)


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["tls", "failures", "addresses", "neighbours", "many"])
def test_on_machines(scenario: str) -> None:
    run_inside(scenario, "4.3.1", ON_MACHINES, patience=8.0)


@pytest.mark.long
def test_every_client_is_turned_aside_and_back_and_loses_nothing() -> None:
    run_inside("clients", "4.3.1")

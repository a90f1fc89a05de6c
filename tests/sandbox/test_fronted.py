"""A fronted cluster leaves the ports that it tells its clients to somebody else; listeners move with a restart."""

import socket
import subprocess
from collections.abc import Iterator

import pytest

from brimline.sandbox import Broker, Sandbox, SandboxSpec
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(fronted=True)) as running:
        yield running


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def is_listening(address: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port_of(address))) == 0


def move_client_listener(broker: Broker, *, bound: int) -> None:
    """The broker listens elsewhere; clients are told the same address as before."""
    moved = broker.properties["listeners"].replace(broker.direct_address, f"127.0.0.1:{bound}")
    broker.alter_properties({"listeners": moved})
    broker.restart()


def test_clients_are_sent_to_a_port_that_is_free_for_a_gateway(sandbox: Sandbox) -> None:
    command = sandbox.tool_command("log-dirs", "--bootstrap-server", sandbox.direct_servers, "--describe")

    with socket.create_server(("127.0.0.1", port_of(sandbox.bootstrap_servers))) as listener:
        listener.settimeout(PATIENCE_SECONDS)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            connection, _ = listener.accept()
            client.kill()
        connection.close()


def test_only_the_client_listener_is_elsewhere(sandbox: Sandbox) -> None:
    broker = sandbox.broker(1)

    assert broker.address != broker.direct_address
    assert not is_listening(broker.address)
    assert is_listening(broker.direct_address)
    assert is_listening(broker.admin_address)


def test_a_property_is_set_and_taken_out(sandbox: Sandbox) -> None:
    broker = sandbox.broker(1)
    file = sandbox.outside(broker.node.server_properties)
    before = file.read_text()

    broker.alter_properties({"log.retention.hours": "1"})
    assert file.read_text() == before + "log.retention.hours=1\n"

    broker.alter_properties({"log.retention.hours": None})
    assert file.read_text() == before


@pytest.mark.long
def test_a_listener_moves_with_a_restart_and_back(sandbox: Sandbox) -> None:
    broker = sandbox.broker(1)
    told, bound = broker.address, broker.direct_address
    (private,) = sandbox.reserve_ports(1)

    move_client_listener(broker, bound=private)
    assert (broker.address, broker.direct_address) == (told, f"127.0.0.1:{private}")
    assert is_listening(broker.direct_address)
    assert not is_listening(bound)

    move_client_listener(broker, bound=port_of(bound))
    assert (broker.address, broker.direct_address) == (told, bound)
    assert is_listening(bound)
    assert not is_listening(f"127.0.0.1:{private}")

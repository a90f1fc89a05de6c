"""A host without an address, or a name that no host can have, ends a command with one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from brimline.model import BadInput
from brimline.observe.client.config import parse_bootstrap_servers
from tests.waiting import PATIENCE_SECONDS

NO_NAME, UNKNOWN = "two..dots", "broker-7.example"
WITHOUT_DNS = """
import socket, sys
ask = socket.getaddrinfo

def without_dns(host, *rest, **options):
    if host == "broker-7.example":
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    return ask(host, *rest, **options)

socket.getaddrinfo = without_dns
from brimline.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""A command on a machine whose name server does not answer."""


def said_by(command: str, tmp_path: Path, host: str, added: str = "") -> str:
    (tmp_path / "logs").mkdir()
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path / 'logs'}\nlisteners=CLIENT://{host}:19092,ADMIN://127.0.0.1:1\n"
        "advertised.listeners=CLIENT://127.0.0.1:9092,ADMIN://127.0.0.1:1\ninter.broker.listener.name=ADMIN\n"
        "listener.security.protocol.map=CLIENT:PLAINTEXT,ADMIN:PLAINTEXT\nbrimline.log.level=error\n"
        f"brimline.metrics.port=0\nbrimline.state.dir={tmp_path / 'state'}\n{added}"
    )
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DNS, command, "--config", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("host", "why"), [(UNKNOWN, "Temporary failure in name resolution"), (NO_NAME, "not a host name")]
)
def test_a_gateway_whose_broker_has_no_address(tmp_path: Path, host: str, why: str) -> None:
    said = said_by("gateway", tmp_path, host)

    assert said == f"brimline: listener CLIENT: the broker's host {host} has no address: {why}\n"


@pytest.mark.parametrize("host", [UNKNOWN, NO_NAME])
def test_a_gateway_that_cannot_listen_there(tmp_path: Path, host: str) -> None:
    said = said_by("gateway", tmp_path, "127.0.0.1", f"brimline.gateway.listeners=CLIENT://{host}:9092\n")

    assert said.startswith(f"brimline: the gateway cannot listen on {host}:9092 for CLIENT: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("host", [UNKNOWN, NO_NAME])
def test_a_guard_that_cannot_listen_there(tmp_path: Path, host: str) -> None:
    said = said_by("guard", tmp_path, "127.0.0.1", f"brimline.metrics.host={host}\n")

    assert said.startswith(f"brimline: brimline.metrics.host={host}, brimline.metrics.port=0: cannot listen: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("host", [NO_NAME, "x" * 64])
def test_a_bootstrap_server_that_can_have_no_address(host: str) -> None:
    with pytest.raises(BadInput, match="has no host name"):
        parse_bootstrap_servers(f"{host}:9092")

"""What the doctor finds on this machine: folder, ports and key stores of the gateway, and the gateway itself."""

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.documents.gateway_state import GatewayState
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.guard.gateway_link.checks import (
    check_gateway,
    check_key_stores,
    check_ports,
    check_state_dir,
    check_upstreams,
)
from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.observe.properties.pem_stores import load_key
from brimline.settings.config import GuardConfig
from tests.guard.files import config
from tests.guard.gateway_link.test_findings import DIRECT, ENFORCING, said
from tests.guard.gateways import state as running
from tests.observe.properties.key_store_files import Issued, issue
from tests.settings.test_layout import FRONTED
from tests.waiting import PATIENCE_SECONDS

BROKER, OTHER = issue("broker7"), issue("broker7")


def nobody(kind: FailureKind = FailureKind.UNREACHABLE) -> GatewayState:
    raise ObservationFailed(Failure(kind=kind, message="no gateway is running"))


@contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def free_port() -> Iterator[int]:
    """Nobody listens on it, and the kernel gives it to nobody else meanwhile."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def broker_that_shows(issued: Issued) -> Iterator[int]:
    """A listener that shakes hands once."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key(context, private_key=issued.private_key(), chain=issued.chain, password=None)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            try:
                context.wrap_socket(accepted, server_side=True).close()
            except OSError:
                accepted.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "nobody came to shake hands"


def fronted(state_dir: Path, added: str = ENFORCING, broker: str = FRONTED) -> GuardConfig:
    return config(f"{added}brimline.state.dir={state_dir}\n", broker)


def with_store(folder: Path, port: int, issued: Issued = BROKER) -> GuardConfig:
    store = folder / "store.pem"
    store.write_text(issued.private_key() + issued.chain)
    broker = FRONTED.replace("SASL_PLAINTEXT", "SSL").replace("127.0.0.1:19092", f"127.0.0.1:{port}")
    return fronted(folder, f"ssl.keystore.type=PEM\nssl.keystore.location={store}\n{ENFORCING}", broker)


def test_a_guard_without_a_gateway_hears_nothing_of_it() -> None:
    assert list(check_gateway(config(broker=DIRECT), nobody)) == []


def test_a_folder_that_is_there_and_ours_is_no_news(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    assert list(check_state_dir(fronted(tmp_path))) == []


@pytest.mark.parametrize(("mode", "weight"), [(ENFORCING, Weight.PROBLEM), ("", Weight.WARNING)])
def test_a_folder_that_is_not_there(mode: str, weight: Weight, tmp_path: Path) -> None:
    assert said(check_state_dir(fronted(tmp_path / "none", mode)), "is not a folder") is weight


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_we_may_not_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    assert said(check_state_dir(fronted(tmp_path)), "cannot be written") is Weight.PROBLEM


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with listening() as port:
        found = list(
            check_ports(fronted(tmp_path, f"brimline.gateway.listeners=CLIENT://127.0.0.1:{port}\n{ENFORCING}"))
        )

    assert said(found, f"could not listen on 127.0.0.1:{port}", "another process") is Weight.PROBLEM


def test_a_broker_that_is_not_where_the_gateway_looks_for_it(tmp_path: Path) -> None:
    layout = "listeners=CLIENT://127.0.0.1:{port},INTERNAL://127.0.0.1:9094\n"
    others = "advertised.listeners=CLIENT://broker7.example.org:9092,INTERNAL://127.0.0.1:9094\n"
    protocols = (
        "listener.security.protocol.map=CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT\ninter.broker.listener.name=INTERNAL\n"
    )
    with listening() as port:
        there = config(ENFORCING + layout.format(port=port) + others + protocols)
        assert list(check_upstreams(there)) == []
    with free_port() as port:
        gone = config(ENFORCING + layout.format(port=port) + others + protocols)
        (found,) = check_upstreams(gone)

    assert found.weight is Weight.PROBLEM
    assert f"CLIENT: the broker does not answer at 127.0.0.1:{port}" in found.sentence


def test_a_port_that_is_free(tmp_path: Path) -> None:
    with free_port() as port:
        assert list(check_ports(fronted(tmp_path, f"brimline.gateway.listeners=CLIENT://127.0.0.1:{port}\n"))) == []
        assert list(check_ports(fronted(tmp_path, f"brimline.gateway.listeners=CLIENT://:{port}\n"))) == []


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    found = list(check_ports(fronted(tmp_path, f"brimline.gateway.listeners=CLIENT://192.0.2.1:9092\n{ENFORCING}")))

    assert said(found, "not an address of this machine") is Weight.PROBLEM


def test_a_gateway_that_does_not_run(tmp_path: Path) -> None:
    assert said(check_gateway(fronted(tmp_path), nobody), "no gateway is running") is Weight.PROBLEM
    assert said(check_gateway(fronted(tmp_path, ""), nobody), "no gateway is running") is Weight.WARNING


def test_a_gateway_that_we_may_not_speak_to(tmp_path: Path) -> None:
    (finding,) = check_gateway(fronted(tmp_path), lambda: nobody(FailureKind.NOT_AUTHORIZED))

    assert finding.weight is Weight.NOTE


def test_a_gateway_that_runs_as_the_file_says(tmp_path: Path) -> None:
    (finding,) = check_gateway(fronted(tmp_path), running)

    assert finding.weight is Weight.FINE
    assert "process 4711), 7 connections" in finding.sentence


@pytest.mark.parametrize(
    ("state", "words", "weight"),
    [
        (running(enforcement="observe"), "enforcement is observe", Weight.PROBLEM),
        (running(rejectError=44), "send it SIGHUP", Weight.WARNING),
        (running(listeners=[]), "CLIENT: the running gateway does not serve it", Weight.PROBLEM),
    ],
)
def test_a_gateway_that_runs_otherwise(state: GatewayState, words: str, weight: Weight, tmp_path: Path) -> None:
    assert said(check_gateway(fronted(tmp_path), lambda: state), words) is weight


def test_a_key_store_that_cannot_be_opened(tmp_path: Path) -> None:
    broker = FRONTED.replace("SASL_PLAINTEXT", "SSL")

    unnamed = list(check_key_stores(fronted(tmp_path, ENFORCING, broker)))
    absent = list(check_key_stores(fronted(tmp_path, f"ssl.keystore.location={tmp_path}/no\n{ENFORCING}", broker)))

    assert said(unnamed, "no key store is named") is Weight.PROBLEM
    assert said(absent, "cannot be read: No such file") is Weight.PROBLEM


def test_what_is_not_honoured_is_named(tmp_path: Path) -> None:
    settings = "ssl.cipher.suites=TLS_AES_128_GCM_SHA256\nbrimline.gateway.security.protocol.map=CLIENT:SASL_SSL\n"
    store = tmp_path / "store.pem"
    store.write_text(BROKER.private_key() + BROKER.chain)

    found = list(
        check_key_stores(fronted(tmp_path, f"ssl.keystore.type=PEM\nssl.keystore.location={store}\n{settings}"))
    )

    assert said(found, "clients see the broker's own certificate") is Weight.FINE
    assert said(found, "ssl.cipher.suites") is Weight.WARNING


def findings_with_broker(folder: Path, shows: Issued) -> list[Finding]:
    with broker_that_shows(shows) as port:
        return list(check_key_stores(with_store(folder, port)))


def test_a_broker_that_shows_what_its_key_store_holds(tmp_path: Path) -> None:
    assert said(findings_with_broker(tmp_path, BROKER), "shows the certificate in its key store") is Weight.FINE


def test_a_broker_that_has_not_read_its_renewed_key_store(tmp_path: Path) -> None:
    assert said(findings_with_broker(tmp_path, OTHER), "has not read the renewed store") is Weight.WARNING


def test_a_broker_that_does_not_answer_is_said_elsewhere(tmp_path: Path) -> None:
    with free_port() as port:
        found = list(check_key_stores(with_store(tmp_path, port)))

    assert [finding.weight for finding in found] == [Weight.FINE]

"""Wrong addresses and wrong protocols: one clear sentence, exit code 1, no traceback."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import brimline

VOLUMES = (VolumeSpec(size=Bytes(64 << 20)),)


def refused(server: str, *options: str) -> str:
    """The one sentence that the command leaves on standard error."""
    shown = brimline("log-dirs", "--bootstrap-server", server, "--describe", "--timeout", "5", *options)
    assert shown.returncode == 1
    assert shown.stdout == ""
    (sentence,) = shown.stderr.splitlines()
    assert sentence.startswith("brimline: ")
    return sentence


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """A server on loopback that is not a Kafka: it says ``answer``, or nothing at all, to everyone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                accepted.append(connection)
                if answer is not None:
                    connection.recv(4096)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=10)
            for connection in accepted:
                connection.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_an_unknown_host() -> None:
    assert "cannot be resolved" in refused("no-such-host.invalid:9092")


def test_a_closed_port() -> None:
    port = free_port()

    assert f"127.0.0.1:{port} refused the connection" in refused(f"127.0.0.1:{port}")


def test_a_web_server() -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        assert "not Kafka's protocol" in refused(server)


def test_a_server_that_never_answers() -> None:
    with listening(None) as server:
        assert "did not answer in time" in refused(server)


def test_malformed_properties(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\nclient.id=\\u12zz\n")

    sentence = refused("127.0.0.1:9092", "--command-config", str(config))

    assert str(config) in sentence
    assert "2" in sentence


def test_a_properties_file_that_is_not_there(tmp_path: Path) -> None:
    assert "nowhere" in refused("127.0.0.1:9092", "--command-config", str(tmp_path / "nowhere"))


@pytest.mark.integration
def test_tls_to_a_plaintext_listener_and_the_other_way_round() -> None:
    with Sandbox(SandboxSpec(volumes=VOLUMES, security=SecuritySpec(protocol="SSL"))) as sandbox:
        tls_to_plaintext = refused(sandbox.admin_servers, "--command-property", "security.protocol=SSL")
        plaintext_to_tls = refused(sandbox.bootstrap_servers)

    assert "does not speak TLS" in tls_to_plaintext
    # A broker may send its alert before it closes, or not.
    assert re.search("may want SASL or TLS|if it is a TLS listener", plaintext_to_tls)


@pytest.mark.integration
def test_plaintext_to_a_sasl_listener() -> None:
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"operator": "secret"})
    with Sandbox(SandboxSpec(volumes=VOLUMES, security=security)) as sandbox:
        assert "SASL" in refused(sandbox.bootstrap_servers)

"""Wrong addresses and things that are no Kafka: one clear sentence, exit code 1, no traceback."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.integration.cluster import brimline
from tests.waiting import PATIENCE_SECONDS


def refused(server: str, *options: str, timeout: float = PATIENCE_SECONDS / 2) -> str:
    """The one sentence that the command leaves on standard error."""
    shown = brimline("log-dirs", "--bootstrap-server", server, "--describe", "--timeout", str(timeout), *options)
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
                    with suppress(OSError):  # who asked may have gone
                        connection.recv(4096)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_SECONDS)
            for connection in accepted:
                connection.close()


def test_an_unknown_host() -> None:
    assert "cannot be resolved" in refused("no-such-host.invalid:9092")


def test_a_closed_port() -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{nobody_listens.getsockname()[1]}"

        assert f"{server} refused the connection" in refused(server)


def test_a_web_server() -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        assert "not Kafka's protocol" in refused(server)


def test_a_server_that_never_answers() -> None:
    with listening(None) as server:
        assert "did not answer in time" in refused(server, timeout=2)


def test_malformed_properties(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\nclient.id=\\u12zz\n")

    sentence = refused("127.0.0.1:9092", "--command-config", str(config))

    assert str(config) in sentence
    assert "2" in sentence


def test_a_properties_file_that_is_not_there(tmp_path: Path) -> None:
    assert "nowhere" in refused("127.0.0.1:9092", "--command-config", str(tmp_path / "nowhere"))

"""Under which names a guard is served: asked of the rule, and of a guard that runs."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import pytest

from brimline.guard.client import fetch_state
from brimline.guard.hosts import HostNames
from brimline.model import BrimlineError
from tests.guard.files import config
from tests.waiting import PATIENCE_SECONDS, eventually

FOREIGN = (
    "evil.example",
    "evil.example:9827",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "",
    ":",
    "[]",
    "a:b:c",
)
PLAIN = "listeners=A://broker-7.example:9092\nadvertised.listeners=A://kafka.example:9092\n"
PROTOCOLS = "listener.security.protocol.map=A:PLAINTEXT\ninter.broker.listener.name=A\n"
_SERVED = re.compile(r"http://127\.0\.0\.1:(\d+)/metrics")
OPEN, GUARDED = ("/metrics", "/healthz", "/readyz"), ("/", "/disk", "/v1/state", "/v1/history", "/v1/none")


def takes(host: str, added: str = "") -> bool:
    made = config(f"{PLAIN}{PROTOCOLS}brimline.metrics.host=guard-7\n{added}")
    return HostNames(lambda: made).takes(host)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:9827", "127.0.0.1", "[::1]:9827", "[::1]", "10.1.2.3:1", "[fe80::1%eth0]:9827", "localhost:9827"),
        *("LocalHost", "localhost.:9827", "broker-7.example:9827", "KAFKA.example.", "guard-7"),
    ],
)
def test_addresses_and_own_names_are_taken(host: str) -> None:
    assert takes(host)
    assert takes(f"{socket.gethostname()}:9827")


@pytest.mark.parametrize("host", FOREIGN)
def test_other_names_are_not(host: str) -> None:
    assert not takes(host)


def test_further_names_are_a_key() -> None:
    added = "brimline.http.hosts= a.example , Broker.Example.,\n"

    assert [takes(host, added) for host in ("a.example:1", "broker.example", "b.example", "")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_name_server_is_waited_for_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda: "seven.dc.example")
    made = config("")
    names = HostNames(lambda: made)

    eventually(lambda: names.takes("Seven.dc.example:9827"))


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a guard that runs."""
    (tmp_path / "log-dir").mkdir()
    (tmp_path / "server.properties").write_text(
        f"node.id=1\nlog.dirs={tmp_path / 'log-dir'}\nlisteners=PLAINTEXT://127.0.0.1:1\nbrimline.metrics.port=0\n"
        f"brimline.state.dir={tmp_path / 'state'}\n"
    )
    log = tmp_path / "log"
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "brimline.cli", "guard", "--config", str(tmp_path / "server.properties")]
        process = subprocess.Popen(command, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: _SERVED.findall(log.read_text()) or process.poll() is not None)
        (found,) = _SERVED.findall(log.read_text())
        yield int(found)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def status(port: int, path: str, host: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_guard_refuses_pages_under_a_foreign_name_and_no_scraper(port: int) -> None:
    seen = {path: status(port, path, "evil.example:9827") for path in (*OPEN, *GUARDED)}
    own = {path: status(port, path, f"127.0.0.1:{port}") for path in (*OPEN, *GUARDED)}

    assert seen == dict.fromkeys(OPEN, HTTPStatus.OK) | dict.fromkeys(GUARDED, HTTPStatus.FORBIDDEN)
    assert HTTPStatus.FORBIDDEN not in own.values()
    assert own["/v1/state"] == HTTPStatus.OK


def test_status_says_what_to_do(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = socket.getaddrinfo
    here = "127.0.0.1"
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest, **named: ask(here, *rest, **named))

    with pytest.raises(BrimlineError, match=r"brimline\.http\.hosts"):
        fetch_state(f"http://guard.example:{port}", PATIENCE_SECONDS)

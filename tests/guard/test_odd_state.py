"""Guard and gateway as processes, where the state dir becomes read-only and the log dir's cluster id is none."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.guard.client import fetch_state
from tests.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture
def properties(tmp_path: Path) -> Iterator[Path]:
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # nobody else's port, and the gateway may have it
    (tmp_path / "log-dir").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path / 'log-dir'}\nbrimline.state.dir={tmp_path / 'state'}\n"
        "listeners=CLIENT://127.0.0.1:1,ADMIN://127.0.0.1:2\n"
        f"advertised.listeners=CLIENT://127.0.0.1:{holder.getsockname()[1]},ADMIN://127.0.0.1:2\n"
        "listener.security.protocol.map=CLIENT:PLAINTEXT,ADMIN:PLAINTEXT\ninter.broker.listener.name=ADMIN\n"
        "brimline.metrics.port=0\nbrimline.log.format=json\n"
    )
    with holder:
        yield path


@contextmanager
def running(daemon: str, properties: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """In mounts of its own; with the guard's port."""
    log = properties.with_name("log")
    with log.open("wb") as stream:
        command = ["unshare", "--mount", sys.executable, "-m", "brimline.cli", daemon, "--config", str(properties)]
        process = subprocess.Popen(command, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: '"started"' in log.read_text() or process.poll() is not None)
        started = [json.loads(line) for line in log.read_text().splitlines() if '"started"' in line]
        assert started, log.read_text()
        yield process, started[0].get("port", 0)
    finally:
        process.kill()
        process.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("daemon", ["guard", "gateway"])
@pytest.mark.usefixtures("real_volumes")
def test_a_state_dir_that_became_read_only_is_no_failure_at_the_end(properties: Path, daemon: str) -> None:
    state = str(properties.with_name("state"))
    with running(daemon, properties) as (process, _):
        enter = ["nsenter", "--target", str(process.pid), "--mount", "mount", "--options", "bind,ro", state, state]
        subprocess.run(enter, check=True)
        left = list(Path(state).iterdir())
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_SECONDS) == 0, properties.with_name("log").read_text()
    assert left


@pytest.mark.parametrize("cluster_id", ["\\ud800", "\\u00e9" * 200])
def test_a_cluster_id_that_can_name_no_folder_is_a_sentence(properties: Path, cluster_id: str) -> None:
    landing = properties.with_name("landing")
    properties.write_text(f"{properties.read_text()}brimline.landing.uri={landing}\n")
    (properties.with_name("log-dir") / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster_id}\n")
    with running("guard", properties) as (_, port):
        address = f"http://127.0.0.1:{port}"

        def failure() -> str:
            landing = fetch_state(address, PATIENCE_SECONDS)[0].landing
            return "" if landing is None else landing.failure or ""

        eventually(failure)
        assert "cluster id" in failure()
    assert not landing.exists()

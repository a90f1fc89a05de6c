"""An object store that refuses, really asked by pyarrow and delta-rs over HTTP: one sentence from each."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from brimline.fleet.ingest.look import has_landed
from brimline.fleet.session.errors import FleetError
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.manifest import newest_files
from brimline.fleet.tables.show import TableLook, look_at

DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
SENTENCE = "S3 denied access: set AWS_ACCESS_KEY_ID"


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", str(len(DENIED)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(DENIED)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a store that knows the key of nobody."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        settings = {
            "AWS_ACCESS_KEY_ID": "stranger",
            "AWS_SECRET_ACCESS_KEY": "secret-of-a-stranger",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        yield address
        server.shutdown()


def test_a_landing_place(store: str) -> None:
    uri = f"s3://bucket/landing?endpoint_override={store}&scheme=http&region=us-east-1"

    with pytest.raises(FleetError, match=SENTENCE) as failed:
        has_landed(uri)
    assert "secret" not in str(failed.value)


@pytest.mark.usefixtures("store")
def test_a_warehouse() -> None:
    with pytest.raises(FleetError, match=SENTENCE):
        look_at("s3://bucket/warehouse", Table.FORECAST, TableLook())
    with pytest.raises(FleetError, match=SENTENCE):
        newest_files("s3://bucket/warehouse")


def test_a_machine_without_a_role_is_one_line(store: str) -> None:
    """Where machines ask for their role somebody answers, and refuses: delta-rs has a page to say about that."""
    metadata = dict.fromkeys(("AWS_METADATA_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT"), f"http://{store}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RUST_LOG"))}
    show = [sys.executable, "-m", "brimline.cli", "fleet", "show", "--warehouse", "s3://bucket/warehouse"]

    done = subprocess.run(show, env=environment | metadata, capture_output=True, text=True, check=False)

    (line,) = done.stderr.splitlines()
    assert SENTENCE in line
    assert done.returncode == 1

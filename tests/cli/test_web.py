"""``brimline web`` as a command: what it refuses to serve, and that it serves the rest until a signal."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.cli import main
from tests.waiting import PATIENCE_SECONDS

NOBODY = "http://127.0.0.1:1"
TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give --guard or --warehouse"),
        (["--guard", "broker1:9827"], "'broker1:9827' is not the address of a guard: write http://host:port"),
        (["--guard", "javascript:alert(1)"], "is not the address of a guard"),
        (["--guard", NOBODY, "--host", "0.0.0.0"], "--host 0.0.0.0 is not loopback: add --token-file"),
        (["--guard", NOBODY, "--token-file", "/nowhere"], "the token file /nowhere cannot be read"),
        (["--guard", NOBODY, "--port", "65536"], "'65536' is not a port"),
        (["--warehouse", "/nowhere"], "no table in /nowhere"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["web", *arguments]) == 1

    assert sentence in capsys.readouterr().err


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "brimline.cli", "web", "--guard", NOBODY, "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.match(r"(http://\S+)/ ", process.stdout.readline())
        assert found is not None
        yield found[1], process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        process.stdout.close()


def get(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE_SECONDS) as answer:
        text: str = answer.read().decode()
    return text


def test_it_serves_until_a_signal() -> None:
    with serving("--cluster", "orders") as (url, process):
        page = get(f"{url}/")
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_SECONDS)

    assert "<h1>orders</h1>" in page
    assert f"no guard answers at {NOBODY}" in page
    assert code == 0


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    with serving("--token-file", str(file)) as (url, _):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{url}/")
        page = get(f"{url}/", Authorization=f"Bearer {TOKEN}")

    assert "<h1>Cluster</h1>" in page

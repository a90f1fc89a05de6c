"""``brimline sandbox up`` as a person or a script runs it."""

import re
import signal
import subprocess
import sys

import pytest

from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration

# A test run in the background has its interrupts ignored, and would pass that on.
MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from brimline.cli import main
sys.exit(main())
"""


def up(*options: str, commands: str = "") -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "sandbox", "up", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(commands)
    process.stdin.close()
    return process


def read_until(process: "subprocess.Popen[str]", words: str) -> str:
    assert process.stdout is not None
    while words not in (line := process.stdout.readline()):
        assert line, f"it ended before it said {words}"
    return line


def end(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    rest = process.stdout.read() + process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    process.wait(timeout=PATIENCE_SECONDS)
    return rest


@pytest.mark.usefixtures("real_volumes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_a_piped_input_is_not_the_end_but_a_signal_is(number: signal.Signals) -> None:
    process = up("--volume", "64MiB", commands="fill 1 0 75%\n")
    filled = read_until(process, "usable,")

    assert "16.0 MiB of 64.0 MiB usable, 75.0 % used" in filled
    assert process.poll() is None
    process.send_signal(number)

    assert "sandbox removed" in end(process)
    assert process.returncode == 0


def test_quit_ends_it() -> None:
    process = up(commands="status\nquit\n")

    said = end(process)
    assert "brimline log-dirs --bootstrap-server" in said
    assert re.search(r"broker 1, --config   \S+/server.properties\n", said)
    assert process.returncode == 0


def test_an_impossible_cluster_is_one_sentence() -> None:
    process = up("--kafka-version", "3.2.3", "--log-dirs", "2")

    assert end(process).startswith("brimline: Kafka 3.2.3 in KRaft mode has one log dir")
    assert process.returncode == 1

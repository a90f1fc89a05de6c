"""Every command of README and of the start page is run as it is printed, on a real Kafka.

The pages are one terminal of a new user, in an empty home: their commands run one after the other, and one that both
pages have runs once. Names that stand for the reader's own (an address, a file) are replaced; what is installed comes
from the locked packages, not from the network.
"""

import os
import pty
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, produce
from tests.integration.guarded import ENDS_WITH_US, QUICK

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent.parent
PAGES = ("README.md", "docs/start.md")
BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
STAYS = re.compile(r"brimline (?:guard|gateway) ")
"""What runs until it is ended."""
DONE = (0, 3)
"""3 is "done, and look here": in the sandbox no gateway runs yet when ``doctor`` is asked."""
WORDS = re.compile(r"[A-Za-z]{3,}")
OF_THE_WRITER = {"srv", "kafka", "debug", "logs", "GiB", "brokers"}
"""Names, units and numbers in quoted output: the writer's cluster has two brokers."""
MARK = "@@ended@@"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volumes = (VolumeSpec(size=Bytes(128 << 20)),) * 2
    with Sandbox(SandboxSpec(volumes=volumes, fronted=True, properties={**QUICK})) as running:
        broker = running.broker(1)
        keys = {"brimline.state.dir": str(broker.node.home / "state"), "brimline.enforcement": "gateway"}
        broker.alter_properties({**keys, "brimline.metrics.port": str(running.reserve_ports(1)[0])})
        for topic in ("orders", "clicks"):
            create_topic(running, topic)
            produce(running, topic, 1)
        yield running


def test_every_command_works_and_prints_what_the_pages_quote(sandbox: Sandbox, tmp_path: Path) -> None:
    quotes = [quote for page in PAGES for quote in quoted(page)]
    commands = list(dict.fromkeys(command for command, _ in quotes))

    endings = dict(zip(commands, run_in_one_terminal(commands, sandbox, tmp_path), strict=True))

    failed = [f"{command}: {code}\n{said}" for command, (code, said) in endings.items() if code not in DONE]
    assert failed == []
    for command, output in quotes:
        _, said = endings[command]
        invented = set(WORDS.findall(output)) - set(WORDS.findall(said)) - OF_THE_WRITER
        assert invented == set(), f"{command} says\n{said}"


def quoted(page: str) -> list[tuple[str, str]]:
    """The page's commands, each with the output that is quoted below it."""
    found = []
    for kind, block in BLOCKS.findall((ROOT / page).read_text()):
        assert kind in ("console", "properties"), f"{page} has a block of {kind or 'no kind'}: is it run by a test?"
        if kind == "console":
            assert block.startswith("$ ")
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((command, output))
    assert found
    return found


def run_in_one_terminal(commands: list[str], sandbox: Sandbox, home: Path) -> list[tuple[int, str]]:
    """On the broker's host, so to speak. What stays runs in the background, from the moment it says that it started."""
    script = home / "commands.sh"
    lines: list[str] = []
    for command in (for_this_cluster(command, sandbox) for command in commands):
        if STAYS.search(command):
            log = home / f"{len(lines)}.log"
            lines.append(f"{' '.join(ENDS_WITH_US)} {command.partition('#')[0]} 2>{log} &\n")
            lines.append(f"until grep -q ' started ' {log} || ! kill -0 $!; do sleep 0.2; done; kill -0 $!\n")
        else:
            lines.append(f"{command}\n")
        lines.append(f"echo {MARK} $?\n")
    script.write_text("".join(lines))
    said = in_a_terminal(sandbox.inside(["bash", str(script)]), environment(home))
    parts = re.split(rf"{MARK} (\d+)\n", said)
    return [(int(code), text) for text, code in zip(parts[::2], parts[1::2], strict=False)]


def for_this_cluster(command: str, sandbox: Sandbox) -> str:
    config = sandbox.broker(1).node.server_properties
    (port,) = re.findall(r"^brimline.metrics.port=(\d+)$", sandbox.outside(config).read_text(), re.MULTILINE)
    for theirs, ours in {
        "broker-1:9092": sandbox.admin_servers,
        "/etc/kafka/server.properties": str(config),
        "brimline status": f"brimline status --url http://127.0.0.1:{port}",
    }.items():
        command = command.replace(theirs, ours)
    return command


def environment(home: Path) -> dict[str, str]:
    """An empty home. pip builds and finds what is needed in the locked environment: it need not ask a network."""
    locked = sysconfig.get_path("purelib")
    pip = {
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": locked,
    }
    path = f"{home}/brimline/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    shown = {"COLUMNS": "118", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    java = {key: os.environ[key] for key in ("JAVA_HOME",) if key in os.environ}
    return {"HOME": str(home), "PATH": path, **pip, **shown, **java}


def in_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """Tables are for terminals: in a pipe the stock tool's lines would come."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment, cwd=ROOT
    ) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:  # EIO: everybody has closed it
            while received := terminal.read(65536):
                said += received
        process.wait()
    return said.decode().replace("\r\n", "\n")

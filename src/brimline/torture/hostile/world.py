"""The place of the attack: a real broker with two log dirs, a real gateway before it, a fence on one of them.

Every topic has a twin that is reached without the gateway, so that both ways see the same past.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from brimline.model import BrimlineError, Bytes
from brimline.sandbox import Broker, Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.hostile.frames import CLEAR, FENCED, OTHER_WORDS, STILL
from brimline.torture.hostile.sides import Side

PARTITIONS = 2
INNOCENT = "innocent"
_VOLUME = Bytes(512 << 20)
_WAIT_SECONDS = 240.0
_BROKER = {
    # What a mutation names must not be made by naming it, and nobody has to wait for others.
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "600000",
}
_GATEWAY = {
    "disk.max.used.percent": "100",
    "disk.min.free.bytes": "0",
    # The rate limit is for clients that retry. Here it would only take time.
    "brimline.gateway.refusals.per.second": "1000000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    sandbox: Sandbox
    gateway: "subprocess.Popen[bytes]"
    log: Path
    through: Side
    past: Side

    @property
    def broker(self) -> Broker:
        return self.sandbox.broker(1)

    def fenced_files(self) -> dict[str, int]:
        """Every file of the fenced partitions, with its size."""
        return {
            f"{FENCED.word}-{partition}/{path.name}": path.stat().st_size
            for partition in range(PARTITIONS)
            for path in self.sandbox.outside(self.broker.log_dirs[1] / f"{FENCED.word}-{partition}").iterdir()
        }

    def dead(self) -> list[str]:
        """Who of those that must live does not."""
        found = [] if self.broker.is_running else [f"the broker is dead: {self.broker.complaint()}"]
        return found + ([] if self.gateway.poll() is None else [f"the gateway is dead: {self.log.read_text()[-2000:]}"])

    def resident_kib(self) -> tuple[int, int]:
        """The gateway's memory now, and its highest."""
        status = Path(f"/proc/{self.gateway.pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        return int(lines["VmRSS"].split()[0]), int(lines["VmHWM"].split()[0])


@contextmanager
def world(version: str, log: Path) -> Iterator[World]:
    volume = VolumeSpec(size=_VOLUME)
    spec = SandboxSpec(version=version, fronted=True, volumes=(volume, volume), properties=_BROKER)
    with Sandbox(spec) as sandbox:
        ids = _create_topics(sandbox)
        with gateway_before(sandbox, log, _GATEWAY) as gateway:
            _fence(sandbox)
            through, past = (_side(sandbox, ids, twin=twin) for twin in (False, True))
            yield World(sandbox=sandbox, gateway=gateway, log=log, through=through, past=past)


@contextmanager
def gateway_before(sandbox: Sandbox, log: Path, settings: Mapping[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A gateway before the one broker of a fronted sandbox, with these keys behind the broker's own."""
    own = sandbox.broker(1).node.server_properties
    state = own.with_name("brimline-state")
    sandbox.outside(state).mkdir(mode=0o700)
    always = {"brimline.enforcement": "gateway", "brimline.log.format": "json", "brimline.state.dir": str(state)}
    lines = "".join(f"{key}={value}\n" for key, value in {**always, **settings}.items())
    sandbox.outside(_config(sandbox)).write_text(sandbox.outside(own).read_text() + lines)
    with log.open("wb") as output:
        command = [sys.executable, "-m", "brimline.cli", "gateway", "--config", str(_config(sandbox))]
        gateway = subprocess.Popen(sandbox.inside(command), stdin=subprocess.DEVNULL, stderr=output)
    try:
        wait_until(lambda: b'"event": "started"' in log.read_bytes() or gateway.poll() is not None)
        if gateway.poll() is not None:
            raise BrimlineError(f"the gateway did not start: {log.read_text()}")
        yield gateway
    finally:
        gateway.terminate()
        try:
            gateway.wait(_WAIT_SECONDS)
        finally:
            gateway.kill()


def _config(sandbox: Sandbox) -> Path:
    return sandbox.broker(1).node.server_properties.with_name("gateway.properties")


def twin_of(word: str) -> str:
    return f"{word[:-1]}b"


def _side(sandbox: Sandbox, ids: Mapping[str, UUID], *, twin: bool) -> Side:
    host, _, port = (sandbox.direct_servers if twin else sandbox.bootstrap_servers).rpartition(":")
    topics = (FENCED, CLEAR, STILL)
    twins = {word.encode(): twin_of(word).encode() for word in (*(name.word for name in topics), *OTHER_WORDS)}
    names = {name.topic_id.bytes: ids[twin_of(name.word) if twin else name.word].bytes for name in topics}
    meanings = {other: word for word, other in twins.items()}
    for name in topics:
        meanings |= {ids[word].bytes: name.topic_id.bytes for word in (name.word, twin_of(name.word))}
    return Side(host=host, port=int(port), names={**names, **(twins if twin else {})}, meanings=meanings)


def _create_topics(sandbox: Sandbox) -> dict[str, UUID]:
    """All on the first log dir, but for the one that is fenced; one record in what is only read."""
    broker = sandbox.broker(1)
    words = [each for name in (FENCED, CLEAR, STILL) for each in (name.word, twin_of(name.word))] + [INNOCENT]
    places = {word: broker.log_dirs[word == FENCED.word] for word in words}
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    try:
        # A broker that is asked to move a partition which it does not have yet remembers the log dir.
        client.alter_replica_log_dirs(
            {(word, number, 1): str(place) for word, place in places.items() for number in range(PARTITIONS)}
        )
        client.create_topics([NewTopic(word, PARTITIONS, 1, topic_configs={"retention.ms": "-1"}) for word in words])
        folders = [sandbox.outside(places[word] / f"{word}-{n}") for word in words for n in range(PARTITIONS)]
        wait_until(lambda: all(folder.is_dir() for folder in folders))
        return {each["name"]: UUID(str(each["topic_id"])) for each in client.describe_topics(words)}
    finally:
        client.close()


def _fence(sandbox: Sandbox) -> None:
    asked = [
        "fence",
        "--config",
        str(_config(sandbox)),
        "--log-dir",
        str(sandbox.broker(1).log_dirs[1]),
        "--reason",
        "attack",
    ]
    done = subprocess.run(
        sandbox.inside([sys.executable, "-m", "brimline.cli", *asked]), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BrimlineError(f"no fence could be put up: {done.stderr}")


def wait_until(ready: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + _WAIT_SECONDS
    while not ready():
        if time.monotonic() > give_up_at:
            raise BrimlineError(f"not ready within {_WAIT_SECONDS:.0f} s")
        time.sleep(0.05)

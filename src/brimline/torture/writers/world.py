"""The place: a broker as Kafka ships it, on volumes of its own, with or without Brimline as it comes, and who looks on.

Brimline is told one thing: ``brimline.enforcement=gateway``. What it says of itself counts for nothing here: the volume
is asked by statvfs, the broker over its own listener, its log by reading it, the fence by producing.
"""

import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from brimline.model import BrimlineError, Bytes
from brimline.sandbox import Broker, Sandbox, SandboxSpec, SupervisedProcess, VolumeSpec
from brimline.sandbox.properties import render
from brimline.sandbox.spec import Filesystem
from brimline.torture.conformance.clients import RefusedSend, Written, writing
from brimline.torture.kafka_clients import kafka_admin
from brimline.torture.waiting import came_true

PROBE = "probe"
MIB = 1 << 20
GIB = 1 << 30
_HEAP = Bytes(GIB)
"""As Kafka's own start script has it."""
_LOOK_SECONDS = 0.1
_START_SECONDS = 120.0
_STORAGE_ERROR = 56
"""The code of a refusal by a full disk, and of a broker that has lost the log dir; only the first comes with a text."""
_TROUBLE = re.compile(
    r"No space left on device|KafkaStorageException|all log dirs have failed|java\.lang\.InternalError"
    r"|OutOfMemoryError|as uncleanable"
)
_MOST_TROUBLE = 20


class WritersFailed(BrimlineError):
    """The run could not be carried out; not a verdict."""


@dataclass(slots=True)
class Looked:
    """What was seen of the volume that fills. Written by one thread, read by others."""

    lowest_bytes: int = 1 << 62
    lowest_inodes: int = 1 << 62
    bytes_free: int = 1 << 62
    inodes_free: int = 1 << 62
    fenced_at: float | None = None
    """By the clock of the process: when the probe was first refused."""
    broker_ended_at: float | None = None
    trouble: list[str] = field(default_factory=list)
    """Lines of brokers' logs, with the broker's name before them."""


class WritersWorld:
    """``victim``: the broker whose disk fills. ``log_dir``: where, as the broker names it."""

    def __init__(
        self, sandbox: Sandbox, victim: Broker, log_dir: Path, brimline: Mapping[str, SupervisedProcess]
    ) -> None:
        self.sandbox = sandbox
        self.victim = victim
        self.log_dir = log_dir
        self.brimline = brimline
        self.looked = Looked()
        self._probe: Written | None = None

    @property
    def servers(self) -> str:
        """Where clients are told to connect: the gateways, where there are some."""
        return self.sandbox.bootstrap_servers

    @property
    def volume(self) -> Path:
        """The root of the volume that fills, as this process finds it."""
        return self.sandbox.outside(self.log_dir.parent)

    @property
    def lives(self) -> bool:
        return all(broker.is_running for broker in self.sandbox.brokers)

    @property
    def probed(self) -> Written:
        assert self._probe is not None
        return self._probe

    def ended(self) -> list[str]:
        """Gateways and guards that are gone."""
        return [
            f"{name} ended: {each.complaint()[-500:]}" for name, each in self.brimline.items() if not each.is_running
        ]

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """Over the brokers' own listener, past any gateway."""
        running = [broker.admin_address for broker in self.sandbox.brokers if broker.is_running]
        if not running:
            raise WritersFailed("no broker runs")
        with kafka_admin(",".join(running)) as client:
            yield client

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replicas: Collection[Collection[int]] | None = None,
        log_dir: Path | None = None,
        **config: str,
    ) -> None:
        """On the victim, or where ``replicas`` says; ``log_dir`` is the victim's. ``_`` in a key stands for a dot."""
        placed = replicas or [[self.victim.broker_id]] * partitions
        mine = [n for n, brokers in enumerate(placed) if self.victim.broker_id in brokers]
        configs = {key.replace("_", "."): value for key, value in config.items()}
        with self.admin() as client:
            # A broker that is asked to move a partition which it does not have yet remembers the log dir.
            client.alter_replica_log_dirs(
                {(name, n, self.victim.broker_id): str(log_dir or self.log_dir) for n in mine}
            )
            assigned = dict(enumerate(map(list, placed)))
            client.create_topics([NewTopic(name, replica_assignments=assigned, topic_configs=configs)])

    def delete_topics(self, *names: str) -> None:
        with self.admin() as client:
            client.delete_topics(list(names))

    def offline(self) -> list[str]:
        """Log dirs that a living broker says it has lost."""
        if not any(broker.is_running for broker in self.sandbox.brokers):
            return []
        try:
            with self.admin() as client:
                answers = client.describe_log_dirs(brokers=[b.broker_id for b in self.sandbox.brokers if b.is_running])
        except (KafkaError, WritersFailed) as error:
            return [f"no answer to DescribeLogDirs: {error}"]
        return [
            f"{each['log_dir']} (error {each['error_code']})"
            for answer in answers
            for each in (answer.get("log_dirs") or answer["results"])
            if each["error_code"]
        ]

    def looks(self) -> None:
        """Once."""
        seen = self.looked
        status = os.statvfs(self.volume)
        seen.bytes_free, seen.inodes_free = status.f_bavail * status.f_frsize, status.f_favail
        seen.lowest_bytes = min(seen.lowest_bytes, seen.bytes_free)
        seen.lowest_inodes = min(seen.lowest_inodes, seen.inodes_free)
        if seen.broker_ended_at is None and not self.lives:
            seen.broker_ended_at = time.monotonic()
        if seen.fenced_at is None and self._probe and is_refused(self._probe.refusals):
            seen.fenced_at = time.monotonic()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """The volume, the log of every broker and the fence, for as long as the block."""
        stop, logs = threading.Event(), [BrokerLog(self.sandbox, broker) for broker in self.sandbox.brokers]

        def look() -> None:
            while not stop.wait(_LOOK_SECONDS):
                self.looks()
                for log in logs:
                    self.looked.trouble += log.more()[: max(0, _MOST_TROUBLE - len(self.looked.trouble))]

        self.create_topic(PROBE)
        with writing(self.victim.address, PROBE, 0, per_second=4, size=100) as self._probe:
            if not came_true(lambda: self.probed.at, _START_SECONDS):
                raise WritersFailed(f"nothing can be produced: {self.probed.refusals}")
            self.probed.refusals.clear()  # of a topic that was only just made
            thread = threading.Thread(target=look)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()


def is_refused(refusals: Counter[RefusedSend]) -> bool:
    """Whether one of these was a fence: the code, with a text that says why."""
    return any(each.code == _STORAGE_ERROR and each.text for each in list(refusals))


class BrokerLog:
    """What was added to a broker's log, and to what it wrote to its standard output, since the last look."""

    def __init__(self, sandbox: Sandbox, broker: Broker) -> None:
        home = sandbox.outside(broker.node.home)
        self._name = broker.name
        self._files = [LogTail(home / "server.log"), LogTail(home / "stdio.log")]

    def more(self) -> list[str]:
        lines = (line for file in self._files for line in file.more())
        return [f"{self._name}: {line[:300]}" for line in troubles(lines)]


class LogTail:
    """A log that may be rolled: ``name`` becomes ``name.1``, and is read to its end there."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._inode, self._rest = path, 0, 0, b""

    def more(self) -> Iterator[str]:
        try:
            inode = self._path.stat().st_ino
        except OSError:
            return
        if self._inode not in (0, inode):
            yield from self._read(self._path.with_name(f"{self._path.name}.1"))
            self._at = 0
        self._inode = inode
        yield from self._read(self._path)

    def _read(self, path: Path) -> Iterator[str]:
        try:
            with path.open("rb") as file:
                file.seek(self._at)
                *lines, self._rest = (self._rest + file.read()).split(b"\n")
                self._at = file.tell()
        except OSError:
            return
        for line in lines:
            yield line.decode(errors="replace")


def troubles(lines: Collection[str] | Iterator[str]) -> list[str]:
    """What no log of a broker may say while its disk fills."""
    return [line for line in lines if _TROUBLE.search(line)]


@contextmanager
def writers_world(
    version: str,
    filesystem: Filesystem,
    size: Bytes,
    *,
    volumes: int,
    brokers: int,
    protected: bool,
    report: Callable[[str], None],
) -> Iterator[WritersWorld]:
    """It ends with the block and leaves nothing, however the block ends. What fills is the last volume of broker 1."""
    spec = SandboxSpec(
        version=version,
        brokers=brokers,
        fronted=protected,
        volumes=(VolumeSpec(size=size, filesystem=filesystem),) * volumes,
        kafka_defaults=True,
        heap=_HEAP,
        java_options=("-XX:TieredStopAtLevel=4",),
    )
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(spec, report))
        if not sandbox.has_real_volumes:
            raise WritersFailed("writers fill volumes, and there are no private mounts here for small ones")
        processes: dict[str, SupervisedProcess] = {}
        if protected:
            for broker in sandbox.brokers:
                processes |= _brimline(sandbox, broker)
        victim = sandbox.broker(1)
        world = WritersWorld(sandbox, victim, victim.log_dirs[-1], processes)
        stack.enter_context(world.watched())
        yield world


def _brimline(sandbox: Sandbox, broker: Broker) -> dict[str, SupervisedProcess]:
    """As it comes; only ports and folders are its own, because several run on this machine."""
    home, number = broker.node.home, broker.broker_id
    sandbox.outside(home / "state").mkdir(mode=0o700)
    ours = {
        "brimline.enforcement": "gateway",
        "brimline.log.format": "json",
        "brimline.metrics.port": "0",
        "brimline.state.dir": str(home / "state"),
    }
    config = home / "brimline.properties"
    sandbox.outside(config).write_text(render({**broker.properties, **ours}))
    started = {}
    for part in ("gateway", "guard"):
        command = [sys.executable, "-m", "brimline.cli", part, "--config", str(config)]
        process = sandbox.process(f"{part}-{number}", command, home)
        process.launch()
        log = sandbox.outside(process.output)
        came_true(lambda log=log, process=process: _has_started(log) or not process.is_running, _START_SECONDS)  # type: ignore[misc]
        if not process.is_running:
            raise WritersFailed(f"{process.name} does not start: {process.complaint()[-2000:]}")
        started[process.name] = process
    return started


def _has_started(log: Path) -> bool:
    return log.is_file() and '"event": "started"' in log.read_text(errors="replace")

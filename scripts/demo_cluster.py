"""A cluster of the demo: a sandbox, what is produced to it, what runs beside its broker, and how full its disks are."""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import confluent_kafka
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic, OffsetSpec
from kafka.errors import KafkaError
from rich.text import Text

from brimline.sandbox import Sandbox, SandboxError, SandboxSpec, SupervisedProcess
from scripts.demo_producer import RECORD_BYTES
from scripts.demo_stage import PATIENCE_SECONDS, Disk, Seen, Stage, Unsettled

BRIMLINE = Path(sys.executable).with_name("brimline")


class Producer:
    """A client that does not stop; it outlives a broker that dies under it, and ends with us."""

    def __init__(self, servers: str, topic: str, a_second: int) -> None:
        command = [sys.executable, "-m", "scripts.demo_producer", servers, topic, str(a_second)]
        pipe = subprocess.PIPE
        # A session of its own: ctrl-C is ours to handle.
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self.acknowledged = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.acknowledged = int(line)

    def finish(self) -> int:
        """No more records; waits for what is under way, and returns how many were acknowledged."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.write("\n")
            self._process.stdin.close()
            self._process.wait(PATIENCE_SECONDS)
            self._reader.join()
        return self.acknowledged

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Cluster:
    def __init__(self, title: str, spec: SandboxSpec) -> None:
        self.title = title
        self.sandbox = Sandbox(spec)
        self.producers: dict[str, Producer] = {}
        self.processes: dict[str, SupervisedProcess] = {}
        self.guard = ""
        """Where the guard serves."""
        self._seen = Seen(title=title, disks=(), facts={})

    def close(self) -> None:
        for producer in self.producers.values():
            producer.kill()
        with suppress(SandboxError):
            if not self.sandbox.has_real_volumes:  # a snapshot that is under way would outlive the folder
                for process in self.processes.values():
                    process.stop()
        self.sandbox.close()

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        return self.sandbox.broker(1).log_dirs

    def usage(self, log_dir: Path) -> tuple[int, int]:
        """Total and usable bytes of the disk under it."""
        status = os.statvfs(self.sandbox.outside(log_dir))
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize

    def used_percent(self, log_dir: Path) -> float:
        total, usable = self.usage(log_dir)
        return 100 * (1 - usable / total)

    def level(self, log_dir: Path) -> str:
        """In a plain folder a percentage says nothing: the disk is large."""
        _, usable = self.usage(log_dir)
        return f"{self.used_percent(log_dir):5.1f} %" if self.is_short else f"{usable >> 20:,} MiB left"

    @property
    def is_short(self) -> bool:
        return len(str(self.log_dirs[0])) < 12

    # What is in it

    def create(self, topics: Mapping[str, tuple[Path, Mapping[str, str]]]) -> None:
        """Topics of one partition, each with its log dir and its configuration."""
        client = KafkaAdminClient(bootstrap_servers=self.sandbox.admin_servers)
        # A broker that is asked to move a partition which it does not have yet says so, and remembers the log dir.
        client.alter_replica_log_dirs({(topic, 0, 1): str(place) for topic, (place, _) in topics.items()})
        client.create_topics([NewTopic(topic, 1, 1, topic_configs=dict(of)) for topic, (_, of) in topics.items()])
        client.close()

    def write(self, topic: str, megabytes: int, *, days_old: int = 0) -> None:
        """By the listener that no gateway stands before."""
        made = int((time.time() - days_old * 86_400) * 1000)
        producer = confluent_kafka.Producer({"bootstrap.servers": self.sandbox.admin_servers})
        for number in range(megabytes * 1_000_000 // RECORD_BYTES):
            producer.produce(topic, b"x" * RECORD_BYTES, partition=0, timestamp=made + number)
        producer.flush()

    def produce(self, topic: str, a_second: int) -> Producer:
        self.producers[topic] = Producer(self.sandbox.bootstrap_servers, topic, a_second)
        return self.producers[topic]

    def refusal(self, topic: str) -> str:
        """What a client is told that does not try again."""
        producer = KafkaProducer(bootstrap_servers=self.sandbox.bootstrap_servers, retries=0, enable_idempotence=False)
        try:
            producer.send(topic, b"one more", partition=0).get(timeout=30)
        except KafkaError as refused:
            return str(refused)
        finally:
            producer.close()
        raise Unsettled("a full disk took a record")

    def read(self, topic: str) -> int:
        """How many records a reader gets, from the beginning to the end; they must be numbered from 0 in order."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.sandbox.bootstrap_servers, "group.id": "demo"})
        place, found = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING), 0
        try:
            consumer.assign([place])
            _, end = consumer.get_watermark_offsets(place)
            while found < end:
                for record in consumer.consume(500, timeout=1):
                    if record.error() or int(record.value() or b"") != found:
                        raise Unsettled(f"record {found} of {topic} is {record.error() or record.value()!r}")
                    found += 1
        finally:
            consumer.close()
        return found

    def log_starts(self, topics: Iterable[str]) -> dict[str, int]:
        client = KafkaAdminClient(bootstrap_servers=self.sandbox.admin_servers)
        found = client.list_partition_offsets({TopicPartition(topic, 0): OffsetSpec.EARLIEST for topic in topics})
        client.close()
        return {partition.topic: offset.offset for partition, offset in found.items()}

    def set_topic(self, topic: str, **settings: str) -> None:
        client = KafkaAdminClient(bootstrap_servers=self.sandbox.admin_servers)
        named = {key.replace("_", "."): value for key, value in settings.items()}
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, named)])
        client.close()

    def log_bytes(self, topic: str) -> int:
        folders = (self.sandbox.outside(log_dir) / f"{topic}-0" for log_dir in self.log_dirs)
        return sum(_size(file) for folder in folders for file in folder.glob("*.log"))

    def remote_bytes(self, topic: str) -> int:
        place = self.sandbox.outside(self.sandbox.tiered_dir)
        return sum(_size(file) for file in place.glob(f"{topic}-0-*/*.log"))

    # Brimline beside it

    @property
    def config(self) -> Path:
        return self.sandbox.broker(1).node.server_properties

    @property
    def base(self) -> Path:
        return self.config.parent.parent

    def launch(self, stage: Stage, *arguments: str) -> None:
        """On the broker's host, so to speak; it ends with the cluster."""
        stage.say(f"$ brimline {shlex.join(arguments)}")
        command = [str(BRIMLINE), *arguments]
        self.processes[arguments[0]] = self.sandbox.process(arguments[0], command, self.config.parent)
        self.processes[arguments[0]].launch()

    def address_of(self, stage: Stage, *arguments: str) -> str:
        """Launches it too, and waits until it says where it serves."""
        self.launch(stage, *arguments)
        output = self.sandbox.outside(self.processes[arguments[0]].output)
        found: list[str] = []

        def serves() -> bool:
            found.extend(re.findall(r"http://[^/\s]+", output.read_text(errors="replace")))
            return bool(found)

        stage.wait_for(serves, f"brimline {arguments[0]} serves")
        return found[0]

    def serve(self, stage: Stage) -> None:
        self.launch(stage, "gateway", "--config", str(self.config))
        self.guard = self.address_of(stage, "guard", "--config", str(self.config))

    def run(self, stage: Stage, *arguments: str) -> None:
        """A command that takes a while, with what it says meanwhile.

        Not in the PID namespace of the cluster, where Spark cannot hand over Arrow.
        """
        stage.say(f"$ brimline {shlex.join(arguments)}")
        # It ends with us, however we do.
        command = self.sandbox.inside(["setpriv", "--pdeathsig", "TERM", str(BRIMLINE), *arguments])
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(
            command, stdin=none, stdout=none, stderr=pipe, text=True, start_new_session=True
        ) as process:
            assert process.stderr is not None
            lines: SimpleQueue[str] = SimpleQueue()
            reader = threading.Thread(target=_pass_on, args=(process.stderr, lines), daemon=True)
            reader.start()
            said: list[str] = []

            def has_ended() -> bool:
                is_over = process.poll() is not None and not reader.is_alive()
                while not lines.empty():
                    said.append(lines.get())
                    stage.say(f"  {said[-1]}", "dim")
                return is_over

            try:
                stage.wait_for(has_ended, f"brimline {arguments[0]} ends")
            finally:
                process.terminate()
            if process.returncode != 0:
                raise Unsettled(f"brimline {arguments[0]} ended with {process.returncode}: {' '.join(said)}")

    def ask(self, stage: Stage, *arguments: str) -> Any:
        """What a command answers to programs, run as it is printed."""
        arguments = (*arguments, "--output", "json")
        stage.say(f"$ brimline {shlex.join(arguments)}")
        command = self.sandbox.inside([str(BRIMLINE), *arguments])
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 3):  # 3: something needs attention, such as a full disk
            raise Unsettled(f"brimline {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    @property
    def snapshots(self) -> int:
        """How many the guard has put down."""
        return sum(1 for _ in self.sandbox.outside(self.base / "landing").rglob("*.parquet"))

    def state(self) -> Any:
        with urllib.request.urlopen(f"{self.guard}/v1/state", timeout=30) as answer:
            return json.loads(answer.read())

    def metric(self, name: str, topic: str) -> float | None:
        with urllib.request.urlopen(f"{self.guard}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = re.search(rf'^{name}{{[^}}]*topic="{topic}"[^}}]*}} (\S+)', text, re.MULTILINE)
        return float(found[1]) if found else None

    @property
    def is_fenced(self) -> bool:
        gateway = self.state()["gateway"]
        return bool(gateway and gateway["state"] and gateway["state"]["fences"])

    # What is seen of it

    def look(self) -> Seen:
        """As it is, or as it was when it ended."""
        with suppress(OSError, SandboxError):
            self._seen = self._look()
        return self._seen

    def _look(self) -> Seen:
        broker = self.sandbox.broker(1)
        is_fenced = bool(self.guard) and self.is_fenced
        dead = Text(f"ended, exit code {broker.exit_code}", "bold red")
        facts = {"broker": Text("alive", "green") if broker.is_running else dead}
        for number, (topic, producer) in enumerate(self.producers.items()):
            is_refused = is_fenced and number == 0
            facts[topic] = Text(f"{producer.acknowledged:,} stored") + Text(
                " · refused" if is_refused else "", "bold red"
            )
        return Seen(
            title=self.title,
            disks=[
                Disk(
                    name=str(log_dir) if self.is_short else "disk",
                    percent=self.used_percent(log_dir),
                    text=self.level(log_dir),
                    style="red" if self.used_percent(log_dir) >= 80 else "green",
                )
                for log_dir in self.log_dirs
            ],
            facts=facts,
        )


def _pass_on(pipe: IO[str], lines: "SimpleQueue[str]") -> None:
    for line in pipe:
        lines.put(line.rstrip())


def _size(file: Path) -> int:
    """The broker may delete it while we count."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0

"""What refusing offset commits does to a cluster of three brokers with one full disk. It takes six minutes.

``python -m bench.commits_cluster``: bytes a minute of all logs of ``__consumer_offsets``, and what committers are
answered: with room, past the line with the key off, and with it on.
"""

import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.admin import NewTopic

from bench.commits import LIMITS, LINE, OFFSETS, PARTITIONS, SETTLED, TOPIC
from brimline.decide.commits import OffsetsTopic
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic
from tests.integration.full_disks import MIB, NEVER_LATE
from tests.integration.gatewayed import gateway, state_dir
from tests.integration.guarded import guard
from tests.integration.kafka_clients import kafka_admin
from tests.waiting import eventually

PAST_LINE = Bytes(26 * MIB)
"""Of 32 MiB that are the line: commits may go on for a while."""


class Committer:
    """A group that commits twice a second, with metadata. ``counts``: what it was answered."""

    def __init__(self, servers: str, group: str) -> None:
        self.counts: Counter[str] = Counter()
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        for number in range(1 << 30):
            if self._stop.wait(0.5):
                return
            try:
                offsets = [TopicPartition(TOPIC, each, number, "m" * 1000) for each in range(PARTITIONS)]
                self._consumer.commit(offsets=offsets, asynchronous=False)
                self.counts["stored"] += 1
            except KafkaException as error:
                self.counts[error.args[0].name()] += 1


def main() -> None:
    """Broker 1 is full, and follows two thirds of the partitions of ``__consumer_offsets``."""
    disk, offsets = VolumeSpec(size=Bytes(192 * MIB)), OffsetsTopic(partitions=PARTITIONS)
    properties = {**NEVER_LATE, "offsets.topic.num.partitions": str(PARTITIONS)}
    names = [
        next(f"group-{n}" for n in range(1000) if offsets.partition_of(f"group-{n}") == wanted)
        for wanted in range(PARTITIONS)
    ]
    with (
        tempfile.TemporaryDirectory() as logs,
        Sandbox(SandboxSpec(brokers=3, volumes=(disk,), fronted=True, properties=properties)) as sandbox,
        kafka_admin(sandbox.admin_servers) as admin,
    ):
        placed = {n: [(n + follower) % 3 + 1 for follower in range(3)] for n in range(PARTITIONS)}
        compact = {"cleanup.policy": "compact"}
        admin.create_topics([NewTopic(OFFSETS, replica_assignments=placed, topic_configs=compact)])
        create_topic(sandbox, TOPIC, PARTITIONS)
        victim = sandbox.broker(1).log_dirs[0]
        print("| | bytes a minute | answers |\n|---|---|---|", flush=True)
        for what, is_full, line in (("room", False, LINE), ("full, off", True, {}), ("full, on", True, LINE)):
            with ExitStack() as stack:
                for broker in (1, 2, 3):
                    keys = {**LIMITS, **line, "brimline.state.dir": str(state_dir(sandbox, broker))}
                    stack.enter_context(gateway(sandbox, Path(logs, f"gateway-{broker}"), keys, broker=broker))
                    stack.enter_context(guard(sandbox, Path(logs, f"guard-{broker}"), keys, broker=broker))
                committers = [Committer(sandbox.bootstrap_servers, name) for name in names]
                for each in committers:
                    stack.callback(each.close)
                for each in committers:
                    eventually(lambda each=each: each.counts["stored"] > 0)  # type: ignore[misc]
                if is_full:
                    filler = sandbox.outside(sandbox.fill(victim, leave_free=PAST_LINE))
                    stack.callback(filler.unlink)
                time.sleep(SETTLED)
                before = _offsets_bytes(sandbox)
                for each in committers:
                    each.counts.clear()
                time.sleep(60)
                grown = _offsets_bytes(sandbox) - before
                told: Counter[str] = sum((each.counts for each in committers), Counter())
                print(f"| {what} | {grown:,} | {dict(told)} |", flush=True)


def _offsets_bytes(sandbox: Sandbox) -> int:
    logs = [sandbox.outside(path).glob(f"{OFFSETS}-*/*.log") for each in sandbox.brokers for path in each.log_dirs]
    return sum(file.stat().st_size for found in logs for file in found)


if __name__ == "__main__":
    main()

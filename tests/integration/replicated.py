"""A topic with several replicas: a load on it, who is in sync, and what a consumer reads back."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError as ClientError

from brimline.sandbox import Sandbox
from tests.integration.cluster import PATIENCE_SECONDS, eventually
from tests.integration.full_disks import admin_client, end_offset


class Load:
    """Writes to all partitions, at a steady pace, and remembers what was acknowledged where."""

    def __init__(self, servers: str, topic: str, partitions: Iterable[int]) -> None:
        self._topic = topic
        self._partitions = tuple(partitions)
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5, "delivery.timeout.ms": 600_000}
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when everything that was sent is acknowledged."""
        self._ending.set()
        self._thread.join(PATIENCE_SECONDS)
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _run(self) -> None:
        number = 0
        while not self._ending.wait(0.02):
            for partition in self._partitions:
                for _ in range(5):
                    number += 1
                    value = number.to_bytes(8) + bytes(2000)
                    self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if error is not None or partition is None or offset is None or not isinstance(value, bytes):
            self.failures.append(str(error))
        else:
            self.acknowledged[partition, offset] = value[:8]


def described(client: KafkaAdminClient, topic: str, partition: int) -> dict[str, Any]:
    """The partition as the cluster's metadata has it."""
    (answer,) = client.describe_topics([topic])
    (found,) = (each for each in answer["partitions"] if each["partition_index"] == partition)
    return dict(found)


def in_sync(sandbox: Sandbox, topic: str, partition: int) -> set[int]:
    with admin_client(sandbox) as client:
        return set(described(client, topic, partition)["isr_nodes"])


class InSync:
    """Watches who is in sync, several times a second, until the end of the block."""

    def __init__(self, sandbox: Sandbox, topic: str, partition: int) -> None:
        self._sandbox = sandbox
        self._topic = topic
        self._partition = partition
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._has_seen_all = False
        self.looks = 0
        self.seen: set[frozenset[int]] = set()

    def __enter__(self) -> "InSync":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ending.set()
        self._thread.join(PATIENCE_SECONDS)
        assert kind is not None or self._has_seen_all, "nobody watched to the end"

    def _watch(self) -> None:
        with admin_client(self._sandbox) as client:
            while not self._ending.wait(0.2):
                with suppress(ClientError):  # a look that fails does not count, and the next one may succeed
                    self.seen.add(frozenset(described(client, self._topic, self._partition)["isr_nodes"]))
                    self.looks += 1
        self._has_seen_all = True


def read_back(sandbox: Sandbox, topic: str, partition: int) -> dict[tuple[int, int], bytes]:
    where = TopicPartition(topic, partition)
    end = end_offset(sandbox, topic, partition)
    consumer = KafkaConsumer(bootstrap_servers=sandbox.bootstrap_servers, enable_auto_commit=False)
    found: dict[tuple[int, int], bytes] = {}
    try:
        consumer.assign([where])
        consumer.seek_to_beginning(where)

        def is_read() -> bool:
            for records in consumer.poll(timeout_ms=500).values():
                found.update({(partition, record.offset): record.value[:8] for record in records})
            return bool(consumer.position(where) >= end)

        eventually(is_read)
    finally:
        consumer.close()
    return found

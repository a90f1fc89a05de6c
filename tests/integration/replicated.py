"""A topic with several replicas: a load on it, who is in sync, and what a consumer reads back."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError as ClientError

from brimline.sandbox import Sandbox
from tests.integration.full_disks import admin_client, end_offset
from tests.integration.kafka_clients import kafka_consumer, meanwhile
from tests.waiting import PATIENCE_SECONDS, eventually

_RECORD_BYTES = 2000
_RECORDS_AT_ONCE = 2
_MOST_UNANSWERED = 20_000


class Load:
    """Writes to all partitions and remembers what was acknowledged where: a start, then a slow and steady pace.

    The pace is a bound: a machine that is busy writes less. So disks that fill while a test waits fill slowly.
    """

    def __init__(self, servers: str, topic: str, partitions: Iterable[int], *, first_bytes: int = 3 << 19) -> None:
        """``first_bytes``: to each partition, at once."""
        self._topic = topic
        self._unanswered = dict.fromkeys(partitions, 0)
        self._first_records = first_bytes // _RECORD_BYTES
        self._number = 0
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5, "delivery.timeout.ms": 900_000}
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.acknowledged_somewhere: dict[int, set[bytes]] = {partition: set() for partition in self._unanswered}
        """Retries of what was stored already, whose answer was lost: the broker says so, and no offset with it."""
        self.failures: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when everything that was sent is acknowledged."""
        self._ending.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the load did not end"
        assert self._producer.flush(PATIENCE_SECONDS) == 0, "records were not acknowledged"

    def _run(self) -> None:
        self._send(self._first_records)
        while not self._ending.wait(0.02):
            self._send(_RECORDS_AT_ONCE)

    def _send(self, records: int) -> None:
        for partition, unanswered in self._unanswered.items():
            if unanswered > _MOST_UNANSWERED:
                continue  # it is refused for a while
            for _ in range(records):
                self._number += 1
                self._unanswered[partition] += 1
                value = self._number.to_bytes(8) + bytes(_RECORD_BYTES - 8)
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if error is not None or partition is None or not isinstance(value, bytes):
            self.failures.append(str(error))
            return
        self._unanswered[partition] -= 1
        if offset is None:
            self.acknowledged_somewhere[partition].add(value[:8])
        else:
            self.acknowledged[partition, offset] = value[:8]

    def verify(self, partition: int, stored: Mapping[tuple[int, int], bytes]) -> None:
        """What the log holds, from its start on, is what was acknowledged, where it was said to be."""
        log_start = min(offset for _, offset in stored)
        told = {where: value for where, value in self.acknowledged.items() if where[0] == partition}
        untold = {where: value for where, value in stored.items() if where not in told}
        assert {where: value for where, value in told.items() if where[1] >= log_start} == {
            where: value for where, value in stored.items() if where in told
        }
        assert set(untold.values()) <= self.acknowledged_somewhere[partition], "records that nobody was told of"
        assert len(set(untold.values())) == len(untold), "records that are stored twice"
        # Those that are missing may have been below the log start: nobody was told where they are.
        missing = self.acknowledged_somewhere[partition] - set(untold.values())
        assert log_start or not missing, "acknowledged records that are not stored"


def described(client: KafkaAdminClient, topic: str, partition: int) -> dict[str, Any]:
    """The partition as the cluster's metadata has it."""
    (answer,) = client.describe_topics([topic])
    (found,) = (each for each in answer["partitions"] if each["partition_index"] == partition)
    return dict(found)


def in_sync(sandbox: Sandbox, topic: str, partition: int) -> set[int]:
    with admin_client(sandbox) as client:
        return set(described(client, topic, partition)["isr_nodes"])


def wait_for_isr(sandbox: Sandbox, topic: str, wanted: Mapping[int, Iterable[int]]) -> None:
    """Partition → its replicas in sync."""
    sets = {partition: set(brokers) for partition, brokers in wanted.items()}
    with admin_client(sandbox) as client:

        def found() -> dict[int, set[int]]:
            with suppress(ClientError):  # it may be asked again
                return {partition: set(described(client, topic, partition)["isr_nodes"]) for partition in sets}
            return {}

        eventually(lambda: found() == sets)


class InSync:
    """Watches who is in sync, several times a second, until the end of the block."""

    def __init__(self, sandbox: Sandbox, topic: str, partition: int) -> None:
        self._sandbox = sandbox
        self._topic = topic
        self._partition = partition
        self._watching = ExitStack()
        self.looks = 0
        self.seen: set[frozenset[int]] = set()

    def __enter__(self) -> "InSync":
        self._watching.enter_context(meanwhile(self._watch))
        return self

    def __exit__(self, *error: Any) -> None:
        self._watching.__exit__(*error)

    def _watch(self, ending: threading.Event) -> None:
        while not ending.is_set():
            # A look that fails does not count. Whatever the client has against it, the next client has not.
            with suppress(ClientError, OSError), admin_client(self._sandbox) as client:
                while not ending.wait(0.2):
                    self.seen.add(frozenset(described(client, self._topic, self._partition)["isr_nodes"]))
                    self.looks += 1


def read_back(sandbox: Sandbox, topic: str, partition: int) -> dict[tuple[int, int], bytes]:
    where = TopicPartition(topic, partition)
    end = end_offset(sandbox, topic, partition)
    found: dict[tuple[int, int], bytes] = {}
    # Past the gateways: not every broker has one, and this client gives up when it happens to ask such a broker.
    with kafka_consumer(sandbox.admin_servers, enable_auto_commit=False) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)

        def position() -> int:
            for records in consumer.poll(timeout_ms=500).values():
                found.update({(partition, record.offset): record.value[:8] for record in records})
            return int(consumer.position(where))

        eventually(lambda: position() >= end)
    return found

"""What a partition really holds, read from the broker itself, never through a gateway: every record, nothing hidden."""

import time
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

from brimline.sandbox import Sandbox
from brimline.torture.kafka_clients import kafka_consumer

_PATIENCE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Stored:
    offset: int
    value: str


def read_back(sandbox: Sandbox, topic: str, partition: int, *, committed: bool = False) -> list[Stored]:
    """All records in the order of the log. ``committed``: without those of open and aborted transactions."""
    where = TopicPartition(topic, partition)
    stored: list[Stored] = []
    with kafka_consumer(
        sandbox.admin_servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        check_crcs=False,  # the broker did, and kafka-python takes a second for eight megabytes
        isolation_level="read_committed" if committed else "read_uncommitted",
    ) as consumer:
        consumer.assign([where])
        end = consumer.end_offsets([where])[where]
        consumer.seek_to_beginning(where)
        give_up_at = time.monotonic() + _PATIENCE_SECONDS
        while _read_on(consumer, where, stored) < end:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{topic}-{partition} cannot be read to its end at {end}")
    return stored


def _read_on(consumer: KafkaConsumer, where: TopicPartition, stored: list[Stored]) -> int:
    """Takes what has come; the offset it has reached."""
    for record in consumer.poll(timeout_ms=500).get(where, []):
        stored.append(Stored(record.offset, (record.value or b"").decode().rstrip()))
    position: int = consumer.position(where)
    return position

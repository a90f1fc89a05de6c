"""What a partition really holds, read from the broker itself, never through a gateway: every record, nothing hidden."""

from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

from brimline.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Stored:
    offset: int
    value: str


def read_back(sandbox: Sandbox, topic: str, partition: int, *, committed: bool = False) -> list[Stored]:
    """All records in the order of the log. ``committed``: without those of open and aborted transactions."""
    where = TopicPartition(topic, partition)
    consumer = KafkaConsumer(
        bootstrap_servers=sandbox.admin_servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed" if committed else "read_uncommitted",
    )
    try:
        consumer.assign([where])
        end = consumer.end_offsets([where])[where]
        consumer.seek_to_beginning(where)
        stored: list[Stored] = []
        while consumer.position(where) < end:
            for record in consumer.poll(timeout_ms=500).get(where, []):
                stored.append(Stored(record.offset, (record.value or b"").decode().rstrip()))
        return stored
    finally:
        consumer.close()

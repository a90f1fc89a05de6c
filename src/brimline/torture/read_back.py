"""What a broker's logs hold: where they begin and end, and every record.

Begin and end: ListOffsets, by hand, twice. Asked of one broker alone, over a connection of its own, with a time-out: a
client library would look for other brokers, wait for them, and remember leaders. A consumer is told only of what the
broker leads, and only up to where all replicas are; whoever debugs is told the very end, by followers too. So both are
asked, and what both are told counts.

Records are read from the broker itself, never through a gateway: every one, nothing hidden.
"""

import socket
import time
from collections.abc import Collection
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

from brimline.sandbox import Sandbox
from brimline.torture.kafka_clients import kafka_consumer
from brimline.wire.primitives import Reader, WireError, Writer

LOG_END, LOG_START = -1, -2
_LIST_OFFSETS, _VERSION = 2, 4
"""The version is the first that tells the leader's epoch, and older than tagged fields."""
_CONSUMER, _DEBUGGING = -1, -2
_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class LogOffset:
    topic: str
    partition: int
    offset: int
    leader_epoch: int


def log_offsets(port: int, partitions: Collection[tuple[str, int]], which: int) -> list[LogOffset] | None:
    """Of those partitions that this broker leads; ``None`` if it does not answer."""
    if not partitions:
        return []
    requests = [_request(partitions, which, replica) for replica in (_CONSUMER, _DEBUGGING)]
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT) as connection:
            connection.sendall(b"".join(len(request).to_bytes(4) + request for request in requests))
            with connection.makefile("rb") as answers:
                led, told = [_read(answers.read(int.from_bytes(answers.read(4)))) for _ in requests]
    except (OSError, WireError):
        return None
    is_led = {(each.topic, each.partition) for each in led}
    return [each for each in told if (each.topic, each.partition) in is_led]


def _request(partitions: Collection[tuple[str, int]], which: int, replica: int) -> bytes:
    writer = Writer(flexible=False)
    writer.int16(_LIST_OFFSETS)
    writer.int16(_VERSION)
    writer.int32(0)
    writer.string("torture")
    writer.int32(replica)
    writer.int8(0)
    topics = sorted({topic for topic, _ in partitions})
    writer.count(len(topics))
    for topic in topics:
        numbers = sorted(partition for name, partition in partitions if name == topic)
        writer.string(topic)
        writer.count(len(numbers))
        for number in numbers:
            writer.int32(number)
            writer.int32(-1)
            writer.int64(which)
    return writer.finish()


def _read(answer: bytes) -> list[LogOffset]:
    reader = Reader(answer, flexible=False)
    reader.int32()  # the correlation id
    reader.int32()  # how long the client is throttled
    found = []
    for _ in range(reader.count_not_null(smallest_element=6)):
        topic = reader.string()
        for _ in range(reader.count_not_null(smallest_element=26)):
            partition, error = reader.int32(), reader.int16()
            reader.int64()  # a timestamp
            offset, epoch = reader.int64(), reader.int32()
            if not error and offset >= 0:
                found.append(LogOffset(topic, partition, offset, epoch))
    return found


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

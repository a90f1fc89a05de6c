"""Where the logs that a broker leads begin and end: one ListOffsets request, by hand.

Asked of one broker alone, over a connection of its own, with a time-out: a client library would look for other brokers,
wait for them, and remember leaders. What the broker does not lead it answers with an error, and that is left out.
"""

import socket
from collections.abc import Collection
from dataclasses import dataclass

from brimline.wire.errors import WireError
from brimline.wire.primitives import Reader, Writer

LOG_END, LOG_START = -1, -2
_LIST_OFFSETS, _VERSION = 2, 4
"""The version is the first that tells the leader's epoch, and older than tagged fields."""
_DEBUGGING = -2
"""As this replica the log's very end is told, with what not all replicas have yet."""
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
    request = _request(partitions, which)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT) as connection:
            connection.sendall(len(request).to_bytes(4) + request)
            with connection.makefile("rb") as answers:
                size = int.from_bytes(answers.read(4))
                return _read(answers.read(size)) if size else None
    except (OSError, WireError):
        return None


def _request(partitions: Collection[tuple[str, int]], which: int) -> bytes:
    writer = Writer(flexible=False)
    writer.int16(_LIST_OFFSETS)
    writer.int16(_VERSION)
    writer.int32(0)
    writer.string("torture")
    writer.int32(_DEBUGGING)
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

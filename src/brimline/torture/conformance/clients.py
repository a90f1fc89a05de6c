"""What the conformance kit sees a system do: numbered records written and read back, byte by byte, nothing hidden.

No client library stands between: an error code, its text, silence and the end of a connection are told apart.
"""

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from struct import pack, unpack

from kafka import KafkaConsumer, TopicPartition
from kafka.protocol.producer import ProduceResponse

from brimline.torture.hostile.produce import Partition, PlainRequest, PlainTopic, batch, encoded_request

_VERSION = 9
"""Of Produce: topics by name, and a text with an error."""
_ANSWER_SECONDS = 5.0
_RETRY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RefusedSend:
    """How a record was not taken. Code 0: there was no answer, and ``text`` says what there was instead."""

    code: int
    text: str


@dataclass(slots=True)
class Written:
    """By one writer to one partition. Lists only grow, so that they may be read meanwhile."""

    acknowledged: list[int] = field(default_factory=list)
    """The offset of each record, by its number."""
    at: list[float] = field(default_factory=list)
    """…and when."""
    slowest: float = 0.0
    """Of all answers, in seconds."""
    refusals: Counter[RefusedSend] = field(default_factory=Counter)

    @property
    def wrongs(self) -> list[str]:
        """What should never happen to somebody whose disk has room, and who is alone in his partition."""
        told = [f"{count} times {refusal}" for refusal, count in self.refusals.items()]
        steps = [after - before for before, after in pairwise(self.acknowledged)]
        return told + ([] if set(steps) <= {1} else ["records are not stored once and in order"])

    def rate(self, since: float, until: float) -> float:
        """Acknowledged records per second."""
        return sum(since <= moment < until for moment in self.at) / (until - since)


@contextmanager
def writing(leader: str, topic: str, partition: int, *, per_second: float, size: int) -> Iterator[Written]:
    """One record after the other, each until it is acknowledged, as a patient client does."""
    written, stop = Written(), threading.Event()
    thread = threading.Thread(target=_write, args=(leader, topic, partition, per_second, size, written, stop))
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


def _write(
    leader: str, topic: str, partition: int, per_second: float, size: int, written: Written, stop: threading.Event
) -> None:
    due = time.monotonic()
    while not stop.is_set():
        with suppress(OSError), _connected(leader) as (connection, stream):
            while not stop.wait(max(0.0, due - time.monotonic())):
                due = max(due + 1 / per_second, time.monotonic() - 1)
                refusal = _write_once(connection, stream, topic, partition, size, written)
                if refusal is not None:
                    written.refusals[refusal] += 1
                    stop.wait(_RETRY_SECONDS)
                    if not refusal.code:
                        break
            continue
        stop.wait(_RETRY_SECONDS)


@contextmanager
def _connected(leader: str) -> "Iterator[tuple[socket.socket, socket.SocketIO]]":
    host, _, port = leader.rpartition(":")
    with socket.create_connection((host, int(port)), _ANSWER_SECONDS) as connection:
        yield connection, connection.makefile("rb", buffering=0)


def _write_once(
    connection: socket.socket, stream: socket.SocketIO, topic: str, partition: int, size: int, written: Written
) -> RefusedSend | None:
    value = b"%010d" % len(written.acknowledged) + b"x" * (size - 10)
    records = Partition(partition, batch(value=value))
    payload = encoded_request(PlainRequest(topics=[PlainTopic(topic, None, [records])]), _VERSION)
    began = time.monotonic()
    try:
        connection.sendall(pack(">i", len(payload)) + payload)
        answer = _exactly(stream, unpack(">i", _exactly(stream, 4))[0])
    except TimeoutError:
        return RefusedSend(0, f"no answer within {_ANSWER_SECONDS:.0f} s")
    except OSError:
        return RefusedSend(0, "the connection was ended")
    (answered,) = ProduceResponse.decode(answer, version=_VERSION, header=True).responses[0].partition_responses
    if answered.error_code:
        return RefusedSend(answered.error_code, answered.error_message or "")
    written.acknowledged.append(answered.base_offset)
    written.at.append(time.monotonic())
    written.slowest = max(written.slowest, written.at[-1] - began)
    return None


def _exactly(stream: socket.SocketIO, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = stream.read(size - len(received))
        if not more:
            raise ConnectionResetError
        received += more
    return received


def read_back(servers: str, topic: str, partition: int, first: int, end: int, seconds: float) -> dict[int, int]:
    """Offset → number of the record there, of the offsets before ``end``; what cannot be read in time is missing."""
    where = TopicPartition(topic, partition)
    found: dict[int, int] = {}
    consumer = KafkaConsumer(
        bootstrap_servers=servers, enable_auto_commit=False, check_crcs=False, bootstrap_timeout_ms=int(seconds * 1000)
    )
    try:
        consumer.assign([where])
        consumer.seek(where, first)
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at and max(found, default=first - 1) < end - 1:
            for record in consumer.poll(timeout_ms=500).get(where, ()):
                found[record.offset] = int(record.value[:10])
    finally:
        consumer.close()
    return found

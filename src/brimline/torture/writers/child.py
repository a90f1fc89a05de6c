"""A writer as a process of its own: ``python -m brimline.torture.writers.child KIND SERVERS NUMBER [ARGUMENT…]``.

It writes as fast as it may until its input ends, which is when whoever started it ends. Once a second it says how many
operations were acknowledged so far.
"""

import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from struct import pack, unpack, unpack_from

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, ShareConsumer, TopicPartition

from brimline.torture.hostile.produce import Partition, PlainRequest, PlainTopic, batch, encoded_request

COMMITTED_PARTITIONS = 200
MARKED_PARTITIONS = 200
_METADATA = "m" * 4000
_RECORD = 10_000
_REST_SECONDS = 0.1
_TRANSACTIONS = 20
"""Under way at once, of one process."""
_FRESH_IDS = 20
"""New transactional ids in each round, with names as long as these: each is a record of its own for a week."""
_LONG_NAME = 1000
_INIT_PRODUCER_ID, _ADD_PARTITIONS, _END_TXN, _FIND_COORDINATOR, _INCREMENTAL_ALTER_CONFIGS = 22, 24, 26, 10, 44
_GROUP_RESOURCE = 32
_NO_ERROR = 0

done = 0
"""Acknowledged operations: records, commits, transactions, producer ids."""


# By a client library --------------------------------------------------------------------------------------------------


def produce(servers: str, number: int, topic: str, partitions: str, keys: str) -> None:
    """Records of 10 kB; ``keys``: ``unique`` or ``none``."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 20,
            "batch.size": 900_000,
            "queue.buffering.max.kbytes": 65_536,
            "acks": "all",
            "message.timeout.ms": 3_600_000,
        }
    )

    def delivered(error: KafkaError | None, _: Message) -> None:
        global done
        done += error is None

    value, mine = os.urandom(_RECORD), f"{number}-{time.time()}"
    for each in count():
        key = f"{mine}-{each}" if keys == "unique" else None
        while True:
            try:
                producer.produce(topic, value, key, partition=each % int(partitions), on_delivery=delivered)
                break
            except BufferError:  # its queue is full
                producer.poll(_REST_SECONDS)
        producer.poll(0)


def commit(servers: str, number: int, topic: str) -> None:
    """Offsets of one group, with as much metadata as Kafka takes by default."""
    global done
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"writer-{number}", "enable.auto.commit": False})
    for each in count():
        offsets = [TopicPartition(topic, index, each, _METADATA) for index in range(COMMITTED_PARTITIONS)]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
            done += 1
        except KafkaException:
            time.sleep(_REST_SECONDS)


def share(servers: str, number: int, topic: str) -> None:
    """Share groups one after the other, each from the first record on; every acquired record is given back."""
    global done
    for each in count():
        group = f"share-{number}-{each}"
        _from_the_start(servers, group)
        consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group})
        consumer.subscribe([topic])
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                done += len(list(consumer.poll(timeout=1.0)))
            except KafkaException:
                time.sleep(_REST_SECONDS)
        consumer.close()


def _from_the_start(servers: str, group: str) -> None:
    settings = _text("share.auto.offset.reset") + b"\0" + _text("earliest")
    body = pack(">i", 1) + pack(">b", _GROUP_RESOURCE) + _text(group) + pack(">i", 1) + settings + b"\0"
    with _connected(servers) as ask:
        ask(_INCREMENTAL_ALTER_CONFIGS, body)


# Byte by byte: what no library does so often --------------------------------------------------------------------------


def transactions(servers: str, number: int, topic: str) -> None:
    """Transactions that write nothing but their state and a marker to each of many partitions; and ever new ids."""
    global done
    names = [f"writer-{number}-{each}" for each in range(_TRANSACTIONS)]
    partitions = b"".join(pack(">i", each) for each in range(MARKED_PARTITIONS))
    marked = pack(">i", 1) + _text(topic) + pack(">i", MARKED_PARTITIONS) + partitions
    with _connected(servers) as ask:
        for name in names:
            ask(_FIND_COORDINATOR, _text(name) + b"\1", version=1)
        producers = {name: _producer_id(ask, name) for name in names}
        for each in count():
            for name, producer in producers.items():
                added = ask(_ADD_PARTITIONS, _text(name) + producer + marked)
                if unpack_from(">h", added, len(added) - 2)[0] == _NO_ERROR:
                    ended = ask(_END_TXN, _text(name) + producer + b"\1")
                    done += unpack_from(">h", ended, 4)[0] == _NO_ERROR
            for fresh in range(_FRESH_IDS):
                name = f"fresh-{number}-{each}-{fresh}-{random.random()}".ljust(_LONG_NAME, "x")
                ask(_INIT_PRODUCER_ID, _text(name) + pack(">i", 60_000))


def _producer_id(ask: "Ask", name: str) -> bytes:
    """With its epoch, as both are asked for."""
    while True:
        answer = ask(_INIT_PRODUCER_ID, _text(name) + pack(">i", 60_000))
        if unpack_from(">h", answer, 4)[0] == _NO_ERROR:
            return answer[6:16]
        time.sleep(_REST_SECONDS)


def producer_ids(servers: str, number: int, topic: str) -> None:
    """Every request is the first of a producer id of its own."""
    global done
    first = number << 40 | int(time.time()) << 20
    with _connected(servers) as ask:
        for each in count(first):
            records = batch(producer_id=each, producer_epoch=0, base_sequence=0, value=b"x" * 100)
            payload = encoded_request(PlainRequest(topics=[PlainTopic(topic, None, [Partition(0, records)])]), 7)
            answer = ask.send(payload)
            (error,) = unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
            done += error == _NO_ERROR
            if error != _NO_ERROR:
                time.sleep(_REST_SECONDS)


class Ask:
    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._connection: socket.socket | None = None

    def __call__(self, api: int, body: bytes, version: int = 0) -> bytes:
        """What stands behind the correlation id of the answer."""
        return self.send(pack(">hhih", api, version, 7, -1) + body)[4:]

    def send(self, payload: bytes) -> bytes:
        """The answer with its correlation id. Tried again for ever: a broker or a gateway may be away."""
        while True:
            try:
                if self._connection is None:
                    host, _, port = self._servers.partition(",")[0].rpartition(":")
                    self._connection = socket.create_connection((host, int(port)), 30)
                self._connection.sendall(pack(">i", len(payload)) + payload)
                return self._exactly(unpack(">i", self._exactly(4))[0])
            except OSError:
                self.close()
                time.sleep(_REST_SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _exactly(self, size: int) -> bytes:
        assert self._connection is not None
        received = b""
        while len(received) < size:
            more = self._connection.recv(size - len(received))
            if not more:
                raise ConnectionResetError
            received += more
        return received


@contextmanager
def _connected(servers: str) -> Iterator[Ask]:
    ask = Ask(servers)
    try:
        yield ask
    finally:
        ask.close()


def _text(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()


# The process ----------------------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[..., None]] = {
    "produce": produce,
    "commit": commit,
    "share": share,
    "transactions": transactions,
    "producer-ids": producer_ids,
}


def _tell_and_end() -> None:
    """Until the input ends; then the process is over at once."""
    threading.Thread(target=_tell, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def _tell() -> None:
    while True:
        print(done, flush=True)
        time.sleep(1)


def main() -> None:
    kind, servers, number, *arguments = sys.argv[1:]
    threading.Thread(target=_tell_and_end, daemon=True).start()
    KINDS[kind](servers, int(number), *arguments)


if __name__ == "__main__":
    main()

"""A client that produces at a rate while a test does its worst, and what that client told its application meanwhile."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from brimline.torture.clients.table import Client, ClientProcess
from tests.waiting import PATIENCE_SECONDS, eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    number: int
    partition: int
    offset: int
    """-1: the broker had it already and did not say where."""
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    number: int
    error: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    first: int
    last: int
    outcome: str
    """``committed``, ``aborted`` or ``fatal`` (the producer could not go on)."""
    error: str = ""
    text: str = ""

    @property
    def numbers(self) -> range:
        return range(self.first, self.last + 1)


class Load:
    """What a running client reported so far. The lists grow behind the reader's back: take one look at a time."""

    def __init__(self, client: Client, topic: str, partitions: Sequence[int], name: str) -> None:
        self.client = client
        self.topic = topic
        self.partitions = tuple(partitions)
        self.name = name
        self._lock = threading.Lock()
        self._acknowledged: list[Acknowledged] = []
        self._failures: list[Failure] = []
        self._transactions: list[Transaction] = []
        self._summary: dict[str, int] | None = None
        self._process: ClientProcess | None = None

    def start(self, command: Sequence[str]) -> None:
        self._process = ClientProcess(command, self.hear)

    @property
    def process(self) -> ClientProcess:
        assert self._process is not None
        return self._process

    @property
    def acknowledged(self) -> list[Acknowledged]:
        with self._lock:
            return list(self._acknowledged)

    @property
    def failures(self) -> list[Failure]:
        with self._lock:
            return list(self._failures)

    @property
    def transactions(self) -> list[Transaction]:
        with self._lock:
            return list(self._transactions)

    @property
    def sent(self) -> int:
        """How many records were handed to the client; known at its end."""
        assert self._summary is not None, "the client still runs, or ended without a word"
        return self._summary["sent"]

    def partition_of(self, number: int) -> int:
        """Where the record with this number belongs: the partitions are used in turn."""
        return self.partitions[number % len(self.partitions)]

    def acked(self, partition: int | None = None) -> set[int]:
        """The numbers of the records that were acknowledged."""
        return {each.number for each in self.acknowledged if partition in (None, each.partition)}

    def rate_between(self, start: float, end: float, partition: int | None = None) -> float:
        """Acknowledged records per second, between two readings of ``time.monotonic``."""
        within = [each for each in self.acknowledged if start <= each.at < end and partition in (None, each.partition)]
        return len(within) / (end - start)

    def wait_for_acks(self, count: int = 10, partition: int | None = None) -> None:
        """Until ``count`` more records than now are acknowledged: it makes progress."""
        wanted = len(self.acked(partition)) + count
        eventually(lambda: len(self.acked(partition)) >= wanted or not self.process.is_running)
        assert len(self.acked(partition)) >= wanted, f"{self.name} ended: {self.process.complaint()[-2000:]}"

    def wait_until_done(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Until the client has sent what it was to send (``count``), has flushed and ended."""
        self.process.wait(seconds)
        assert self._summary is not None, f"{self.name} ended early: {self.process.complaint()[-2000:]}"

    def stop(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Send no more, flush, end; every record is then acknowledged or failed."""
        if self._summary is None:
            self.process.ask_to_stop()
        self.wait_until_done(seconds)

    def hear(self, line: dict[str, Any]) -> None:
        with self._lock:
            match line:
                case {"acked": number, "partition": partition, "offset": offset}:
                    at = time.monotonic()
                    self._acknowledged.append(Acknowledged(number=number, partition=partition, offset=offset, at=at))
                case {"failed": number, "error": error, "text": text}:
                    self._failures.append(Failure(number=number, error=error, text=text))
                case {"done": summary}:
                    self._summary = summary
                case {"committed": [first, last]}:
                    self._transactions.append(Transaction(first=first, last=last, outcome="committed"))
                case {"aborted": [first, last], "error": error, "text": text}:
                    self._transactions.append(
                        Transaction(first=first, last=last, outcome="aborted", error=error, text=text)
                    )
                case {"fatal": [first, last], "error": error, "text": text}:
                    self._transactions.append(
                        Transaction(first=first, last=last, outcome="fatal", error=error, text=text)
                    )
                case _:
                    raise AssertionError(f"not a line of a producing client: {line}")


@contextmanager
def producing(
    client: Client,
    servers: str,
    topic: str,
    *,
    partitions: Sequence[int] = (0,),
    rate: float = 100.0,
    count: int | None = None,
    value_bytes: int = 0,
    name: str | None = None,
    properties: Mapping[str, str] | None = None,
    transactional_id: str | None = None,
    per_transaction: int = 10,
) -> Iterator[Load]:
    """Produce until the block ends (then flush), or until ``count`` records are sent.

    ``name`` tells the records of two loads apart. ``properties`` are in the client library's own names. Only the Java
    clients know transactions.
    """
    load = Load(client, topic, partitions, name or client.name)
    arguments = {
        "--bootstrap-servers": servers,
        "--topic": topic,
        "--partitions": ",".join(map(str, partitions)),
        "--rate": str(rate),
        "--name": load.name,
        "--value-bytes": str(value_bytes),
    }
    if count is not None:
        arguments["--count"] = str(count)
    if transactional_id is not None:
        assert client.java_version, f"{client} has no transactional mode here"
        arguments |= {"--transactional": transactional_id, "--per-transaction": str(per_transaction)}
    load.start(client.command([word for pair in arguments.items() for word in pair], properties or {}))
    try:
        yield load
        load.stop()
    finally:
        load.process.close()

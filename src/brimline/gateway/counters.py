"""What the gateway counts. Plain numbers, changed by the forwarder's thread alone."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from brimline.documents.gateway_state import RefusedBatches
from brimline.model import Bytes

LATENCY_BOUNDS = (0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0)
"""Seconds."""
_BOUNDS_NS = [round(bound * 1e9) for bound in LATENCY_BOUNDS]
_MOST_ROWS = 1000
_MOST_CLIENTS = 8
"""Of one partition."""
OTHER = "(other)"


class Latency:
    """How long bytes were in here: from the round in which they were found to their being handed to the kernel."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS) + 1)
        self.sum_ns = 0

    def add(self, nanoseconds: int) -> None:
        self.counts[bisect_left(_BOUNDS_NS, nanoseconds)] += 1
        self.sum_ns += nanoseconds


class RefusedPartition(NamedTuple):
    topic: str
    partition: int
    client: str


class RefusalCount:
    """Batches and bytes per partition and client software; bounded, because topics and clients are not.

    A partition has a few names of clients only: whoever invents names pushes no partition out.
    """

    def __init__(self) -> None:
        self.rows: dict[RefusedPartition, tuple[int, int]] = {}
        self.batches = 0
        self._clients: Counter[tuple[str, int]] = Counter()

    def add(self, who: RefusedPartition, size: int) -> None:
        if who not in self.rows:
            who = self._row(who)
        self.batches += 1
        batches, total = self.rows.get(who, (0, 0))
        self.rows[who] = (batches + 1, total + size)

    def _row(self, who: RefusedPartition) -> RefusedPartition:
        """Where one that has no row yet is counted."""
        partition = (who.topic, who.partition)
        if self._clients[partition] >= _MOST_CLIENTS:
            who = who._replace(client=OTHER)
        elif len(self.rows) >= _MOST_ROWS:
            return RefusedPartition(OTHER, -1, OTHER)
        else:
            self._clients[partition] += 1
        return who

    def rows_now(self) -> tuple[RefusedBatches, ...]:
        return tuple(
            RefusedBatches(
                topic=who.topic,
                partition=None if who.partition < 0 else who.partition,
                client=who.client,
                batches=batches,
                bytes=Bytes(size),
            )
            for who, (batches, size) in self.rows.copy().items()  # the forwarder goes on counting
        )


@dataclass(slots=True)
class FetchCounters:
    """Of followers' fetches that were looked into because something is skipped."""

    rewritten: int = 0
    """Requests."""
    skipped: int = 0
    """Partitions that were answered with an error in the broker's stead."""
    probed: int = 0
    """Partitions that were let through without their records."""
    withheld_bytes: int = 0
    """Of records that were taken out of answers."""
    restarted: int = 0
    """Sessions that had begun unseen, and were ended."""
    not_understood: int = 0
    """Answers that could not be read; their connections are left alone."""
    passed_unread: int = 0
    """Requests that may be a follower's and passed, since their version is not known here or they cannot be read."""


@dataclass(slots=True)
class Counters:
    accepted: int = 0
    closed: Counter[str] = field(default_factory=Counter)
    bytes_to_broker: int = 0
    bytes_to_clients: int = 0
    requests: int = 0
    produce_requests: int = 0
    refused: RefusalCount = field(default_factory=RefusalCount)
    would_refuse: RefusalCount = field(default_factory=RefusalCount)
    fetches: FetchCounters = field(default_factory=FetchCounters)
    latency: Latency = field(default_factory=Latency)

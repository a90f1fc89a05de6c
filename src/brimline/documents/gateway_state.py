"""What a gateway says of itself over its control socket, read into facts.

A gateway may be of a newer version than whoever asks: what is not known here is ignored, and what is missing is a
``KeyError``, which the client turns into a sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from brimline.model import Bytes

Json = Mapping[str, Any]


class Cause(Enum):
    """Why a fence stands, which decides how it is lifted."""

    FULL = "full"
    GUARD = "guard"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayListener:
    name: str
    address: str
    upstream: str
    protocol: str
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Exactly one of ``log_dir`` and ``topic`` is given."""

    log_dir: str | None
    topic: str | None
    cause: Cause
    reason: str
    since: datetime
    by: str | None
    partitions: int

    @property
    def target(self) -> str:
        return self.log_dir if self.log_dir is not None else f"topic {self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Batches of one client for one partition. ``client`` is the client's own name and version.

    The gateway keeps only so many of these rows: the last has the sum of all others, and no partition.
    """

    topic: str
    partition: int | None
    client: str
    batches: int
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedLatency:
    """``counts`` has one more than ``bounds``: what is beyond all of them."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFetches:
    """What the gateway did to fetches of followers without room, since it was started."""

    rewritten: int = 0
    partitions_skipped: int = 0
    bytes_withheld: int = 0
    sessions_restarted: int = 0
    not_understood: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    version: str
    pid: int
    started_at: datetime
    enforcement: str
    reject_error: int
    is_draining: bool
    listeners: tuple[GatewayListener, ...]
    open_connections: int
    accepted_connections: int
    closed_connections: Mapping[str, int]
    bytes_to_broker: Bytes
    bytes_to_clients: Bytes
    requests: int
    produce_requests: int
    fences: tuple[Fence, ...]
    refused: tuple[Refused, ...]
    would_have_refused: tuple[Refused, ...]
    sequences_held: int
    sequences_evicted: int
    describe_failures: int
    describe_restarts: int
    latency: AddedLatency
    skipped: SkippedFetches

    @property
    def is_enforcing(self) -> bool:
        return self.enforcement == "gateway"

    @property
    def counted(self) -> tuple[Refused, ...]:
        """What was refused, or with ``observe`` would have been."""
        return self.refused if self.is_enforcing else self.would_have_refused


def read_gateway_state(document: Json) -> GatewayState:
    """``KeyError``, ``TypeError`` or ``ValueError`` when it is not such a document."""
    connections, sequences = document["connections"], document["sequences"]
    return GatewayState(
        version=str(document["version"]),
        pid=int(document["pid"]),
        started_at=_time(document["startedAt"]),
        enforcement=str(document["enforcement"]),
        reject_error=int(document["rejectError"]),
        is_draining=bool(document["draining"]),
        listeners=tuple(_listener(listener) for listener in document["listeners"]),
        open_connections=int(connections["open"]),
        accepted_connections=int(connections["accepted"]),
        closed_connections={str(reason): int(count) for reason, count in connections["closed"].items()},
        bytes_to_broker=Bytes(document["bytes"]["toBroker"]),
        bytes_to_clients=Bytes(document["bytes"]["toClients"]),
        requests=int(document["requests"]["total"]),
        produce_requests=int(document["requests"]["produce"]),
        fences=tuple(_fence(fence) for fence in document["fences"]),
        refused=_refused(document["refusals"]),
        would_have_refused=_refused(document["wouldHaveRefused"]),
        sequences_held=int(sequences["held"]),
        sequences_evicted=int(sequences["evicted"]),
        describe_failures=int(document["describe"]["failures"]),
        describe_restarts=int(document["describe"]["workerRestarts"]),
        latency=_latency(document["latency"]),
        skipped=_skipped(document.get("skips")),
    )


def _listener(listener: Json) -> GatewayListener:
    return GatewayListener(
        name=str(listener["name"]),
        address=str(listener["address"]),
        upstream=str(listener["upstream"]),
        protocol=str(listener["protocol"]),
        connections=int(listener["connections"]),
    )


def _fence(fence: Json) -> Fence:
    log_dir, topic = fence.get("logDir"), fence.get("topic")
    if (log_dir is None) == (topic is None):
        raise ValueError("a fence is of a log dir or of a topic")
    return Fence(
        log_dir=None if log_dir is None else str(log_dir),
        topic=None if topic is None else str(topic),
        cause=Cause(fence["cause"]),
        reason=str(fence["reason"]),
        since=_time(fence["since"]),
        by=fence.get("by"),
        partitions=int(fence["partitions"]),
    )


def _refused(rows: Sequence[Json]) -> tuple[Refused, ...]:
    return tuple(
        Refused(
            topic=str(row["topic"]),
            partition=None if row["partition"] < 0 else int(row["partition"]),
            client=str(row["client"]),
            batches=int(row["batches"]),
            bytes=Bytes(row["bytes"]),
        )
        for row in rows
    )


def _latency(latency: Json) -> AddedLatency:
    bounds = tuple(float(bound) for bound in latency["bounds"])
    counts = tuple(int(count) for count in latency["counts"])
    if len(counts) != len(bounds) + 1:
        raise ValueError("a histogram has one count more than bounds")
    return AddedLatency(bounds=bounds, counts=counts, sum=float(latency["sum"]))


def _skipped(skips: Json | None) -> SkippedFetches:
    """A gateway of before could not do it, so it never did."""
    if skips is None:
        return SkippedFetches()
    return SkippedFetches(
        rewritten=int(skips["fetchesRewritten"]),
        partitions_skipped=int(skips["partitionsSkipped"]),
        bytes_withheld=int(skips["bytesWithheld"]),
        sessions_restarted=int(skips["sessionsRestarted"]),
        not_understood=int(skips["answersNotUnderstood"]),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)

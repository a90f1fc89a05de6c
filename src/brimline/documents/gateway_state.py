"""What a gateway says of itself over its control socket."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from brimline.decide.admission import FenceCause
from brimline.model import Bytes

_OTHERS = -1
"""The partition of the row that has the sum of all others, as it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayListener:
    name: str
    address: str
    upstream: str
    protocol: str
    connections: int
    replication: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAndClosed:
    """Connections. ``closed``: how many ended, by reason."""

    open: int
    accepted: int
    closed: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedBytes:
    to_broker: Bytes
    to_clients: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequests:
    total: int
    produce: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingFence:
    """Exactly one of ``log_dir`` and ``topic`` is given. ``partitions``: those that a client may be refused for."""

    topic: str | None = field(default=None, metadata={"omitted": True})
    log_dir: str | None = field(default=None, metadata={"omitted": True})
    cause: FenceCause
    reason: str
    since: datetime
    by: str | None
    partitions: int

    def __post_init__(self) -> None:
        if (self.log_dir is None) == (self.topic is None):
            raise ValueError("a fence is for a log dir or a topic")

    @property
    def target(self) -> str:
        return self.log_dir if self.log_dir is not None else f"topic {self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFence:
    """Of what a follower has no room for."""

    follower: int
    cause: FenceCause
    reason: str
    since: datetime
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedBatches:
    """Batches of one client for one partition. ``client`` is its ``client.id`` and its software.

    The gateway keeps only so many of these rows: the last has the sum of all others, and no partition.
    """

    topic: str
    partition: int | None = field(
        metadata={
            "write": lambda partition: _OTHERS if partition is None else partition,
            "read": lambda partition: None if partition < 0 else int(partition),
        }
    )
    client: str
    batches: int
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSequences:
    """Sequences of idempotent producers that stand refused, and those that were forgotten for want of room."""

    held: int
    evicted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFollower:
    broker: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Skips:
    """What is done to fetches of followers without room: what is in force, and what was done since the start."""

    possible: bool = False
    epoch: int | None = None
    seconds_left: float = 0.0
    followers: tuple[SkippedFollower, ...] = ()
    fetches_rewritten: int = 0
    partitions_skipped: int = 0
    partitions_probed: int = 0
    bytes_withheld: int = 0
    sessions_restarted: int = 0
    answers_not_understood: int = 0
    fetches_passed_unread: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedLatency:
    """``counts`` has one more than ``bounds``: what is beyond all of them."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.bounds) + 1:
            raise ValueError("a histogram has one count more than bounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFigures:
    """Of the child process that completes DescribeLogDirs answers."""

    worker_restarts: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittingGroup:
    group: str
    requests: int
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCommits:
    """OffsetCommit requests since the start. ``largest``: groups with the most bytes, while there are refusals."""

    requests: int = 0
    bytes: Bytes = Bytes(0)  # noqa: RUF009 (a number)
    largest: tuple[CommittingGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    version: str
    pid: int
    started_at: datetime = field(metadata={"write": datetime.isoformat})
    enforcement: str
    reject_error: int
    listeners: tuple[GatewayListener, ...]
    connections: OpenAndClosed
    bytes: PassedBytes
    requests: SeenRequests
    fences: tuple[StandingFence, ...]
    follower_fences: tuple[FollowerFence, ...] = ()
    refusals: tuple[RefusedBatches, ...]
    would_have_refused: tuple[RefusedBatches, ...]
    sequences: RefusedSequences
    skips: Skips = Skips()
    commits: RefusedCommits = RefusedCommits()
    latency: AddedLatency
    describe: DescribeFigures
    draining: bool

    @property
    def is_enforcing(self) -> bool:
        return self.enforcement == "gateway"

    @property
    def counted(self) -> tuple[RefusedBatches, ...]:
        """What was refused, or with ``observe`` would have been."""
        return self.refusals if self.is_enforcing else self.would_have_refused

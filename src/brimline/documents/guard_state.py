"""``/v1/state``: what a guard knows now. Written by its features, read by ``brimline status``.

What is unknown is ``null``. ``moves`` are those between log dirs that go into a full one. ``followers`` is ``null``
where there is no other broker; ``unanswered`` has those whose disks are not freshly known, ``full`` those with a full
disk. ``gateway`` is ``null`` where there is none and none is wanted; ``lately`` is what it refused in the last minute,
or what it would have refused. ``highest`` has the ten fullest; all of them are in ``/metrics``. ``landing`` is ``null``
where no snapshots are wanted. A sentence for people is called ``does``, and the way out ``whatToDo``.

Members are added, never changed or removed, while ``version`` stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from brimline.decide.admission import FenceCause
from brimline.decide.disk_state import Breach
from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.notices import Notice
from brimline.model import Bytes, Failure, FailureKind, human_bytes, human_count

FORMAT, VERSION = "brimline.guard-state", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDocument:
    kind: str
    message: str

    @classmethod
    def of(cls, failure: Failure | None) -> "FailureDocument | None":
        return None if failure is None else cls(kind=failure.kind.value, message=failure.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardDocument:
    version: str
    started_at: datetime
    enforcement: str
    config: str
    dead_tasks: tuple[str, ...] = ()

    @property
    def is_enforcing(self) -> bool:
        return self.enforcement == "gateway"

    @property
    def mode(self) -> str:
        return "enforcing" if self.is_enforcing else "observe mode, refuses nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDocument:
    id: int
    connected: bool
    publishes_percentages: bool | None
    failure: FailureDocument | None

    @property
    def is_down(self) -> bool:
        """Else it refuses the guard only, or is slow."""
        return self.failure is not None and self.failure.kind == FailureKind.UNREACHABLE.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsDocument:
    max_used_percent: int
    min_free_bytes: int
    release_margin_percent: int
    retention_disk_usage_percent: int
    check_interval_ms: int

    def __str__(self) -> str:
        used, free = self.max_used_percent, self.min_free_bytes
        parts = [f"{used} % used"] * (used < 100) + [f"{human_bytes(free)} free"] * (free > 0)
        return f"limit {' or '.join(parts)}" if parts else "no limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDocument:
    device: str
    mount_point: str | None
    log_dirs: tuple[str, ...]
    state: str
    breaches: tuple[str, ...]
    total_bytes: int | None
    usable_bytes: int | None
    reserved_bytes: int | None
    total_files: int | None = None
    usable_files: int | None = None
    reserve_bytes: int = 0
    fewest_files: int = 0
    offline: tuple[str, ...] = ()
    used_percent: float | None
    bytes_to_limit: int | None
    fill_rate_bytes_per_second: float | None
    seconds_to_limit: float | None
    next_look_seconds: float
    observed_at: datetime
    failure: FailureDocument | None
    would_do: tuple[str, ...]

    @property
    def why_full(self) -> str:
        inodes = f"{Breach.INODES.value} ({human_count(self.usable_files or 0)} left)"
        over = [inodes if each == Breach.INODES.value else each for each in self.breaches]
        return f"over {' and '.join(over)}" if over else "waiting for the release margin"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingInto:
    log_dir: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesDocument:
    paused: bool
    since: datetime | None
    value_before: str | None
    log_dirs: tuple[MovingInto, ...]
    failure: FailureDocument | None
    does: str
    what_to_do: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredPeer:
    broker: int
    state: str
    age_seconds: float | None
    failure: FailureDocument | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerDocument:
    """One whose disk is full."""

    broker: int
    log_dirs: tuple[str, ...]
    partitions: int
    held_back: bool
    held_back_partitions: int = 0
    failure: FailureDocument | None
    does: str
    what_to_do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleDocument:
    """Replicas on full disks that are not in sync: how many partitions are held for them, or why not."""

    partitions: int
    since: datetime | None
    foreign: str | None
    failure: FailureDocument | None
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedDocument:
    """Replicas that were taken away from full disks and are not back; or why none can be."""

    partitions: tuple[str, ...]
    failure: FailureDocument | None
    does: str
    what_to_do: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowersDocument:
    """``peers``: how many other brokers there are, by what is known of their disks."""

    action: str
    why: str
    possible: bool
    in_force: str | None
    patience_seconds: float
    failure: FailureDocument | None
    peers: Mapping[str, int]
    unanswered: tuple[UnansweredPeer, ...]
    full: tuple[FollowerDocument, ...]
    throttle: ThrottleDocument | None = None
    shed: ShedDocument | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonDocument:
    wanted: bool
    supported: bool | None
    log_dirs: tuple[str, ...]
    by_operator: tuple[str, ...]
    kept_open: tuple[str, ...]
    failure: FailureDocument | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BallastDocument:
    device: str
    path: str
    bytes: Bytes
    in_place: bool
    releases: int
    unrecorded: int
    failure: str | None
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BallastsDocument:
    wanted_bytes: Bytes
    volumes: tuple[BallastDocument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedReclaim:
    by: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    outcome: str
    used_bytes: int | None
    limit_bytes: int | None
    going_bytes: int
    excess_bytes: int | None
    taken_bytes: int
    taken_segments: int
    missing_bytes: int
    removable_bytes: int
    local_retention_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShareDocument:
    topic: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPartDocument:
    kind: str
    bytes: int
    percent: float
    what_helps: str
    topics: tuple[TopicShareDocument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorDocument:
    bytes: int
    percent: float
    impossible: bool
    sentence: str
    parts: tuple[FloorPartDocument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimCounts:
    unsent: int
    waiting: int
    done: int
    abandoned: int
    withdrawn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleDocument:
    cycle: str
    by: str
    begun_at: datetime
    ended_at: datetime | None
    excess_bytes: int
    planned_bytes: int
    planned_segments: int
    trims: TrimCounts
    freed_bytes: int
    freed_segments: int
    given_up_because: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceStart:
    cycles: int = 0
    planned_bytes: int = 0
    planned_segments: int = 0
    trims_done: int = 0
    trims_abandoned: int = 0
    trims_withdrawn: int = 0
    freed_bytes: int = 0
    freed_segments: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDocument:
    device: str
    log_dirs: tuple[str, ...]
    state: str
    troubled: bool
    problem: str | None
    does: str
    decided_at: datetime | None
    age_seconds: float | None
    plan: PlanDocument | None
    floor: FloorDocument | None
    cycles: tuple[CycleDocument, ...]
    last_cycle: CycleDocument | None
    since_start: SinceStart


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimDocument:
    ceiling_percent: int
    mode: str
    interval_ms: int
    paused: PausedReclaim | None
    brakes: tuple[str, ...] = ()
    """Sentences about those that guards of other replicas left here."""
    keeps: Brakes | None = None
    """What is kept here; ``None`` from a guard of before."""
    devices: tuple[DeviceDocument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerDocument:
    name: str
    address: str
    upstream: str
    protocol: str
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceDocument:
    log_dir: str | None
    topic: str | None
    cause: FenceCause
    reason: str
    since: datetime
    by: str | None
    partitions: int
    what_to_do: str

    @property
    def target(self) -> str:
        return f"topic {self.topic}" if self.log_dir is None else self.log_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSum:
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    topic: str
    partition: int | None
    client: str
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LatelyDocument:
    seconds: float
    batches: int
    bytes: int
    most: tuple[RefusedRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDocument:
    """What a gateway said that answered."""

    version: str
    pid: int
    started_at: datetime
    enforcement: str
    reject_error: int
    draining: bool
    listeners: tuple[ListenerDocument, ...]
    connections: int
    fences: tuple[FenceDocument, ...]
    refused: RefusedSum
    would_have_refused: RefusedSum
    lately: LatelyDocument

    @property
    def is_enforcing(self) -> bool:
        return self.enforcement == "gateway"

    @property
    def fences_for_people(self) -> tuple[FenceDocument, ...]:
        """Full disks first. Gateway and guard both see them: for people that is one fence, as old as the older one."""
        shown: dict[tuple[str, bool], FenceDocument] = {}
        for fence in sorted(self.fences, key=lambda fence: (fence.cause is FenceCause.MANUAL, fence.since)):
            shown.setdefault((fence.target, fence.cause is FenceCause.MANUAL), fence)
        return tuple(shown.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayDocument:
    up: bool
    failure: FailureDocument | None
    state: AnswerDocument | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentRow:
    topic: str
    partition: int
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentagesDocument:
    """``unknown``: why, by topic or partition."""

    age_seconds: float
    partitions: int
    over_100: int
    highest: tuple[PercentRow, ...]
    unknown: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRow:
    topic: str
    partition: int
    remote_bytes: int
    only_local_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSizesDocument:
    """KIP-1187 of all tiered replicas here, led or not: sums over those that are known, and why the others are not."""

    known: int
    remote_bytes: int
    only_local_bytes: int
    most_only_local: tuple[TierRow, ...]
    unknown: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDocument:
    plain: PercentagesDocument | None
    tiered: PercentagesDocument | None
    sizes: TierSizesDocument | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSizeDocument:
    """One of the largest topics of a log dir."""

    log_dir: str
    topic: str
    bytes: int
    growth_bytes_per_hour: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolDocument:
    snapshots: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingDocument:
    uri: str
    last: str | None
    last_bytes: int | None
    last_seconds: float | None
    age_seconds: float | None
    sent: int
    failed: int
    dropped: int
    spool: SpoolDocument
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptionDocument:
    """Connections of clients: ``direct`` to the broker while they are counted, ``proxied`` through the gateway."""

    phase: str
    does: str
    direct: int
    proxied: int
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    format: str = FORMAT
    version: int = VERSION
    observed_at: datetime
    guard: GuardDocument
    broker: BrokerDocument
    limits: LimitsDocument
    volumes: tuple[VolumeDocument, ...]
    notices: tuple[Notice, ...] = ()
    moves: MovesDocument | None = None
    followers: FollowersDocument | None = None
    cordon: CordonDocument | None = None
    ballast: BallastsDocument | None = None
    reclaim: ReclaimDocument | None = None
    gateway: GatewayDocument | None = None
    interception: InterceptionDocument | None = None
    retention: RetentionDocument = field(default_factory=lambda: RetentionDocument(plain=None, tiered=None))
    topics: tuple[TopicSizeDocument, ...] = ()
    landing: LandingDocument | None = None

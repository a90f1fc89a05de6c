"""How fast trims are sent and how long is waited for what; and may this trim be sent now? Every no has its reason.

**Invariant.** A trim is sent only if all of this is so at the last look before it: the topic is the one that was
planned (by its id), it is neither tiered nor only compacted, its log start is below the target and its high watermark
is not, nor its last stable offset where that counts, and its files are still where they take the space that is wanted.
"""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from brimline.act.ledger.entries import PlannedTrim
from brimline.model import BrokerId, Bytes, KafkaError, Offset, TopicPartition
from brimline.model.failures import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, TOPIC_AUTHORIZATION_FAILED

_BYTES_PER_BATCH = Bytes(1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPace:
    """Times in seconds. ``space_patience`` covers the broker's retention check and delete delay, with time to spare."""

    space_patience: float
    trims_per_batch: int = 20
    bytes_per_batch: Bytes = _BYTES_PER_BATCH
    """A single trim may be larger than that; then it is a batch of its own."""
    between_batches: float = 1.0
    between_looks: float = 5.0
    check_again: float = 15.0
    """How often the log start of what was asked for is read again: a broker may have forgotten it."""
    retry: float = 5.0
    patience: float = 120.0
    """How long a problem may last that could pass by itself, such as a missing leader."""
    most_requests: int = 5


OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
INVALID_TOPIC = 17
POLICY_VIOLATION = 44

_DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionNow:
    """A partition right before its trim, as the cluster tells."""

    topic_id: UUID | None
    leader: BrokerId
    log_start: Offset
    high_watermark: Offset
    cleanup_policy: str
    is_tiered: bool
    last_stable: Offset | None = None
    """``None``: it is not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What of a trim's files is on the disk: those of its segments, under any name that a broker gives them."""

    files: int
    allocated_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``may_pass``: worth another try. Otherwise the trim is abandoned with this reason."""

    why: str
    may_pass: bool


class TrimVerdict(Enum):
    SEND = "send"
    IS_THERE = "is-there"
    """The log start is where the trim would put it, or beyond: whoever did it, there is nothing to ask for."""
    IS_GONE = "is-gone"
    """And its files are gone."""


def judge(
    planned: PlannedTrim, now: PartitionNow | Problem, left: Left, *, was_asked_for: bool
) -> TrimVerdict | Problem:
    if was_asked_for and not left.files:
        return TrimVerdict.IS_GONE
    if isinstance(now, Problem):
        return now
    if now.topic_id != planned.topic_id:
        return _final(f"topic {planned.partition.topic} was deleted and recreated since")
    if now.is_tiered:
        return _final("the topic is tiered now: a trim would delete its remote data too")
    if _DELETE not in now.cleanup_policy:
        return _final("the topic is compacted only now (cleanup.policy): Kafka cannot trim it")
    if now.log_start >= planned.target:
        return TrimVerdict.IS_THERE if left.files else TrimVerdict.IS_GONE
    if now.high_watermark < planned.target:
        return _final(f"its high watermark is {now.high_watermark}, below the planned offset {planned.target}")
    if now.last_stable is not None and now.last_stable < planned.target:
        why = f"a transaction is open at {now.last_stable}, below the planned offset {planned.target}"
        return Problem(why=why, may_pass=True)
    if not left.files:
        return _final(f"its segments are no longer in {planned.log_dir}: a trim would free nothing there")
    return TrimVerdict.SEND


def refusal(error: KafkaError, partition: TopicPartition) -> Problem:
    """What a leader's answer means for a trim. Who leads, who follows and which disk is alive may change."""
    if error.code in _FINAL:
        return _final(_FINAL[error.code].format(topic=partition.topic))
    return Problem(why=_PASSING.get(error.code, f"the leader answers {error}"), may_pass=True)


_FINAL = {
    OFFSET_OUT_OF_RANGE: "the leader has no such offset (OFFSET_OUT_OF_RANGE): its log is shorter than planned for",
    UNKNOWN_TOPIC_OR_PARTITION: "the topic {topic} is gone",
    INVALID_TOPIC: "the topic {topic} is internal and cannot be trimmed (INVALID_TOPIC_EXCEPTION)",
    TOPIC_AUTHORIZATION_FAILED: "no permission: this principal needs DESCRIBE and DELETE on the topic {topic}",
    CLUSTER_AUTHORIZATION_FAILED: "no permission: this principal is refused by the cluster",
    POLICY_VIOLATION: "the topic {topic} is compacted only (POLICY_VIOLATION): Kafka cannot trim it",
}
_PASSING = {
    NOT_LEADER_OR_FOLLOWER: "its leader has moved",
    REQUEST_TIMED_OUT: "not all of its replicas followed in time",
    KAFKA_STORAGE_ERROR: "its log dir at the leader is offline",
}


def _final(why: str) -> Problem:
    return Problem(why=why, may_pass=False)

"""KIP-1201 at the gateway: may this batch go to the broker?

**Invariant.** A batch is refused exactly when a fence covers its partition, or when an earlier batch of its producer
stands refused (``sequences``). Never refused, whatever is full: the topics that Kafka needs to get out of the trouble.
What is not known to be fenced is admitted (fail open). What a batch says of itself counts for nothing: markers of
transactions come by another API, so a Produce that claims to be one is a client's, and brokers refuse it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol

from brimline.decide.disk_state import Breach, DiskLimits, Space, breaches
from brimline.decide.sequences import DEFAULT_EXPIRY_SECONDS, RefusedSequence, rule_on
from brimline.model import Bytes, human_bytes, human_percent, used_percent

EXEMPT_TOPICS = frozenset(
    {
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "__remote_log_metadata",
    }
)
"""Refusing these would block the cure. A segment whose upload cannot be put on record in ``__remote_log_metadata`` is
never uploaded, so it never leaves the disk; without offsets and transaction states consumers fall behind, and what they
have not read yet is what nobody dares to delete. Nearly all of it is written inside the broker, out of a gateway's
sight; what does come this way comes from Kafka's own parts."""

OUT_OF_ORDER_SEQUENCE_NUMBER = 45
"""What a broker that knows the producer answers to a batch whose predecessor is missing. Clients know best what to make
of it: while they still have the predecessor they retry both in order, and once they have given it up they begin a new
epoch. A plain "try again later" would keep such a client waiting for a batch that never comes."""
_MOST_NAMED = 3
_LONGEST_NAME = 60
HELD_BACK = "an earlier batch of this producer was refused and must be sent first"


class RejectError(IntEnum):
    """The error codes to choose from for a refusal. Only 56, the default, and 19 make clients wait for space."""

    KAFKA_STORAGE_ERROR = 56
    NOT_ENOUGH_SPACE = 128
    NOT_ENOUGH_REPLICAS = 19
    POLICY_VIOLATION = 44

    @property
    def is_retriable(self) -> bool:
        return self in (RejectError.KAFKA_STORAGE_ERROR, RejectError.NOT_ENOUGH_REPLICAS)


class FenceCause(Enum):
    """Whose word it is, the strongest first. The value is the stable name in JSON."""

    GUARD = "guard"
    """The guard says that the volume is full, for as long as it keeps saying so. It knows which topics fill it."""
    FULL = "full"
    """The gateway itself sees that the volume is full."""
    MANUAL = "manual"
    FOLLOWER = "follower"
    """The guard says that a follower has no room, and that none of its partitions shall outgrow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Of a log dir, of a topic, or of what a follower has no room for: exactly one of the three is given.

    ``by`` is who fenced by hand.
    """

    cause: FenceCause
    reason: str
    since: datetime
    log_dir: str | None = None
    topic: str | None = None
    follower: int | None = None
    by: str | None = None

    @property
    def refusal(self) -> str:
        """What the client is told (Produce v8 and later)."""
        if self.cause is FenceCause.MANUAL:
            return f"fenced by hand: {self.reason}"
        there = "" if self.follower is None else f" --broker-list {self.follower}"
        return (
            f"NOT_ENOUGH_SPACE: {self.reason}; free space or lower retention (brimline topics{there} shows what fills "
            "it), producing resumes automatically"
        )


class ProducedBatch(Protocol):
    """What the rule asks of a batch; -1 stands for a number that it does not have."""

    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...


class Verdict(NamedTuple):
    """``refusal`` is the text for the client, ``None`` when the batch is admitted; ``code`` is the error beside it.

    ``held`` is what must be remembered of the producer and partition from now on. Where it is not the entry that was
    given, it has to be written down, or forgotten if there is none, before the client is answered.
    """

    refusal: str | None
    held: RefusedSequence | None
    code: int = 0


_ADMITTED = Verdict(refusal=None, held=None)


def judge(
    topic: str,
    batch: ProducedBatch,
    fence: Fence | None,
    held: RefusedSequence | None,
    *,
    error: RejectError,
    now: int,
    expiry_seconds: int = DEFAULT_EXPIRY_SECONDS,
) -> Verdict:
    """One batch for one partition; ``fence`` covers the partition, ``held`` is remembered of its producer there."""
    if fence is None and held is None:
        return _ADMITTED
    if topic in EXEMPT_TOPICS:
        return Verdict(refusal=None, held=held)
    if batch.producer_id < 0 or batch.base_sequence < 0:
        return Verdict(refusal=None, held=held) if fence is None else Verdict(fence.refusal, held, int(error))
    ruling = rule_on(
        batch.producer_epoch,
        batch.base_sequence,
        held,
        is_fenced=fence is not None,
        is_retriable=error.is_retriable,
        now=now,
        expiry_seconds=expiry_seconds,
    )
    if not ruling.is_refused:
        return Verdict(refusal=None, held=ruling.held)
    if fence is None:
        return Verdict(refusal=HELD_BACK, held=ruling.held, code=OUT_OF_ORDER_SEQUENCE_NUMBER)
    # Where both hold, the fence is what the reader can do something about.
    return Verdict(refusal=fence.refusal, held=ruling.held, code=int(error))


def named_topics(largest: Sequence[tuple[str, Bytes]]) -> str:
    """The first few with their sizes, long names cut: every refused batch carries it."""
    return ", ".join(f"{_cut(topic)} {human_bytes(size)}" for topic, size in largest[:_MOST_NAMED])


def _cut(topic: str) -> str:
    return topic if len(topic) <= _LONGEST_NAME else f"{topic[: _LONGEST_NAME - 1]}…"


def why_full(log_dir: str, space: Space | None, limits: DiskLimits) -> str:
    """The reason of a fence for a full log dir: how full it is, and the limit that it has passed.

    ``None``: it does not answer any more.
    """
    if space is None:
        return f"log dir {log_dir} was full when it last answered"
    used = f"log dir {log_dir} is {human_percent(used_percent(space.total, space.usable))} used"
    breached = breaches(space, limits)
    if not breached:
        return f"{used}, not yet below its limit by the release margin of {limits.release_margin_percent} %"
    values = {
        Breach.MAX_USED_PERCENT: f"={limits.max_used_percent}",
        Breach.MIN_FREE_BYTES: f"={limits.min_free_bytes}",
        Breach.RESERVE: f" of {human_bytes(limits.reserve)} usable",
        Breach.INODES: f" of {limits.min_free_files} free, {space.usable_files} left",
    }
    named = " and ".join(f"{breach.value}{values[breach]}" for breach in breached)
    if {Breach.MIN_FREE_BYTES, Breach.RESERVE} & set(breached):
        used += f" with {human_bytes(space.usable)} usable"
    return f"{used}, {'limit' if len(breached) == 1 else 'limits'} {named}"

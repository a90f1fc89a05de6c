"""The fences in force, whoever put them up.

**Invariant.** A ``FenceSnapshot`` never changes; ``Fences`` replaces it whole, so the forwarder takes no lock and sees
one moment. Several have a say, and each only over its own fences:

- the guard (``lease``), whose word counts for as long as it keeps giving it: a lease that has run out counts for
  nothing, and that is checked when it is read, so a dead guard can neither fence nor keep a fence;
- the gateway's own look at the disks (``set_full``), which needs nobody;
- people (``fence`` and ``unfence``), on record and for as long as they like;
- the guard once more, for followers that have no room (``lease_followers``): a lease too, but of partitions, which may
  be thousands. They are sent once, with a number that names them (``epoch``); renewing says that number alone.

Where several cover a partition, the client is told of the first in this order: the guard can name the topics.
``since`` is kept while a cause lasts, though its reason changes with every reading.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from brimline.decide.admission import EXEMPT_TOPICS, Fence, FenceCause
from brimline.documents.gateway_state import FollowerFence, StandingFence
from brimline.gateway.rules.fence_record import FenceRecord
from brimline.gateway.rules.follower_orders import FencedFollower
from brimline.gateway.rules.placement import Placement
from brimline.model import BadInput

LONGEST_LEASE_SECONDS = 60.0
"""The guard renews its word every second or so; nothing that it says should outlive it by more."""
LONGEST_REASON = 400
"""Every refused batch carries it."""

Partition = tuple[str, int]

_NONE: Mapping[str, Fence] = {}
_NO_PARTITIONS: Mapping[Partition, Fence] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FenceSnapshot:
    """``leased`` counts until ``leased_until``, on the clock ``seconds``."""

    seconds: Callable[[], float]
    full: Mapping[str, Fence] = field(default_factory=dict)
    leased: Mapping[str, Fence] = field(default_factory=dict)
    leased_until: float = 0.0
    log_dirs_by_hand: Mapping[str, Fence] = field(default_factory=dict)
    topics_by_hand: Mapping[str, Fence] = field(default_factory=dict)
    followers: Mapping[Partition, Fence] = field(default_factory=dict)
    followers_epoch: int | None = None
    followers_until: float = 0.0

    @property
    def is_empty(self) -> bool:
        return not (self.has_log_dirs or self.topics_by_hand or self.followers_in_force)

    @property
    def followers_in_force(self) -> Mapping[Partition, Fence]:
        return self.followers if self.followers and self.seconds() < self.followers_until else _NO_PARTITIONS

    @property
    def has_log_dirs(self) -> bool:
        return bool(self.full or self.log_dirs_by_hand or (self.leased and self._lease_counts))

    def of_log_dir(self, log_dir: str) -> Fence | None:
        fence = self.leased.get(log_dir) if self.leased and self._lease_counts else None
        if fence is None:
            fence = self.full.get(log_dir)
        return self.log_dirs_by_hand.get(log_dir) if fence is None else fence

    @property
    def full_log_dirs(self) -> frozenset[str]:
        """Not those that are fenced by hand."""
        return frozenset(self.full.keys() | (self.leased.keys() if self._lease_counts else _NONE.keys()))

    def of(self, topic: str, log_dir: str | None) -> Fence | None:
        """What covers a topic's partitions in this log dir (``None`` where that is not known).

        Where it is nothing, ``followers_in_force`` may cover some of them.
        """
        fence = None if log_dir is None else self.of_log_dir(log_dir)
        return self.topics_by_hand.get(topic) if fence is None else fence

    def in_force(self) -> list[Fence]:
        """Those of log dirs and topics."""
        leased = self.leased if self._lease_counts else _NONE
        sources = (self.full, leased, self.log_dirs_by_hand, self.topics_by_hand)
        return [fence for fences in sources for fence in fences.values()]

    def with_fences_by_hand(self, fences: Sequence[Fence]) -> "FenceSnapshot":
        return replace(
            self,
            log_dirs_by_hand={fence.log_dir: fence for fence in fences if fence.log_dir is not None},
            topics_by_hand={fence.topic: fence for fence in fences if fence.topic is not None},
        )

    @property
    def _lease_counts(self) -> bool:
        return self.seconds() < self.leased_until


class Fences:
    """Thread-safe. ``fence`` and ``unfence`` wait for the disk, so they are nothing for the forwarder's thread."""

    def __init__(
        self,
        *,
        state_dir: Path,
        node_id: int,
        log_dirs: Sequence[str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log_dirs = tuple(log_dirs)
        self._now = now
        self._seconds = seconds
        self._record = FenceRecord(state_dir, node_id)
        self._replacing = threading.Lock()
        # Of its own, because it is held while the disk is waited for, and the guard's lease shall not wait.
        self._acting_by_hand = threading.Lock()
        fences, warnings = self._record.read()
        self.warnings = tuple(warnings)
        self.snapshot = FenceSnapshot(seconds=seconds).with_fences_by_hand(fences)

    def set_full(self, reasons: Mapping[str, str]) -> None:
        """The log dirs that the gateway itself sees full, all of them, each with the reason."""
        with self._replacing:
            full = _renewed(FenceCause.FULL, self.snapshot.full, reasons, self._now())
            self.snapshot = replace(self.snapshot, full=full)

    def lease(self, reasons: Mapping[str, str], seconds: float) -> None:
        """The same in the guard's words, in place of what it said before; it counts for so many seconds."""
        _check_seconds(seconds)
        with self._replacing:
            before = self.snapshot.leased if self._seconds() < self.snapshot.leased_until else _NONE
            leased = _renewed(FenceCause.GUARD, before, reasons, self._now())
            self.snapshot = replace(self.snapshot, leased=leased, leased_until=self._seconds() + seconds)

    def lease_followers(self, followers: Iterable[FencedFollower], *, epoch: int, seconds: float) -> None:
        """What followers have no room for, in place of what was said before; it counts for so many seconds."""
        _check_seconds(seconds)
        with self._replacing:
            since = {fence.follower: fence.since for fence in self.snapshot.followers_in_force.values()}
            fences: dict[Partition, Fence] = {}
            for each in followers:
                fence = Fence(
                    cause=FenceCause.FOLLOWER,
                    reason=_one_line(each.reason),
                    since=since.get(each.broker, self._now()),
                    follower=each.broker,
                )
                for partition in each.partitions:
                    fences.setdefault(partition, fence)
            self.snapshot = replace(
                self.snapshot, followers=fences, followers_epoch=epoch, followers_until=self._seconds() + seconds
            )

    def renew_followers(self, *, epoch: int, seconds: float) -> bool:
        """Whether this is what was said last: then it counts for so many seconds from now."""
        _check_seconds(seconds)
        with self._replacing:
            if self.snapshot.followers_epoch != epoch:
                return False
            self.snapshot = replace(self.snapshot, followers_until=self._seconds() + seconds)
            return True

    def fence(self, *, log_dir: str | None = None, topic: str | None = None, reason: str, by: str) -> Fence:
        """By hand. Raises ``BadInput`` for what cannot be fenced, ``NotRecorded`` where it cannot be put on record."""
        fence = Fence(
            cause=FenceCause.MANUAL,
            reason=_one_line(reason),
            since=self._now(),
            log_dir=None if log_dir is None else self._known(log_dir),
            topic=topic,
            by=_one_line(by),
        )
        _check(fence)
        with self._acting_by_hand:
            before = self._fenced_by_hand(fence.log_dir, topic)
            if before is not None:
                fence = replace(fence, since=before.since)
            self._record.note("fence", fence, self._now())
            self._replace_by_hand(before, fence)
        return fence

    def unfence(self, *, log_dir: str | None = None, topic: str | None = None, reason: str, by: str) -> Fence:
        """By hand; the fence that it ends."""
        with self._acting_by_hand:
            before = self._fenced_by_hand(log_dir, topic)
            if before is None:
                raise BadInput(self._why_not_lifted(log_dir, topic))
            self._record.note("unfence", replace(before, reason=_one_line(reason), by=_one_line(by)), self._now())
            self._replace_by_hand(before, None)
        return before

    def _known(self, log_dir: str) -> str:
        """As the broker spells it: a slash too many is no other log dir."""
        for known in self._log_dirs:
            if Path(known) == Path(log_dir):
                return known
        raise BadInput(f"{log_dir} is not a log dir of this broker: it has {', '.join(self._log_dirs)}")

    def _fenced_by_hand(self, log_dir: str | None, topic: str | None) -> Fence | None:
        if log_dir is None:
            return self.snapshot.topics_by_hand.get(topic or "")
        fences = self.snapshot.log_dirs_by_hand.items()
        return next((fence for fenced, fence in fences if Path(fenced) == Path(log_dir)), None)

    def _why_not_lifted(self, log_dir: str | None, topic: str | None) -> str:
        target = f"topic {topic}" if log_dir is None else log_dir
        if any(fence.log_dir == log_dir for fence in self.snapshot.in_force() if log_dir is not None):
            return (
                f"{target} is fenced because it is full, not by hand: it is lifted automatically when the disk has room"
            )
        return f"{target} is not fenced by hand"

    def _replace_by_hand(self, before: Fence | None, after: Fence | None) -> None:
        snapshot = self.snapshot
        fences = [*snapshot.log_dirs_by_hand.values(), *snapshot.topics_by_hand.values()]
        kept = [fence for fence in fences if fence is not before]
        fences = kept if after is None else [*kept, after]
        self._record.write(fences)
        with self._replacing:
            self.snapshot = self.snapshot.with_fences_by_hand(fences)


def standing_fences(snapshot: FenceSnapshot, placement: Placement) -> tuple[StandingFence, ...]:
    return tuple(
        StandingFence(
            log_dir=fence.log_dir,
            topic=fence.topic if fence.log_dir is None else None,
            cause=fence.cause,
            reason=fence.reason,
            since=fence.since,
            by=fence.by,
            partitions=_partitions_behind(fence, placement),
        )
        for fence in snapshot.in_force()
    )


def follower_fences(snapshot: FenceSnapshot) -> tuple[FollowerFence, ...]:
    """A row for each follower."""
    fences = snapshot.followers_in_force.values()
    counts = Counter(fence.follower for fence in fences)
    return tuple(
        FollowerFence(
            follower=follower, cause=fence.cause, reason=fence.reason, since=fence.since, partitions=counts[follower]
        )
        for follower, fence in {fence.follower: fence for fence in fences}.items()
        if follower is not None
    )


def _partitions_behind(fence: Fence, placement: Placement) -> int:
    if fence.log_dir is None:
        return placement.partitions_of(fence.topic or "")
    return placement.partitions_in(fence.log_dir)


def _renewed(
    cause: FenceCause, before: Mapping[str, Fence], reasons: Mapping[str, str], now: datetime
) -> dict[str, Fence]:
    return {
        log_dir: Fence(
            cause=cause,
            reason=_one_line(reason),
            since=before[log_dir].since if log_dir in before else now,
            log_dir=log_dir,
        )
        for log_dir, reason in reasons.items()
    }


def _check_seconds(seconds: float) -> None:
    if not 0 < seconds <= LONGEST_LEASE_SECONDS:
        raise BadInput(f"a lease lasts more than 0 and at most {LONGEST_LEASE_SECONDS:.0f} seconds, not {seconds}")


def _check(fence: Fence) -> None:
    if (fence.log_dir is None) is (fence.topic is None):
        raise BadInput("a fence is for one log dir or one topic")
    if fence.topic in EXEMPT_TOPICS:
        raise BadInput(f"{fence.topic} is an internal topic and is never refused")
    if not fence.reason:
        raise BadInput("a fence needs a reason: refused clients are told it")


def _one_line(text: str) -> str:
    """Fit for an answer to a client and for a line of a log."""
    return " ".join(text.encode("utf-8", "replace").decode().split())[:LONGEST_REASON]

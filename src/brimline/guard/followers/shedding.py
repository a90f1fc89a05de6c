"""Replicas in sync on a disk that is down to its reserve: taken out of their assignments, where that is switched on.

**Invariant.** While the guard enforces, ``brimline.follower.shed`` is on and followers are neither skipped nor fenced,
every disk that the last report of the followers' disks calls down to its reserve is relieved by ``act.shedding`` of
what may go. What was taken away is told until it is back; switched off, it is looked after all the same.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from brimline.act.ledger.entries import ShedEntry
from brimline.act.ledger.state import ShedRecord
from brimline.act.shedding import CrowdedDisk
from brimline.decide.admission import EXEMPT_TOPICS
from brimline.decide.peer_disks import PeerState
from brimline.guard.followers.holding import LOOK, UNTIL_WOKEN, HoldingTask
from brimline.guard.followers.report import FullFollower, PeerReport
from brimline.model import BrokerId, Failure, TopicPartition


class Shedder(Protocol):
    """What sheds; ``Shedding`` does it in a real cluster."""

    @property
    def shed(self) -> Sequence[ShedRecord]: ...

    def relieve(self, disk: CrowdedDisk) -> Sequence[ShedEntry]: ...

    def look_after(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddingReport:
    """``shed``: all that is not back; ``new``: what was taken away in this step."""

    shed: tuple[ShedEntry, ...] = ()
    new: tuple[ShedEntry, ...] = ()
    failure: Failure | None = None


class SheddingTask(HoldingTask[Shedder, SheddingReport]):
    RETRY = 300.0
    """Each try that is refused stands in the ledger."""

    _peers = PeerReport()
    _is_ledger_read = False

    def _first_report(self) -> SheddingReport:
        return SheddingReport()

    def decided(self, peers: PeerReport) -> None:
        """From any thread; returns at once."""
        is_news = _places(peers) != _places(self._peers)
        self._peers = peers
        if is_news:
            self._wake()

    def step(self) -> float:
        """Do what is due; returns the seconds until more is."""
        wait = self._seconds_to_wait()
        if wait > 0:
            return wait
        peers = self._peers
        may_act = self._is_wanted() and self._clock.seconds() < peers.counts_until
        disks = crowded_disks(peers) if may_act else []
        new: list[ShedEntry] = []

        def act() -> SheddingReport:
            for disk in disks:
                new.extend(self._holder.relieve(disk))
            if disks or self._holder.shed or not self._is_ledger_read:
                self._holder.look_after()
                self._is_ledger_read = True
            return self._seen(new)

        # Where nothing is to be shed and nothing was, an unreachable broker is other tasks' news.
        self._tell(self._tried(act, lambda failure: self._seen(new, failure if disks or self._holder.shed else None)))
        return LOOK if disks else UNTIL_WOKEN

    def _seen(self, new: Sequence[ShedEntry], failure: Failure | None = None) -> SheddingReport:
        shed = tuple(each.entry for each in self._holder.shed)
        return SheddingReport(shed=shed, new=tuple(new), failure=failure)


def crowded_disks(peers: PeerReport) -> list[CrowdedDisk]:
    """Those down to their reserve, with what is led here and in sync there, and would not fall below its minimum."""
    without_room: dict[TopicPartition, set[BrokerId]] = defaultdict(set)
    for follower in peers.full:
        for topic in follower.topics:
            for number in topic.partitions:
                without_room[TopicPartition(topic.name, number)].add(follower.broker)
    known = _known_disks(peers)
    return [
        CrowdedDisk(
            follower=follower.broker,
            log_dir=log_dir,
            lacking=follower.lacking[log_dir],
            partitions={each: frozenset(known - without_room[each]) for each in found},
            why=f"broker {follower.broker} has no room: {follower.reason}",
        )
        for follower in peers.full
        for log_dir in sorted(follower.lacking)
        if (found := _in_question(follower, log_dir))
    ]


def _known_disks(peers: PeerReport) -> set[BrokerId]:
    """The brokers of which it is known which of their partitions have no room; the own one only if all have."""
    unclear = {follower.broker for follower in peers.full if follower.failure is not None}
    known = {peer.broker for peer in peers.peers if peer.state is PeerState.FRESH} - unclear
    own = peers.own
    return known if own is None or own.state is not PeerState.FRESH or own.full else known | {own.broker}


def _in_question(follower: FullFollower, log_dir: str) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, number)
        for topic in follower.topics
        if topic.log_dir == log_dir and topic.name not in EXEMPT_TOPICS
        for number in topic.partitions
        if number not in topic.critical and number not in topic.lagging
    ]


def _places(peers: PeerReport) -> object:
    return [(disk.follower, disk.log_dir, sorted(disk.partitions)) for disk in crowded_disks(peers)]

"""Replicas in sync on a disk that is down to its reserve: taken out of their assignments, where that is switched on.

**Invariant.** While the guard enforces, ``brimline.follower.shed`` is on and followers are neither skipped nor fenced,
every disk that the last report of the followers' disks calls down to its reserve is relieved by ``act.shedding`` of
what may go. What was taken away is told until it is back; switched off, it is looked after all the same.
"""

import json
import logging
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from brimline.act.ledger.entries import ShedEntry
from brimline.act.ledger.state import ShedRecord
from brimline.act.shedding import CrowdedDisk
from brimline.decide.admission import EXEMPT_TOPICS
from brimline.decide.peer_disks import PeerState
from brimline.documents.guard_state import FailureDocument, ShedDocument
from brimline.guard.followers.report import FullFollower, PeerReport
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import BrokerId, Failure, FailureKind, ObservationFailed, TopicPartition, counted, human_bytes
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded
from brimline.service.log_lines import say

LOOK = 5.0
"""Seconds between two looks at a disk that is down to its reserve."""
LOOK_AFTER = 60.0
RETRY = 300.0
"""What was refused once is refused again, and each time stands in the ledger."""
_SHOWN = 10


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


class SheddingTask:
    """``is_wanted`` is asked before every step; ``changed`` is told of every look."""

    def __init__(
        self,
        shedder: Shedder,
        clock: Clock,
        is_wanted: Callable[[], bool],
        wake: Callable[[], None],
        changed: Callable[[SheddingReport], None],
    ) -> None:
        self._shedder = shedder
        self._clock = clock
        self._is_wanted = is_wanted
        self._wake = wake
        self._changed = changed
        self._peers = PeerReport()
        self._is_ledger_read = False
        self._retry_at = clock.seconds()
        self.report = SheddingReport()

    def decided(self, peers: PeerReport) -> None:
        """From any thread; returns at once."""
        is_news = _places(peers) != _places(self._peers)
        self._peers = peers
        if is_news:
            self._wake()

    def step(self) -> float:
        """Do what is due; returns the seconds until more is."""
        peers, now = self._peers, self._clock.seconds()
        if now < self._retry_at:
            return self._retry_at - now
        may_act = self._is_wanted() and now < peers.counts_until
        disks = crowded_disks(peers) if may_act else []
        new: list[ShedEntry] = []
        failure = None
        try:
            for disk in disks:
                new += self._shedder.relieve(disk)
            if disks or self._shedder.shed or not self._is_ledger_read:
                self._shedder.look_after()
                self._is_ledger_read = True
        except ObservationFailed as error:
            failure = error.failure
        except NotRecorded as error:
            failure = Failure(kind=FailureKind.UNREADABLE, message=str(error))
        if failure is not None and failure.kind not in (FailureKind.UNREACHABLE, FailureKind.TIMED_OUT):
            self._retry_at = now + RETRY
        shed = tuple(each.entry for each in self._shedder.shed)
        # Where nothing is to be shed and nothing was, an unreachable broker is other tasks' news.
        self.report = SheddingReport(shed=shed, new=tuple(new), failure=failure if disks or shed else None)
        self._changed(self.report)
        return LOOK if disks else LOOK_AFTER


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


def shed_families(report: SheddingReport) -> list[MetricFamily]:
    counts = sorted(Counter(each.follower for each in report.shed).items())
    rows = tuple((str(broker),) for broker, _ in counts)
    return [catalogue.FOLLOWER_SHED.family(rows, [count for _, count in counts])]


def shed_document(report: SheddingReport, servers: str) -> ShedDocument | None:
    if not report.shed and report.failure is None:
        return None
    return ShedDocument(
        partitions=tuple(str(each.partition) for each in report.shed),
        failure=FailureDocument.of(report.failure),
        does=shed_sentence(report),
        what_to_do=how_to_put_back(report.shed, servers) if report.shed else None,
    )


def shed_sentence(report: SheddingReport) -> str:
    if report.failure is not None:
        return (
            f"replicas cannot be taken away from a full disk, or what was taken not be looked after: {report.failure}"
        )
    brokers = ", ".join(map(str, sorted({each.follower for each in report.shed})))
    names = [str(each.partition) for each in report.shed]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"{counted(len(names), 'replica')} taken away because a disk of broker {brokers} was full, and not back: "
        f"{', '.join(names[:_SHOWN])}{rest}"
    )


def how_to_put_back(shed: Sequence[ShedEntry], servers: str) -> str:
    """One that was shed from two brokers has the assignment from before the first."""
    firsts: dict[TopicPartition, ShedEntry] = {}
    for each in shed:
        firsts.setdefault(each.partition, each)
    partitions = [
        {"topic": each.partition.topic, "partition": each.partition.partition, "replicas": list(each.before)}
        for each in list(firsts.values())[:_SHOWN]
    ]
    document = json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))
    rest = " (and likewise for the others, which brimline ledger has)" if len(firsts) > _SHOWN else ""
    return (
        f"when that disk has room, put back what was taken away{rest}: echo {shlex.quote(document)} | "
        f"kafka-reassign-partitions.sh --bootstrap-server {shlex.quote(servers)} --execute "
        "--reassignment-json-file /dev/stdin"
    )


class ShedNews:
    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._shed: tuple[ShedEntry, ...] = ()
        self._failure: str | None = None

    def tell(self, report: SheddingReport) -> None:
        for each in report.new:
            say(
                logging.WARNING,
                "replica-shed",
                f"{each.partition} was taken away from broker {each.follower} ({human_bytes(each.size)} in "
                f"{each.log_dir}): {each.why}; it is not put back by itself; {how_to_put_back([each], self._servers)}",
                topic=each.partition.topic,
                partition=each.partition.partition,
                follower=each.follower,
                replicas_before=",".join(map(str, each.before)),
            )
        for each in self._shed:
            if each not in report.shed:
                say(
                    logging.INFO,
                    "replica-shed-over",
                    f"{each.partition} has other replicas again than those that were left to it",
                    topic=each.partition.topic,
                    partition=each.partition.partition,
                )
        self._shed = report.shed
        failure = None if report.failure is None else str(report.failure)
        if failure is not None and failure != self._failure:
            say(logging.ERROR, "shed-failed", shed_sentence(report))
        self._failure = failure

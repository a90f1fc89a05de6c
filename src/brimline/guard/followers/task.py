"""Watching the other brokers' disks: every guard asks every broker, little and seldom, and more where a disk is full.

**Invariant.** After every step the report says what ``decide.peer_disks`` makes of the last answers. Every broker is
asked at least once in a check interval, all at once (a little chance keeps the guards of a cluster from doing so at the
same moment), sooner when one of its disks nears a limit, and not more than about once a second. One that does not
answer holds up nobody beyond one timeout.

Which partitions of a full log dir are led here is asked as soon as it is full and again and again while it is: leaders
move, topics come. It is asked at once when the disk has lost a tenth of what it had left: a replica that was assigned
to it may be fetched whole in seconds. What cannot be asked stays as it was known.

This task only looks. What it finds is carried out by ``follower_orders``, which has a thread of its own: a network that
hangs here lets no lease run out there, until the report itself is too old to count.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from brimline.decide.commits import is_past_line
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.decide.peer_disks import Peer, PeerState, aged, heard, next_question, patience_for
from brimline.decide.reserve import depth_of, reserve_of
from brimline.decide.shedding import bytes_lacking
from brimline.guard.followers.client import PATIENCE, PeerCluster
from brimline.guard.followers.report import FullFollower, PeerReport, why_peer_is_full
from brimline.model import BrokerId, BrokerLogDirs, Bytes, Failure, ObservationFailed
from brimline.observe.cluster.log_dirs import LedTopic
from brimline.service.clock import Clock

LOOK_AT_LEADERS = 10.0
"""Seconds; for so long a partition whose leader has moved here may still be replicated to a full follower."""
LOST_SHARE = 0.1
"""Of what a full disk had left. Few questions until nothing is left, however large the disk, and however busy."""
_SPREAD = 0.2
_UNTIL_WOKEN = 60.0
VOLUMES, DETAILS, BROKERS = "volumes", "details", "brokers"


class FollowerTask:
    """``limits``, ``pace``, ``reserve`` and ``line`` (of commits, in percent) are asked before every step; ``chance``
    gives numbers from 0 to 1."""

    def __init__(
        self,
        own: BrokerId,
        cluster: PeerCluster,
        clock: Clock,
        limits: Callable[[], DiskLimits],
        pace: Callable[[], Pace],
        chance: Callable[[], float],
        changed: Callable[[PeerReport], None],
        reserve: Callable[[], Bytes | None] = lambda: None,
        line: Callable[[], int] = lambda: 0,
    ) -> None:
        self._own = own
        self._cluster = cluster
        self._clock = clock
        self._limits = limits
        self._pace = pace
        self._chance = chance
        self._changed = changed
        self._reserve = reserve
        self._line = line
        self._peers: dict[BrokerId, Peer] = {}
        self._due: dict[BrokerId, float] = {}
        self._list_at = clock.seconds()
        self._details_at = 0.0
        self._asked_about: dict[BrokerId, Collection[str]] = {}
        self._had_left: dict[tuple[BrokerId, str], Bytes] = {}
        self._unknown: dict[BrokerId, Failure] = {}
        self._known: dict[BrokerId, tuple[LedTopic, ...]] = {}
        self._questions: Counter[str] = Counter()
        self.report = PeerReport()

    def ask_details_again(self) -> None:
        """Replicas are no longer where they were. From any thread; whoever says so wakes the task."""
        self._details_at = 0.0

    def step(self) -> float:
        """Ask who is due; returns the seconds until somebody is."""
        limits, pace = self._limits(), self._pace()
        if limits.are_off:
            self._forget()
            return _UNTIL_WOKEN
        failure = None
        try:
            self._list_brokers(pace)
            self._ask_volumes(limits, pace)
            self._ask_details(pace)
        except ObservationFailed as error:
            failure = error.failure
            self._nobody_answers(failure, limits, pace)
        self._tell(limits, pace, failure)
        return self._wait(pace, failure)

    def _forget(self) -> None:
        """Without limits nothing can be full."""
        self._peers, self._due, self._known, self._list_at = {}, {}, {}, self._clock.seconds()
        self.report = PeerReport(questions=dict(self._questions))
        self._changed(self.report)

    def _list_brokers(self, pace: Pace) -> None:
        if self._clock.seconds() < self._list_at:
            return
        self._questions[BROKERS] += 1
        listed = self._cluster.brokers()
        now = self._clock.seconds()
        self._list_at = now + self._spread(pace.interval)
        for broker in listed:
            self._peers.setdefault(broker, Peer(broker=broker))
            self._due.setdefault(broker, now)
        # One that is no longer listed is kept for as long as its last answer counts: perhaps it is only restarted.
        gone = [broker for broker, peer in self._peers.items() if broker not in listed and not peer.full]
        for broker in gone:
            del self._peers[broker], self._due[broker]

    def _ask_volumes(self, limits: DiskLimits, pace: Pace) -> None:
        now = self._clock.seconds()
        due = [broker for broker, at in self._due.items() if at <= now]
        if not due:
            return
        self._questions[VOLUMES] += len(due)
        self._heard(self._cluster.volumes(due), limits, pace)

    def _heard(self, answers: Mapping[BrokerId, BrokerLogDirs], limits: DiskLimits, pace: Pace) -> None:
        now, share = self._clock.seconds(), self._spread(1.0)
        for broker, answer in answers.items():
            peer = heard(self._peers[broker], answer, limits, now, patience_for(pace.interval))
            self._peers[broker] = peer
            # The same chance for all: who is asked together now is asked together the next time.
            self._due[broker] = now + next_question(peer, limits, pace) * share

    def _nobody_answers(self, failure: Failure, limits: DiskLimits, pace: Pace) -> None:
        """Not even this broker: that is a silence of all of them."""
        now, observed_at = self._clock.seconds(), self._clock.now()
        silent = [broker for broker, at in self._due.items() if at <= now]
        answers = {
            broker: BrokerLogDirs(broker=broker, address="", observed_at=observed_at, log_dirs={}, failure=failure)
            for broker in silent
        }
        self._heard(answers, limits, pace)

    def _ask_details(self, pace: Pace) -> None:
        """Of those that answer; of the others what was there is known, and who leads it and is in sync is asked."""
        full, fresh = self._full(), self._freshly_full()
        self._known = {broker: topics for broker, topics in self._known.items() if broker in full}
        remembered = {broker: topics for broker, topics in self._known.items() if broker not in fresh}
        asked = {**fresh, **dict.fromkeys(remembered, ())}
        is_the_same, self._asked_about = asked == self._asked_about, asked
        is_early = self._clock.seconds() < self._details_at
        if not asked or (is_the_same and is_early and not self._has_lost_much()):
            return
        self._had_left = self._left()
        self._questions[DETAILS] += len(fresh)
        self._details_at = self._clock.seconds() + self._spread(min(pace.interval, LOOK_AT_LEADERS))
        try:
            answers = self._cluster.followed(fresh, remembered)
        except ObservationFailed as error:
            answers = dict.fromkeys(fresh, error.failure)
        self._unknown = {broker: answer for broker, answer in answers.items() if isinstance(answer, Failure)}
        self._known |= {broker: answer for broker, answer in answers.items() if not isinstance(answer, Failure)}

    def _has_lost_much(self) -> bool:
        return any(left < self._had_left.get(place, left) * (1 - LOST_SHARE) for place, left in self._left().items())

    def _left(self) -> dict[tuple[BrokerId, str], Bytes]:
        return {
            (broker, each.path): each.space.usable
            for broker, peer in self._peers.items()
            if broker != self._own
            for each in peer.full
            if each.space is not None
        }

    def _full(self) -> dict[BrokerId, Collection[str]]:
        return {
            broker: tuple(each.path for each in peer.full)
            for broker, peer in self._peers.items()
            if broker != self._own and peer.full
        }

    def _freshly_full(self) -> dict[BrokerId, Collection[str]]:
        return {broker: paths for broker, paths in self._full().items() if self._peers[broker].state is PeerState.FRESH}

    def _tell(self, limits: DiskLimits, pace: Pace, failure: Failure | None) -> None:
        now, patience = self._clock.seconds(), patience_for(pace.interval)
        self._peers = {broker: aged(peer, now, patience) for broker, peer in self._peers.items()}
        self.report = PeerReport(
            peers=tuple(peer for broker, peer in sorted(self._peers.items()) if broker != self._own),
            own=self._peers.get(self._own),
            full=tuple(self._follower(broker, limits, pace) for broker in sorted(self._full())),
            failure=failure,
            patience=patience,
            counts_until=now + patience,
            questions=dict(self._questions),
        )
        self._changed(self.report)

    def _follower(self, broker: BrokerId, limits: DiskLimits, pace: Pace) -> FullFollower:
        peer = self._peers[broker]
        is_fresh = peer.state is PeerState.FRESH
        full, wish, wait = peer.full, self._reserve(), next_question(peer, limits, pace)
        spaces = {each.path: (each.space, each.readings) for each in full if each.space is not None}
        reserves = {path: reserve_of(space, limits, wish, readings, wait) for path, (space, readings) in spaces.items()}
        return FullFollower(
            broker=broker,
            reason=" and ".join(why_peer_is_full(each, limits) for each in full),
            log_dirs=tuple(each.path for each in full),
            topics=self._known.get(broker, ()),
            depths={path: depth_of(space, reserves[path]) for path, (space, _) in spaces.items()},
            reserve=min(reserves.values(), default=None),
            lacking={
                path: bytes_lacking(space, limits)
                for path, (space, _) in spaces.items()
                # Without the rate: a burst is the fence's matter, which ends by itself, as shedding does not.
                if is_fresh and space.usable < reserve_of(space, limits, wish, (), wait)
            },
            past_line=frozenset(
                path for path, (space, _) in spaces.items() if is_past_line(space, limits, self._line())
            ),
            failure=self._unknown.get(broker),
        )

    def _wait(self, pace: Pace, failure: Failure | None) -> float:
        now = self._clock.seconds()
        moments = [self._list_at, *self._due.values(), *([self._details_at] if self._asked_about else [])]
        soonest = max(min(moments) - now, 0.0)
        return max(soonest, min(pace.interval, PATIENCE / timedelta(seconds=1))) if failure else soonest

    def _spread(self, seconds: float) -> float:
        """Somewhat earlier, by chance: never later than what was promised."""
        return seconds * (1 - _SPREAD * self._chance())

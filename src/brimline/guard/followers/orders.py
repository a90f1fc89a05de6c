"""What the guard has its gateway do about full followers: said when it changes, and said again every second.

**Invariant.** What is in force at the gateway is what the last report of the followers' disks implies, for no longer
than ``LEASE`` after this guard ends, hangs or is cut off from the gateway, and not at all once the report itself is too
old to count. A guard that only observes, or whose gateway cannot do what is to be done, orders nothing.

Thousands of partitions may be concerned: they are sent when they change, under a number of their own, and renewed by
that number. A gateway that does not know the number was started meanwhile, and is sent everything again. When what is
to be done changes from one action to the other, the first is taken back before the second is ordered.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Protocol

from brimline.decide.admission import EXEMPT_TOPICS
from brimline.decide.commits import OFFSETS_TOPIC
from brimline.decide.followers import Choice, FollowerAction
from brimline.decide.reserve import Depth
from brimline.documents.orders import FollowerFencesOrder, SkipsOrder, WithheldFollower, WithheldTopic
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.model import BadInput, BrokerId, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.log_dirs import LedTopic
from brimline.service.clock import Clock

LEASE = 20.0
"""Seconds; longer than a busy machine keeps a thread waiting, because each time it runs out the follower grows."""
RENEW = 1.0
_UNTIL_WOKEN = 60.0

Topics = Mapping[BrokerId, tuple[LedTopic, ...]]


class HoldingGateway(Protocol):
    """What is asked of the gateway; ``GatewayClient`` asks a real one."""

    passed_unread: int
    """Fetches since its start that it had to pass unread, as of its last answer."""

    def hold_back(self, order: SkipsOrder | FollowerFencesOrder) -> bool: ...


class FollowerOrders:
    """``choice`` is asked before every step. ``changed`` is told of every new report."""

    def __init__(
        self,
        gateway: HoldingGateway,
        clock: Clock,
        choice: Callable[[], Choice],
        wake: Callable[[], None],
        changed: Callable[[OrderReport], None],
        *,
        is_enforced: bool,
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._choice = choice
        self._wake = wake
        self._changed = changed
        self._is_enforced = is_enforced
        self._peers = PeerReport()
        self._epoch = 0
        self._in_force: tuple[FollowerAction, Topics] | None = None
        """What the gateway was told last; ``None``: nothing, or nobody knows."""
        self._passed_before = 0
        self._leaks_until = 0.0
        self.report = OrderReport(choice=choice(), is_enforced=is_enforced)

    def decided(self, peers: PeerReport) -> None:
        """From any thread; returns at once."""
        is_news = _state(peers.full) != _state(self._peers.full)
        self._peers = peers
        if is_news:
            self._wake()

    def step(self) -> float:
        """Say what there is to say; returns the seconds until it must be said again."""
        choice, peers = self._choice(), self._peers
        full = peers.full if self._clock.seconds() < peers.counts_until else ()
        followers = tuple(_concerned(each, choice.action) for each in full)
        may_act = self._is_enforced and choice.obstacle is None
        wanted = (choice.action, _held(followers)) if may_act and any(each.held for each in followers) else None
        failure = None
        try:
            self._order(wanted, followers)
        except ObservationFailed as error:
            failure = error.failure
        except BadInput as refusal:
            failure = Failure(kind=FailureKind.UNSUPPORTED, message=f"the gateway refuses: {refusal}")
        if failure is not None:
            self._in_force = None
        self.report = OrderReport(
            choice=choice,
            is_enforced=self._is_enforced,
            action=None if self._in_force is None else self._in_force[0],
            followers=followers,
            failure=failure,
            leaks=self._leaks(),
        )
        self._changed(self.report)
        return RENEW if wanted is not None or followers else _UNTIL_WOKEN

    def _leaks(self) -> bool:
        """Whether a fetch passed unread a short while ago: then it is not known that a follower is held back."""
        now, passed = self._clock.seconds(), self._gateway.passed_unread
        if self._in_force is not None and self._in_force[0] is FollowerAction.SKIP and passed > self._passed_before:
            self._leaks_until = now + LEASE
        self._passed_before = passed
        return now < self._leaks_until

    def _order(self, wanted: tuple[FollowerAction, Topics] | None, followers: tuple[FullFollower, ...]) -> None:
        before = self._in_force
        if before is not None and (wanted is None or wanted[0] is not before[0]):
            self._tell(before[0], ())
            self._in_force = None
        if wanted is None:
            return
        if wanted == before and self._renewed(wanted[0]):
            return
        self._tell(wanted[0], tuple(each for each in followers if each.held))
        self._in_force = wanted

    def _tell(self, action: FollowerAction, followers: tuple[FullFollower, ...]) -> None:
        self._epoch += 1
        self._gateway.hold_back(_order(action, self._epoch, followers))

    def _renewed(self, action: FollowerAction) -> bool:
        return self._gateway.hold_back(_order(action, self._epoch, None))


def _concerned(follower: FullFollower, action: FollowerAction) -> FullFollower:
    """Kafka's own topics are skipped like all others, but Produce to them is never refused; commits may be."""
    if action is FollowerAction.SKIP:
        return replace(follower, held=follower.topics)
    topics = tuple(
        topic for topic in follower.topics if topic.name not in EXEMPT_TOPICS or _holds_commits(topic, follower)
    )
    if action is FollowerAction.FENCE:
        return replace(follower, topics=topics, held=topics)
    held = (
        topic
        if _holds_commits(topic, follower)
        else topic.only(_refused(topic, follower.depths.get(topic.log_dir, Depth.LIMIT)))
        for topic in topics
    )
    return replace(follower, topics=topics, held=tuple(topic for topic in held if topic.partitions))


def _holds_commits(topic: LedTopic, follower: FullFollower) -> bool:
    return topic.name == OFFSETS_TOPIC and topic.log_dir in follower.past_line


def _refused(topic: LedTopic, depth: Depth) -> Collection[int]:
    by_depth = {Depth.LIMIT: (), Depth.RESERVE: topic.critical, Depth.LAST: topic.partitions}
    return by_depth[depth]


def _state(followers: tuple[FullFollower, ...]) -> object:
    """Without the reasons: those have figures in them that change with every look."""
    return {each.broker: (each.topics, each.depths, each.past_line) for each in followers}


def _held(followers: tuple[FullFollower, ...]) -> Topics:
    return {each.broker: each.held for each in followers}


def _order(
    action: FollowerAction, epoch: int, followers: tuple[FullFollower, ...] | None
) -> SkipsOrder | FollowerFencesOrder:
    """``None`` renews what was said under that epoch."""
    if action is FollowerAction.SKIP:
        skipped = None if followers is None else {int(each.broker): _held_topics(each) for each in followers}
        return SkipsOrder(epoch=epoch, seconds=LEASE, followers=skipped)
    fenced = None if followers is None else {int(each.broker): _fenced(each) for each in followers}
    return FollowerFencesOrder(epoch=epoch, seconds=LEASE, followers=fenced)


def _held_topics(follower: FullFollower) -> tuple[WithheldTopic, ...]:
    return tuple(
        WithheldTopic(topic=topic.name, topic_id=topic.topic_id, partitions=tuple(topic.partitions))
        for topic in follower.held
    )


def _fenced(follower: FullFollower) -> WithheldFollower:
    reason = f"a follower's disk is full: broker {follower.broker}: {follower.reason}"
    return WithheldFollower(reason=reason, topics=_held_topics(follower))

"""Full followers: what is done about one, and how it is not sent what it has no room for.

**Rule.** What the operator names (``brimline.follower.action``) is what the leader's guard does. ``auto`` skips where
this broker's gateway stands between it and its followers, and keeps a reserve elsewhere: skipping needs the brokers'
own listener to run through the gateway, refusing only the clients' one. With interception a full follower's own gateway
skips: the kernel turns its fetches aside on their way out, and leaders only keep a reserve.

- *Skip* (KIP-1201): the follower is not sent the partition. It leaves the ISR, clients go on, and it catches up when it
  has room: availability before durability.
- *Fence*: clients are refused for the partition although the leader has room. No replica falls behind: durability
  before availability.
- *Reserve*: clients go on until little is left on the follower's disk, and are refused then (``decide.reserve``).

Where what is to be done cannot be done, nothing is done in its place, and ``obstacle`` says why.

**Promise** of skipping. A blocked partition's log does not grow on the follower: no answer that reaches it holds
records of that partition. Everything else that the follower asks for it gets as if nobody stood between. The follower
leaves the ISR because it lags, and nothing has to be remembered to let it go on: once a partition is no longer blocked,
the follower itself asks for it again, from where its log ends.

**How.** A follower that is answered UNKNOWN_LEADER_EPOCH (75) for a partition takes it calmly: it takes the partition
out of its session, and asks for it anew ``replica.fetch.backoff.ms`` later (a second by default). So a blocked
partition goes round and round:

1. *Probe.* The follower asks for it anew. The request goes on, but for one byte. The broker nevertheless sends a whole
   batch if there is one; the records are taken out of the answer. What remains tells the follower the high watermark
   and where the leader's log starts, so that it deletes what the leader has deleted, and tells the leader the same of
   the follower: DeleteRecords ends, and the follower's disk comes down. The log start is passed on only up to the
   offset that was fetched from, where the follower's log ends: beyond that it would give the partition up for good.
2. *Refuse.* Whatever the follower asks next, the partition is not part of it: it is left out of the request, the broker
   is told to forget it, and the answer has error 75 for it. Without this step follower and leader would talk without a
   pause, because there are always records to be had.

**Invariant.** After every request, what the follower has in its session is what the broker has in its own, and
``withheld`` in addition. It holds by following the session from its beginning; a session that began unseen is ended,
once, by a request whose epoch the broker must refuse. The follower then begins a new one by asking for everything. So a
connection may be left alone again at any moment at which nothing is withheld and nothing is probed (``owes`` is false).

- A full fetch begins the session anew, whatever there was.
- A full fetch of which nothing is left is sent on as a fetch for nothing, without a session: the broker answers that at
  once, and the follower, which now has no session either, asks in full next time.
- A session of which nothing is left at the broker is ended by the broker, and the follower is told so in its answer.
- A partition that is released right after its probe is refused once more: the broker has it with the limit of one byte.
- A partition that is released while it is withheld, although the follower still believes it in its session, would
  never be asked for again. It never comes to that with a follower that backs off; if it does, the session is ended.
- Errors of a whole answer (70, 71, 106) make the follower begin anew, and need no rule.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum

AUTO = "auto"


class FollowerAction(Enum):
    """The value is the word of the key, of JSON and of metrics."""

    SKIP = "skip"
    FENCE = "fence"
    RESERVE = "reserve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    action: FollowerAction
    why: str
    """Completes "it is … because …"."""
    obstacle: str | None = None


def choose_action(wish: str, *, carries_replication: bool, carries_clients: bool, skips_itself: bool = False) -> Choice:
    """``wish`` is the key's value; the others tell what of this broker runs through its gateway.

    ``skips_itself``: a broker's own fetches pass through its own gateway while its disk is full (interception).
    """
    if skips_itself and wish in (AUTO, FollowerAction.SKIP.value):
        why = "a full broker leaves out its own fetches (interception), and should one not, a reserve is kept here"
        return _refuse(FollowerAction.RESERVE, why, carries_clients=carries_clients)
    if wish == FollowerAction.SKIP.value:
        return _skip("brimline.follower.action says so", carries_replication=carries_replication)
    if wish == FollowerAction.FENCE.value:
        return _refuse(FollowerAction.FENCE, "brimline.follower.action says so", carries_clients=carries_clients)
    if wish == FollowerAction.RESERVE.value:
        return _refuse(FollowerAction.RESERVE, "brimline.follower.action says so", carries_clients=carries_clients)
    if carries_replication:
        return _skip("followers fetch through the gateway", carries_replication=True)
    return _refuse(
        FollowerAction.RESERVE,
        "followers do not fetch through the gateway (brimline.gateway.listeners does not name the replication "
        "listener)",
        carries_clients=carries_clients,
    )


def _skip(why: str, *, carries_replication: bool) -> Choice:
    obstacle = (
        "followers do not fetch through the gateway: add the replication listener to brimline.gateway.listeners, or "
        "use reserve or fence"
    )
    return Choice(action=FollowerAction.SKIP, why=why, obstacle=None if carries_replication else obstacle)


def _refuse(action: FollowerAction, why: str, *, carries_clients: bool) -> Choice:
    obstacle = "no listener of this broker goes through a gateway, so nothing can be refused"
    return Choice(action=action, why=why, obstacle=None if carries_clients else obstacle)


Partition = tuple[bytes, int]
"""Topic and number; the topic by whatever bytes the requests of a session call it."""

SKIPPED_ERROR = 75
"""UNKNOWN_LEADER_EPOCH: of all errors the one that a follower backs off from without a word in its log."""

_FIRST_EPOCH = 1
_LARGEST_EPOCH = 2**31 - 1
_FULL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPlan:
    """What becomes of a fetch. ``probed`` and ``dropped`` are positions in what it lists."""

    probed: tuple[int, ...] = ()
    """Go on for one byte, and lose their records in the answer."""
    dropped: tuple[int, ...] = ()
    forgotten: Set[Partition] = frozenset()
    """The broker shall take them out of its session."""
    refused: Set[Partition] = frozenset()
    """Get the error in the answer."""
    epoch: int | None = None
    """In place of the epoch that the fetch has."""
    is_restart: bool = False
    """The broker will refuse it as a whole, and the follower will begin anew."""

    @property
    def changes_request(self) -> bool:
        return bool(self.probed or self.dropped or self.forgotten or self.epoch is not None)

    @property
    def changes_answer(self) -> bool:
        return bool(self.probed or self.refused)


UNCHANGED = FetchPlan()


@dataclass(slots=True)
class FollowerSession:
    """What is known of one follower's fetch session. It is told of the requests of one connection, in their order."""

    _partitions: set[Partition] | None = None
    """What the follower has in its session; ``None``: it began unseen."""
    _next_epoch: int | None = None
    _blocked: frozenset[Partition] = frozenset()
    _present: set[Partition] = field(default_factory=set)
    """The blocked ones of the session: kept, since most fetches have none, and there may be thousands blocked."""
    _probed: set[Partition] = field(default_factory=set)
    _withheld: set[Partition] = field(default_factory=set)

    @property
    def owes(self) -> bool:
        """Whether follower and broker must not be left to themselves yet."""
        return bool(self._withheld or self._probed)

    def plan(
        self, *, epoch: int, listed: Sequence[Partition], forgotten: Iterable[Partition], blocked: frozenset[Partition]
    ) -> FetchPlan:
        """For the next fetch of this follower. ``blocked`` is not changed afterwards."""
        if epoch <= _FULL:
            return self._plan_full(epoch, listed, blocked)
        if self._partitions is None or epoch != self._next_epoch:
            return self._restart(epoch)
        return self._plan_incremental(self._partitions, epoch, listed, forgotten, blocked)

    def _plan_full(self, epoch: int, listed: Sequence[Partition], blocked: frozenset[Partition]) -> FetchPlan:
        refused = self._probed.intersection(listed) & blocked
        self._partitions = set(listed)
        self._next_epoch = _FIRST_EPOCH if epoch == _FULL else None
        self._blocked = blocked
        self._present = self._partitions & blocked
        self._probed = self._present - refused
        self._withheld = refused
        is_left_with_nothing = bool(refused) and len(refused) == len(self._partitions)
        if is_left_with_nothing:
            self._next_epoch = None
        return FetchPlan(
            probed=_positions(listed, self._probed),
            dropped=_positions(listed, refused),
            refused=refused,
            epoch=-1 if is_left_with_nothing else None,
        )

    def _plan_incremental(
        self,
        partitions: set[Partition],
        epoch: int,
        listed: Sequence[Partition],
        forgotten: Iterable[Partition],
        blocked: frozenset[Partition],
    ) -> FetchPlan:
        partitions.difference_update(forgotten)
        if blocked is not self._blocked:
            self._blocked, self._present = blocked, partitions & blocked
        else:
            self._present &= partitions
        before = self._probed & partitions
        withheld = self._withheld & partitions
        partitions.update(listed)
        self._present.update(blocked.intersection(listed))
        passing = set(listed) - blocked
        probed = (self._present - before).intersection(listed)
        refused = (self._present | before) - probed - passing
        if withheld - refused - probed - passing:
            return self._restart(epoch)
        self._probed, self._withheld = probed, refused
        self._next_epoch = _after(epoch)
        if not (probed or refused):
            return UNCHANGED
        return FetchPlan(
            probed=_positions(listed, probed),
            dropped=_positions(listed, refused),
            forgotten=refused - withheld,
            refused=refused,
        )

    def _restart(self, epoch: int) -> FetchPlan:
        self._partitions = self._next_epoch = None
        self._present, self._probed, self._withheld = set(), set(), set()
        return FetchPlan(epoch=_after(epoch), is_restart=True)


def _positions(listed: Sequence[Partition], wanted: Set[Partition]) -> tuple[int, ...]:
    return tuple(position for position, partition in enumerate(listed) if partition in wanted) if wanted else ()


def _after(epoch: int) -> int:
    """Epochs begin again at 1, because 0 asks for a new session."""
    return _FIRST_EPOCH if epoch == _LARGEST_EPOCH else epoch + 1

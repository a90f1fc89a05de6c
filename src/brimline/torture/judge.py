"""The judge: a history in, a verdict for every invariant out. Pure, so any run can be judged again.

An invariant's rule is in its check's docstring, to the letter. A check yields what breaks it, with the line of the
history at which that shows. What a fault excuses is in the fault's own table (``faults``) and in the history with it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter

from brimline.torture.history import (
    LEADER,
    NOTHING,
    ONCE,
    Acked,
    AnyEvent,
    Begun,
    Client,
    Complaint,
    Created,
    Emptied,
    Ended,
    Fault,
    Fenced,
    Finished,
    LogEnd,
    LogStart,
    Planned,
    Recovered,
    Released,
    Sent,
    Stored,
    Undone,
)

SETTLED_SECONDS = 2.0
"""What was on its way to the broker when the fence came up is stored when two log ends this far apart are the same."""

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Violation:
    """``line``: of the history, counted from 1."""

    line: int
    sentence: str


@dataclass(slots=True)
class Facts:
    """The history by kind, each event with its line."""

    begun: Begun | None = None
    clients: dict[str, Client] = field(default_factory=dict)
    sent: dict[tuple[str, int], float] = field(default_factory=dict)
    acked: list[tuple[int, Acked]] = field(default_factory=list)
    stored: dict[Partition, list[tuple[int, Stored]]] = field(default_factory=lambda: defaultdict(list))
    faults: dict[tuple[int, str], Fault] = field(default_factory=dict)
    undone: dict[tuple[int, str], float] = field(default_factory=dict)
    fences: dict[int, Fenced] = field(default_factory=dict)
    released: dict[int, tuple[int, Released]] = field(default_factory=dict)
    log_ends: list[tuple[int, LogEnd]] = field(default_factory=list)
    log_starts: list[tuple[int, LogStart]] = field(default_factory=list)
    log_start: dict[Partition, int] = field(default_factory=dict)
    """As last seen."""
    planned: set[tuple[str, int, int]] = field(default_factory=set)
    created: list[Created] = field(default_factory=list)
    emptied: list[Emptied] = field(default_factory=list)
    ended: list[tuple[int, Ended]] = field(default_factory=list)
    complaints: list[tuple[int, Complaint]] = field(default_factory=list)
    recovered: list[tuple[int, Recovered]] = field(default_factory=list)
    finished: Finished | None = None
    lines: int = 0

    def add(self, line: int, event: AnyEvent) -> None:
        self.lines = line
        match event:
            case Begun():
                self.begun = event
            case Client():
                self.clients[event.client] = event
            case Sent():
                self.sent[event.client, event.number] = event.at
            case Acked():
                self.acked.append((line, event))
            case Stored():
                self.stored[event.topic, event.partition].append((line, event))
            case Fault():
                self.faults[event.step, event.fault] = event
            case Undone():
                self.undone[event.step, event.fault] = event.at
            case Fenced():
                self.fences[event.fence] = event
            case Released():
                self.released[event.fence] = (line, event)
            case LogEnd():
                self.log_ends.append((line, event))
            case LogStart():
                self.log_starts.append((line, event))
                self.log_start[event.topic, event.partition] = event.start
            case Planned():
                self.planned.add((event.topic, event.partition, event.target))
            case Created():
                self.created.append(event)
            case Emptied():
                self.emptied.append(event)
            case Ended():
                self.ended.append((line, event))
            case Complaint():
                self.complaints.append((line, event))
            case Recovered():
                self.recovered.append((line, event))
            case Finished():
                self.finished = event

    @property
    def recreated(self) -> set[str]:
        return {each.topic for each in self.created}

    def lost_at(self, where: Partition) -> float:
        """When a fault last took this log away or put another one in its place; 0: never."""
        emptied = [each.at for each in self.emptied if (each.topic, each.partition) == where]
        return max([*emptied, *(each.at for each in self.created if each.topic == where[0])], default=0.0)

    def is_suspended(self, invariant: str, target: str, at: float) -> bool:
        """By a fault that touches ``target`` and was in force at that time."""
        return any(
            invariant in fault.suspends and fault.target == target and fault.at <= at <= self.undone.get(key, at)
            for key, fault in self.faults.items()
        )


def acknowledged_stored(facts: Facts) -> Iterator[Violation]:
    """Every acknowledged record is read back at the end, at the offset that was told.

    Asked of clients with acks=all, and with acks=1 where there is one replica. Not asked of records below the log start
    (``only-planned-deleted`` is about those), of topics that were deleted by a fault, and of records acknowledged
    before a fault took away the only copy of their log. Not judged where the run ended before everything was read back.
    """
    if facts.finished is None:
        return
    one_replica = facts.begun is None or facts.begun.replicas == 1
    found = {(each.client, each.number, where[1]) for where, stored in facts.stored.items() for _, each in stored}
    at_offset = {
        (*where, each.offset): (each.client, each.number) for where, s in facts.stored.items() for _, each in s
    }
    for line, acked in facts.acked:
        client = facts.clients[acked.client]
        where = (client.topic, acked.partition)
        if client.promise == NOTHING or (client.promise == LEADER and not one_replica):
            continue
        if client.topic in facts.recreated or acked.at <= facts.lost_at(where):
            continue
        start = facts.log_start.get(where, 0)
        if acked.offset < start and (acked.offset >= 0 or start > 0):
            continue
        name = f"record {acked.number} of {acked.client}, acknowledged in {where[0]}-{where[1]}"
        if (acked.client, acked.number, acked.partition) not in found:
            yield Violation(line, f"{name} at offset {acked.offset}, is not there")
        elif acked.offset >= 0 and at_offset.get((*where, acked.offset)) != (acked.client, acked.number):
            there = at_offset.get((*where, acked.offset))
            yield Violation(line, f"{name}, is not at offset {acked.offset} as was told, where {there} is")


def once_in_order(facts: Facts) -> Iterator[Violation]:
    """The records of an idempotent client are in each log at most once, and in the order in which they were sent.

    Not asked of topics that were deleted by a fault; where a fault took away the only copy of a log, of what was sent
    after it.
    """
    for where, stored in facts.stored.items():
        if where[0] in facts.recreated:
            continue
        lost_at = facts.lost_at(where)
        for client in {each.client for _, each in stored}:
            known = facts.clients.get(client)
            if known is None or known.promise != ONCE:
                continue
            own = [
                (line, each)
                for line, each in sorted(stored, key=lambda pair: pair[1].offset)
                if each.client == client and facts.sent.get((client, each.number), lost_at) >= lost_at
            ]
            times = Counter(each.number for _, each in own)
            for (_, before), (line, after) in pairwise(own):
                name = f"record {after.number} of {client} in {where[0]}-{where[1]}"
                if times[after.number] > 1 and after.number <= before.number:
                    yield Violation(line, f"{name} is stored {times[after.number]} times, again at {after.offset}")
                elif after.number < before.number:
                    yield Violation(line, f"{name} is stored at {after.offset}, behind record {before.number}")


def nothing_behind_the_fence(facts: Facts) -> Iterator[Violation]:
    """Nothing is stored in a partition while it is fenced.

    A fence is up from the gateway's own answer (``Fenced``) to the last moment at which it was known to be up
    (``Released``). Log ends count that were asked for and told in between; those of one partition under one leader
    epoch are a run.
    1. A record that was handed to its client after the run's first log end was asked for, and is stored below its last
       one, was stored behind the fence.
    2. Once two log ends SETTLED_SECONDS apart were the same, a later one is the same too: retries of older records.
    """
    for run in _runs(facts):
        yield from _sent_behind(facts, run)
        yield from _grown_behind(run)


def _runs(facts: Facts) -> Iterator[list[tuple[int, LogEnd]]]:
    """The log ends that count, by fence, partition and leader epoch, in their order."""
    within = []
    for line, each in facts.log_ends:
        fenced, released = facts.fences[each.fence], facts.released.get(each.fence)
        if fenced.at <= each.asked_at and (released is None or each.at <= released[1].at):
            within.append((line, each))
    key = attrgetter("fence", "topic", "partition", "leader_epoch")
    for _, run in groupby(sorted(within, key=lambda pair: (key(pair[1]), pair[0])), key=lambda pair: key(pair[1])):
        yield list(run)


def _sent_behind(facts: Facts, run: list[tuple[int, LogEnd]]) -> Iterator[Violation]:
    (_, first), (line, last) = run[0], run[-1]
    where = (first.topic, first.partition)
    if facts.lost_at(where) >= first.asked_at:
        return  # the offsets are of another log now
    for _, each in facts.stored.get(where, ()):
        sent_at = facts.sent.get((each.client, each.number))
        if each.offset < last.end and sent_at is not None and sent_at > first.asked_at:
            fence = facts.fences[first.fence]
            yield Violation(
                line,
                f"record {each.number} of {each.client} was sent {sent_at - first.asked_at:.1f} s after "
                f"{fence.log_dir} of broker {fence.broker} was fenced, and stored in {where[0]}-{where[1]} at offset "
                f"{each.offset} before the fence was gone",
            )


def _grown_behind(run: list[tuple[int, LogEnd]]) -> Iterator[Violation]:
    settled: int | None = None
    same_since: LogEnd | None = None
    for line, each in run:
        if settled is not None and each.end > settled:
            yield Violation(
                line, f"{each.topic}-{each.partition} grew from {settled} to {each.end} while it was fenced"
            )
            return
        if same_since is None or same_since.end != each.end:
            same_since = each
        elif each.asked_at - same_since.at >= SETTLED_SECONDS:
            settled = each.end


def full_stays_fenced(facts: Facts) -> Iterator[Violation]:
    """A fence goes only when its volume is below the limit again."""
    for fence, (line, released) in facts.released.items():
        fenced = facts.fences[fence]
        target = f"broker-{fenced.broker}"
        if released.is_still_full and not facts.is_suspended("full-stays-fenced", target, released.at):
            yield Violation(
                line,
                f"{fenced.log_dir} of broker {fenced.broker} is {released.used_percent:.1f} % full and not fenced",
            )


def only_planned_deleted(facts: Facts) -> Iterator[Violation]:
    """A log start is 0 or the target of a trim that a ledger has on record; that of a protected topic is 0."""
    protected = facts.begun.protected if facts.begun else []
    for line, each in facts.log_starts:
        name = f"{each.topic}-{each.partition} begins at {each.start}"
        if each.start and each.topic in protected:
            yield Violation(line, f"{name}, and the topic is protected")
        elif each.start and (each.topic, each.partition, each.start) not in facts.planned:
            yield Violation(line, f"{name}, and no ledger has planned that")


def no_enospc(facts: Facts) -> Iterator[Violation]:
    """No broker speaks of a disk without space in its log."""
    for line, each in facts.complaints:
        if each.what == "no-space" and not facts.is_suspended("no-enospc", each.process, each.at):
            yield Violation(line, f"{each.process}: {each.line}")


def brokers_alive(facts: Facts) -> Iterator[Violation]:
    """No broker and no controller ends by itself."""
    for line, each in facts.ended:
        if each.process.startswith(("broker", "controller")) and not facts.is_suspended(
            "brokers-alive", each.process, each.at
        ):
            yield Violation(line, f"{each.process} ended with {each.exit_code}: {each.said}")


def brimline_alive(facts: Facts) -> Iterator[Violation]:
    """No gateway and no guard ends by itself, or reports a bug of its own."""
    for line, each in facts.ended:
        if each.process.startswith(("gateway", "guard")):
            yield Violation(line, f"{each.process} ended with {each.exit_code}: {each.said}")
    for line, complaint in facts.complaints:
        if complaint.what == "bug":
            yield Violation(line, f"{complaint.process}: {complaint.line}")


def recovers(facts: Facts) -> Iterator[Violation]:
    """When every fault is undone, every process answers, no fence is left, and every client gets acknowledgements."""
    for line, each in facts.recovered:
        if not each.works:
            yield Violation(line, f"{each.what} does not work again: {' '.join(each.why.split())}")
    if facts.finished is None:
        yield Violation(facts.lines, "the run did not come to its end")


@dataclass(frozen=True, slots=True)
class Invariant:
    """``seen``: whether the history has anything that could break it. What was never looked at does not hold."""

    name: str
    sentence: str
    check: Callable[[Facts], Iterable[Violation]]
    seen: Callable[[Facts], object]


INVARIANTS = (
    Invariant(
        "acknowledged-stored",
        "what was acknowledged is stored, where it was said",
        acknowledged_stored,
        lambda facts: facts.finished and facts.acked,
    ),
    Invariant(
        "once-in-order",
        "idempotent clients' records are stored once, in order",
        once_in_order,
        lambda facts: facts.stored,
    ),
    Invariant(
        "nothing-behind-the-fence",
        "nothing is stored in a partition while it is fenced",
        nothing_behind_the_fence,
        lambda facts: facts.log_ends,
    ),
    Invariant(
        "full-stays-fenced",
        "a fence goes only when its disk has room",
        full_stays_fenced,
        lambda facts: facts.released,
    ),
    Invariant(
        "only-planned-deleted",
        "log starts move only to targets on record, never of protected topics",
        only_planned_deleted,
        lambda facts: facts.log_starts,
    ),
    Invariant("no-enospc", "no broker runs out of space", no_enospc, lambda facts: facts.begun),
    Invariant("brokers-alive", "no broker and no controller ends by itself", brokers_alive, lambda facts: facts.begun),
    Invariant(
        "brimline-alive",
        "no gateway and no guard ends by itself or has a bug",
        brimline_alive,
        lambda facts: facts.begun,
    ),
    Invariant("recovers", "with every fault undone everything works again", recovers, lambda facts: facts.recovered),
)


@dataclass(frozen=True, slots=True)
class InvariantVerdict:
    """``was_seen``: without it there was no data."""

    invariant: Invariant
    violations: tuple[Violation, ...]
    was_seen: bool

    @property
    def holds(self) -> bool:
        return not self.violations


def judge(events: Iterable[AnyEvent]) -> tuple[Facts, Sequence[InvariantVerdict]]:
    """A verdict for each of ``INVARIANTS``, violations in the order of the history."""
    facts = Facts()
    for line, event in enumerate(events, 1):
        facts.add(line, event)
    by_line = attrgetter("line")
    return facts, [
        InvariantVerdict(each, tuple(sorted(each.check(facts), key=by_line)), bool(each.seen(facts)))
        for each in INVARIANTS
    ]

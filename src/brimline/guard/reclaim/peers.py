"""The brakes of the guards of other replicas, as they have left them in Kafka: a trim takes from their logs, too.

**Unknown is not none.** A note that cannot be read this time counts as it was read last; one that never could be read
counts for nothing, and a sentence says so: a ceiling is not given up because a right is missing. A note counts for a
day after it was written, by the time that the minimum retention believes in: a guard that is gone for good stops nobody
for ever, and a clock that is ahead makes no note old.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from brimline.act.ledger.state import Pause
from brimline.decide.reclaim.brakes import strictest
from brimline.documents.guard_note import GuardNote, read_note
from brimline.model import BrokerId, Failure, ObservationFailed
from brimline.model.reclaim import ReclaimPolicy
from brimline.observe.cluster.group_notes import Note
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.service.clock import Clock

COUNTS_FOR_MS = 24 * 3_600_000
FRESH_SECONDS = 5.0
"""Before a batch, notes that were read so recently are not read again."""
_NO_ENTRY = -1


class AskNotes(Protocol):
    def __call__(self, brokers: Collection[BrokerId], *, waits: bool) -> Mapping[BrokerId, Note]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerBrakes:
    """``notes``: those that count. ``problems``: why the note of another broker does not."""

    notes: Mapping[BrokerId, GuardNote] = field(default_factory=dict)
    problems: Mapping[BrokerId, str] = field(default_factory=dict)

    @property
    def pause(self) -> Pause | None:
        for broker, note in sorted(self.notes.items()):
            if (paused := note.paused) is not None:
                return Pause(by=paused.by, reason=paused.reason, since=paused.since, sequence=_NO_ENTRY, broker=broker)
        return None

    def policy(self, own: ReclaimPolicy) -> ReclaimPolicy:
        return strictest(own, [note.brakes for note in self.notes.values()])

    def sentences(self, own: ReclaimPolicy) -> Iterator[str]:
        stricter = [broker for broker, note in self.notes.items() if strictest(own, [note.brakes]) != own]
        if stricter:
            yield f"stricter brakes of the guards of {_named(stricter)} apply here too"
        yield from self.unknown

    @property
    def unknown(self) -> Iterator[str]:
        for why in dict.fromkeys(self.problems.values()):
            whose = _named([broker for broker, each in self.problems.items() if each == why])
            yield f"brakes of the guards of {whose} unknown, not applied here: {why}"


class Peers:
    """For one thread. Nobody is asked where no other broker has a replica."""

    def __init__(self, ask: AskNotes, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._notes: dict[BrokerId, GuardNote] = {}
        self._problems: dict[BrokerId, str] = {}
        self._asked: frozenset[BrokerId] = frozenset()
        self._asked_at = -math.inf

    def brakes(self, brokers: frozenset[BrokerId], now_ms: int, *, at_most_old: float = 0.0) -> PeerBrakes:
        seconds = self._clock.seconds()
        if brokers and (not brokers <= self._asked or seconds - self._asked_at >= at_most_old):
            self._read(brokers)
            self._asked, self._asked_at = brokers, seconds
        counted = {
            broker: note
            for broker, note in sorted(self._notes.items())
            if broker in brokers and now_ms - note.written_at.timestamp() * 1000 < COUNTS_FOR_MS
        }
        problems = {broker: why for broker, why in sorted(self._problems.items()) if broker in brokers - set(counted)}
        return PeerBrakes(notes=counted, problems=problems)

    def _read(self, brokers: frozenset[BrokerId]) -> None:
        try:
            answers = self._ask(sorted(brokers), waits=not self._problems)
        except ObservationFailed as error:
            answers = dict.fromkeys(brokers, error.failure)
        self._problems = {}
        for broker, answer in answers.items():
            if isinstance(answer, Failure):
                self._problems[broker] = str(answer)
                continue
            if answer is None:
                self._notes.pop(broker, None)
                continue
            try:
                self._notes[broker] = read_note(answer)
            except ValueError as error:
                self._problems[broker] = f"its note cannot be read: {error}"


def holders(facts: ReplicaFacts) -> frozenset[BrokerId]:
    """The other brokers that hold a replica of a partition that this one holds, and that anybody may trim."""
    broker = facts.answer.broker
    replicas = {each for topic in facts.topics.values() if not topic.is_internal for each in topic.replicas.values()}
    return frozenset().union(*(each for each in replicas if broker in each)) - {broker}


def _named(brokers: Collection[BrokerId]) -> str:
    return f"broker{'s' * (len(brokers) > 1)} {', '.join(map(str, sorted(brokers)))}"

"""Carries out the trims of one plan: in small batches, at a bounded rate, each on record before it is sent.

**Invariant: never more than was planned.** The only offset that is ever asked for is the target in the plan on record,
for the topic id on record. Asking again for the same offset deletes nothing more. So a crash between any two steps, a
lost answer, an executor that starts over: none of them can delete more than the plan says.

**A trim is done when its files are gone**, not when DeleteRecords is answered: a broker that is killed within a minute
forgets a trim that it has confirmed. So the log start of everything that was asked for is read again from time to time,
and a trim that was forgotten is asked for again, as often as ``most_requests``.

**Every plan ends.** A trim ends by its files being gone or by a stated reason: what it was planned for is no longer
true, the leader refuses, a problem or the files last longer than there is patience, or the one who decides objects to
what has not been sent yet. The others go on.

All state that must survive is in the ledger; what is kept here is when to look again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from brimline.act.ledger.entries import (
    Answered,
    AnsweredTrim,
    CameBack,
    CycleEnded,
    CycleEntry,
    CycleId,
    FreedTrim,
    GivenUp,
    GivenUpAct,
    GivenUpTrim,
    Plan,
    PlannedTrim,
    Requested,
    RequestedTrim,
    TrimNumber,
)
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import TrimPhase
from brimline.act.trims.rules import Left, PartitionNow, Problem, TrimPace, TrimVerdict, judge
from brimline.model import BrokerId, Bytes, ObservationFailed, Offset, TopicPartition, human_span

_LOOKED_AFTER_AT_ONCE = 500


class TrimmedCluster(Protocol):
    """``TrimCluster`` is a real one."""

    def look(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionNow | Problem]: ...

    def trim(
        self, targets: Mapping[TopicPartition, Offset], leaders: Mapping[TopicPartition, BrokerId]
    ) -> Mapping[TopicPartition, Offset | Problem]: ...


@dataclass(slots=True)
class _Watch:
    """What is remembered of a trim between steps, and may be forgotten."""

    due: float = 0.0
    troubled_since: float | None = None
    there_since: float | None = None
    """The log start was found at the target: now its files should go."""
    present: Bytes | None = None
    """Its blocks when first looked at, for a trim that nobody had to ask for."""
    left: Bytes | None = None


class TrimExecutor:
    """For one thread. ``step`` raises ``NotRecorded``, and the next one goes on from there.

    ``objection``: why nothing more of this plan should be sent, or ``None``. It may be dear, so it is asked before
    every batch that may send something, and not while nothing is done but waiting. A pause on record is one.
    """

    def __init__(
        self,
        ledger: Ledger,
        cycle: CycleId,
        cluster: TrimmedCluster,
        files_left: Callable[[Sequence[PlannedTrim]], Sequence[Left]],
        seconds: Callable[[], float],
        pace: TrimPace,
        objection: Callable[[Plan], str | None] = lambda _: None,
    ) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._files_left = files_left
        self._seconds = seconds
        self._pace = pace
        self._objection = objection
        self._next_batch = self._next_look = seconds()
        self.cycle = ledger.state.cycles[cycle]
        """As of the last step; stays when the cycle has ended."""
        self._watches = [_Watch() for _ in self.cycle.trims]
        self._has_ended = False

    def step(self) -> float | None:
        """How many seconds later to come back at the latest; ``None``: the cycle has ended."""
        self._ledger.refresh()  # somebody else may have put a pause on record, or this cycle's end
        self._read_cycle()
        if not self._has_ended and self._seconds() >= self._next_look:
            self._next_look = self._seconds() + self._pace.between_looks
            self._look_at_files()
        if not self._has_ended and self._seconds() >= self._next_batch:
            self._next_batch = self._seconds() + self._pace.between_batches
            self._do_batch()
        if not self._has_ended and not self._open():
            self._end()
        if self._has_ended:
            return None
        due = min(self._watches[number].due for number in self._open())
        return max(min(self._next_look, max(self._next_batch, due)) - self._seconds(), 0.0)

    # Looking at the files ---------------------------------------------------------------------------------------------

    def _look_at_files(self) -> None:
        waiting = [number for number in self._open() if self._watches[number].there_since is not None]
        if not waiting:
            return
        gone, abandoned = [], []
        for number, left in self._lefts(waiting).items():
            watch = self._watches[number]
            assert watch.there_since is not None
            waited = self._seconds() - watch.there_since
            if isinstance(left, Left):
                watch.left = left.allocated_bytes
            if isinstance(left, Left) and not left.files:
                gone.append(self._freed(number))
            elif waited > self._pace.space_patience:
                why = f"its log start has moved, but its files remain after {human_span(waited)}"
                abandoned.append(self._given_up(number, why))
        self._record(gone, abandoned)

    def _lefts(self, numbers: Sequence[TrimNumber]) -> dict[TrimNumber, Left | Problem]:
        """A folder or log dir that cannot be read is a problem of the trims in it, and of no other."""
        try:
            return dict(zip(numbers, self._files_left([self._planned(number) for number in numbers]), strict=True))
        except ObservationFailed as failed:
            if len(numbers) == 1:
                return {numbers[0]: Problem(why=failed.failure.message, may_pass=True)}
            return {number: left for each in numbers for number, left in self._lefts([each]).items()}

    # A batch ----------------------------------------------------------------------------------------------------------

    def _do_batch(self) -> None:
        batch = self._batch()
        if not batch:
            return
        objection = self._why_not(batch)
        if objection is not None:
            unsent = [number for number in self._open(TrimPhase.PLANNED) if self._watches[number].there_since is None]
            self._record([], [], [self._given_up(number, objection) for number in unsent])
        batch = self._batch()
        if not batch:
            return
        lefts: dict[TrimNumber, Left] = {}
        troubled: list[GivenUpTrim] = []
        for number, left in self._lefts(batch).items():
            if isinstance(left, Problem):
                troubled += self._in_trouble(number, left)
            else:
                lefts[number] = left
        self._record([], troubled)
        if not lefts:
            return
        try:
            looks = self._cluster.look([self._planned(number).partition for number in lefts])
        except ObservationFailed as failed:
            self._next_batch = self._seconds() + self._pace.retry
            problem = Problem(why=failed.failure.message, may_pass=True)
            self._record([], [end for number in lefts for end in self._in_trouble(number, problem)])
            return
        self._send(self._wanting(lefts, looks, objection))

    def _why_not(self, batch: Sequence[TrimNumber]) -> str | None:
        pause = self._ledger.pause
        if pause is not None:
            return f"paused by {pause.by}: {pause.reason}"
        may_send = any(self._watches[number].there_since is None for number in batch)
        return self._objection(self.cycle.plan) if may_send else None

    def _batch(self) -> list[TrimNumber]:
        """What may have to be sent and is due, within the limits, and what was never asked for first. When there is no
        such thing, what is only looked after: many at once, since that costs the cluster little more than a few do.
        """
        now = self._seconds()
        numbers = (*self._open(TrimPhase.PLANNED), *self._open(TrimPhase.REQUESTED))
        batch: list[TrimNumber] = []
        size = 0
        for number in numbers:
            if self._watches[number].due > now or self._watches[number].there_since is not None:
                continue
            if not self._was_asked_for(number):
                size += self._planned(number).allocated_bytes
            if batch and (len(batch) == self._pace.trims_per_batch or size > self._pace.bytes_per_batch):
                break
            batch.append(number)
        return batch or self._looked_after(numbers, now)

    def _looked_after(self, numbers: Sequence[TrimNumber], now: float) -> list[TrimNumber]:
        """When one is due, so is whatever would be due soon."""
        waiting = [number for number in numbers if self._watches[number].there_since is not None]
        if not any(self._watches[number].due <= now for number in waiting):
            return []
        soon = now + self._pace.check_again / 2
        return [number for number in waiting if self._watches[number].due <= soon][:_LOOKED_AFTER_AT_ONCE]

    def _wanting(
        self,
        lefts: Mapping[TrimNumber, Left],
        looks: Mapping[TopicPartition, PartitionNow | Problem],
        objection: str | None,
    ) -> list[RequestedTrim]:
        """Those that must be asked for; what the look tells of the others is put on record."""
        gone: list[FreedTrim] = []
        abandoned: list[GivenUpTrim] = []
        withdrawn: list[GivenUpTrim] = []
        wanting: list[RequestedTrim] = []
        for number, left in lefts.items():
            look, watch = looks[self._planned(number).partition], self._watches[number]
            watch.left = left.allocated_bytes
            verdict = judge(self._planned(number), look, left, was_asked_for=self._was_asked_for(number))
            if isinstance(verdict, Problem):
                abandoned += self._in_trouble(number, verdict)
            elif verdict is TrimVerdict.IS_GONE:
                gone.append(self._freed(number))
            elif verdict is TrimVerdict.IS_THERE:
                self._is_there(number)
            else:
                assert isinstance(look, PartitionNow)
                was_there, watch.there_since = watch.there_since is not None, None
                too_often = self._asked_too_often(number, look)
                if objection is not None:
                    withdrawn.append(self._given_up(number, objection))
                elif too_often is not None:
                    abandoned.append(self._given_up(number, too_often))
                elif not was_there:
                    wanting.append(_requested(number, look, left))
                # else: forgotten. It is in the next batch, before which it is asked whether it is still needed
        self._record(gone, abandoned, withdrawn)
        return wanting

    def _send(self, wanting: Sequence[RequestedTrim]) -> None:
        if not wanting:
            return
        targets = {self._planned(trim.number).partition: self._planned(trim.number).target for trim in wanting}
        leaders = {self._planned(trim.number).partition: trim.leader for trim in wanting}
        self._append(Requested(cycle=self.cycle.plan.cycle, trims=tuple(wanting)))
        if self._has_ended:
            return
        try:
            outcomes = self._cluster.trim(targets, leaders)
        except ObservationFailed as failed:
            outcomes = dict.fromkeys(targets, Problem(why=failed.failure.message, may_pass=True))
        by_number = {trim.number: outcomes[self._planned(trim.number).partition] for trim in wanting}
        answered = tuple(_answered(number, outcome) for number, outcome in by_number.items())
        self._append(Answered(cycle=self.cycle.plan.cycle, trims=answered))
        abandoned: list[GivenUpTrim] = []
        for number, outcome in by_number.items():
            if isinstance(outcome, Problem):
                abandoned += self._in_trouble(number, outcome)
            else:
                self._is_there(number)
        self._record([], abandoned)

    # One trim ---------------------------------------------------------------------------------------------------------

    def _is_there(self, number: TrimNumber) -> None:
        watch, now = self._watches[number], self._seconds()
        watch.troubled_since = None
        watch.due = now + self._pace.check_again
        if watch.there_since is None:
            watch.there_since = now
        if watch.present is None:
            watch.present = watch.left

    def _in_trouble(self, number: TrimNumber, problem: Problem) -> Iterator[GivenUpTrim]:
        """Its end, if it cannot be otherwise."""
        watch, now = self._watches[number], self._seconds()
        watch.due = now + self._pace.retry
        if watch.troubled_since is None:
            watch.troubled_since = now
        lasted = now - watch.troubled_since
        if not problem.may_pass:
            yield self._given_up(number, problem.why)
        elif lasted > self._pace.patience:
            yield self._given_up(number, f"{problem.why}, for {human_span(lasted)}")

    def _asked_too_often(self, number: TrimNumber, now: PartitionNow) -> str | None:
        requests = self.cycle.trims[number].requests
        if requests < self._pace.most_requests:
            return None
        return f"requested {requests} times, its log start is still {now.log_start}"

    def _freed(self, number: TrimNumber) -> FreedTrim:
        return FreedTrim(number=number, freed_bytes=self._freed_bytes(number))

    def _given_up(self, number: TrimNumber, why: str) -> GivenUpTrim:
        return GivenUpTrim(number=number, why=why, freed_bytes=self._freed_bytes(number))

    def _freed_bytes(self, number: TrimNumber) -> Bytes:
        trim, watch = self.cycle.trims[number], self._watches[number]
        present = watch.present if trim.present_bytes is None else trim.present_bytes
        return Bytes(0 if present is None or watch.left is None else max(present - watch.left, 0))

    def _planned(self, number: TrimNumber) -> PlannedTrim:
        return self.cycle.trims[number].planned

    def _was_asked_for(self, number: TrimNumber) -> bool:
        return self.cycle.trims[number].phase is TrimPhase.REQUESTED

    # The record -------------------------------------------------------------------------------------------------------

    def _open(self, *phases: TrimPhase) -> list[TrimNumber]:
        return list(self.cycle.numbers(*(phases or (TrimPhase.PLANNED, TrimPhase.REQUESTED))))

    def _record(
        self,
        gone: Sequence[FreedTrim],
        abandoned: Sequence[GivenUpTrim],
        withdrawn: Sequence[GivenUpTrim] = (),
    ) -> None:
        entries: list[CycleEntry] = []
        if gone:
            entries.append(CameBack(cycle=self.cycle.plan.cycle, trims=tuple(gone)))
        for act, trims in ((GivenUpAct.ABANDONED, abandoned), (GivenUpAct.WITHDRAWN, withdrawn)):
            if trims:
                entries.append(GivenUp(act=act, cycle=self.cycle.plan.cycle, trims=tuple(trims)))
        if entries:
            self._append(*entries)

    def _end(self) -> None:
        self._append(
            CycleEnded(
                cycle=self.cycle.plan.cycle,
                done=self.cycle.count(TrimPhase.DONE),
                abandoned=self.cycle.count(TrimPhase.ABANDONED),
                freed_bytes=self.cycle.freed_bytes,
            )
        )

    def _append(self, *entries: CycleEntry) -> None:
        self._ledger.append(*entries)
        self._read_cycle()

    def _read_cycle(self) -> None:
        """The ledger has the cycle while it is under way. Somebody else may end it; the last look at it is kept."""
        found = self._ledger.state.cycles.get(self.cycle.plan.cycle)
        self._has_ended = found is None
        self.cycle = found or self.cycle


def _requested(number: TrimNumber, now: PartitionNow, left: Left) -> RequestedTrim:
    return RequestedTrim(number=number, leader=now.leader, log_start=now.log_start, present_bytes=left.allocated_bytes)


def _answered(number: TrimNumber, outcome: Offset | Problem) -> AnsweredTrim:
    if isinstance(outcome, Problem):
        return AnsweredTrim(number=number, error=outcome.why)
    return AnsweredTrim(number=number, low_watermark=outcome)

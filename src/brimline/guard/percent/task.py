"""KIP-1257 in the rhythm of retention: plain figures after every retention pass, tiered ones with the remote tasks.

**Invariant.** Figures are computed at their own interval, never because somebody reads them, and they are those of one
look at the broker. A failed look leaves the figures of the last good one in place, but not for ever: figures older than
two intervals are withdrawn, and those of a broker that does not run are withdrawn at once, because its own beans would
be gone too. What no longer applies (a lost leadership, a deleted topic) is gone after one interval.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from brimline.guard.broker_client import RemoteSizes
from brimline.guard.percent.percentages import (
    PlainFigures,
    TieredFigures,
    plain_figures,
    tiered_figures,
    tiered_partitions,
)
from brimline.guard.percent.topic_sizes import TopicHistory
from brimline.model import Bytes, Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.observe.cluster.partition_facts import PartitionFacts
from brimline.service.clock import Clock

_INTERVALS_KEPT = 2
_SOONEST_RETRY = 5.0
_PULSE = 10.0
"""Seconds between two small questions while nothing else is due: a retention pass, and so the next look, may be hours
away, and whether the broker lives is asked for all the time (``brimline status``)."""


class BrokerFacts(Protocol):
    """What is asked of the broker; ``BrokerClient`` asks a real one."""

    def partition_facts(self) -> PartitionFacts: ...

    def remote_sizes(self, facts: PartitionFacts, partitions: "Partitions") -> RemoteSizes: ...

    def release(self) -> str: ...


Partitions = dict[TopicPartition, Bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PercentReport:
    """The figures that hold now; ``failure`` is why the last look failed, if it did."""

    plain: PlainFigures | None = None
    tiered: TieredFigures | None = None
    failure: Failure | None = None
    publishes_percentages: bool | None = None
    """Whether the broker has these gauges itself; ``None`` until it has answered once."""


@dataclass(slots=True, eq=False)
class _Rhythm:
    interval: float
    due: float

    def is_due(self, now: float) -> bool:
        return self.due <= now

    def done(self, now: float) -> None:
        self.due = now + self.interval

    def failed(self, now: float) -> None:
        self.due = now + min(self.interval, _SOONEST_RETRY)


class PercentTask:
    """``changed`` is told of every new report. ``remote_interval`` is ``None`` where nothing can be tiered."""

    def __init__(
        self,
        broker: BrokerFacts,
        clock: Clock,
        retention_interval: float,
        remote_interval: float | None,
        changed: Callable[[PercentReport], None],
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._changed = changed
        self._plain = _Rhythm(retention_interval, clock.seconds())
        self._tiered = None if remote_interval is None else _Rhythm(remote_interval, clock.seconds())
        self._topics = TopicHistory()
        self.report = PercentReport()

    def step(self) -> float:
        """Do what is due; returns the seconds until something is due again."""
        now = self._clock.seconds()
        due = [rhythm for rhythm in (self._plain, self._tiered) if rhythm is not None and rhythm.is_due(now)]
        if due:
            try:
                self._look(due)
            except ObservationFailed as error:
                self._become(self._without_what_is_too_old(replace(self.report, failure=error.failure)))
                for rhythm in due:
                    if rhythm.is_due(self._clock.seconds()):
                        rhythm.failed(self._clock.seconds())
        elif self.report.failure is None:
            self._feel_the_pulse()
        now = self._clock.seconds()
        next_due = min(rhythm.due for rhythm in (self._plain, self._tiered) if rhythm is not None)
        return min(max(next_due - now, 0.0), _PULSE)

    def _feel_the_pulse(self) -> None:
        """A broker that has gone is said to be; the next look is tried soon, as after any failure."""
        try:
            self._broker.release()
        except ObservationFailed as error:
            self._become(self._without_what_is_too_old(replace(self.report, failure=error.failure)))
            self._plain.failed(self._clock.seconds())

    def _look(self, due: list[_Rhythm]) -> None:
        """Plain figures are reported before the tiered ones are begun: those take longer and may fail by themselves."""
        facts = self._broker.partition_facts()
        report = replace(self.report, failure=None, publishes_percentages=facts.publishes_percentages)
        if self._plain in due:
            now = self._clock.seconds()
            figures = plain_figures(facts, now, self.report.plain)
            topics = self._topics.look(facts.log_dirs.values(), now)
            self._become(replace(report, plain=replace(figures, topics=topics)))
            self._plain.done(self._clock.seconds())
        if self._tiered is not None and self._tiered in due:
            tiered = self._tiered_figures(facts)
            self._become(replace(report, plain=self.report.plain, tiered=tiered))
            self._tiered.done(self._clock.seconds())

    def _become(self, report: PercentReport) -> None:
        self.report = report
        self._changed(report)

    def _tiered_figures(self, facts: PartitionFacts) -> TieredFigures:
        partitions = dict(tiered_partitions(facts))
        sizes = self._broker.remote_sizes(facts, partitions) if partitions else {}
        return tiered_figures(facts, sizes, self._clock.seconds(), self.report.tiered)

    def _without_what_is_too_old(self, report: PercentReport) -> PercentReport:
        if report.failure is not None and report.failure.kind is FailureKind.UNREACHABLE:
            return replace(report, plain=None, tiered=None)
        now = self._clock.seconds()
        plain, tiered = report.plain, report.tiered
        if plain is not None and now - plain.seconds > _INTERVALS_KEPT * self._plain.interval:
            plain = None
        if tiered is not None and self._tiered and now - tiered.seconds > _INTERVALS_KEPT * self._tiered.interval:
            tiered = None
        return replace(report, plain=plain, tiered=tiered)

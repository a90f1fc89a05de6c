"""A snapshot of the broker for the fleet, every few minutes, in a thread of its own.

**Invariant.** Whatever happens to the landing place, the writer, the state dir or the broker, this task goes on, counts
it and says so; no other task notices. A snapshot is of one survey: where none can be made, none is written, and the age
of the last one grows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import uuid4

from brimline.guard.landing.child import Delivered, WriterFailed
from brimline.guard.survey import Survey
from brimline.landing.header import BadHeader, Header, Source, folder_of
from brimline.landing.sections import Sections
from brimline.model import BrokerId, ObservationFailed
from brimline.service.clock import Clock

_SOONEST_RETRY = 10.0
"""A broker that is starting answers soon; a landing place that was full is tried again at the next interval."""


class SnapshotSink(Protocol):
    def write(self, header: Header, sections: Sections, spool_bytes: int) -> Delivered:
        """Raises ``WriterFailed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingSettings:
    """They may change while the guard runs."""

    interval: float
    spool_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingReport:
    """Counts are since the guard started; ``landed`` and ``took`` are on the monotonic clock."""

    sent: int = 0
    dropped: int = 0
    failed: int = 0
    """Snapshots that could not even be made."""
    waiting: int = 0
    waiting_bytes: int = 0
    name: str | None = None
    bytes: int | None = None
    landed: float | None = None
    """When the last snapshot reached the landing place."""
    took: float | None = None
    failure: str | None = None


class LandingTask:
    """``survey`` raises ``ObservationFailed``; ``cluster_id`` is ``None`` while it is not known."""

    def __init__(
        self,
        broker: BrokerId,
        cluster_id: Callable[[], str | None],
        survey: Callable[[], Survey],
        sections: Callable[[Survey], Sections],
        writer: SnapshotSink,
        clock: Clock,
        settings: Callable[[], LandingSettings],
        changed: Callable[[LandingReport], None],
    ) -> None:
        self._broker = broker
        self._cluster_id = cluster_id
        self._survey = survey
        self._sections = sections
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._changed = changed
        self._due = clock.seconds()
        self.report = LandingReport()

    def step(self) -> float:
        now = self._clock.seconds()
        settings = self._settings()
        # A shorter interval takes effect at once, not after the longer one is over.
        self._due = min(self._due, now + settings.interval)
        if now < self._due:
            return self._due - now
        try:
            self._become(self._written(settings, now))
            wait = settings.interval
        except ObservationFailed as error:
            self._fail(f"the broker's state is unknown: {error}")
            wait = min(settings.interval, _SOONEST_RETRY)
        except (WriterFailed, BadHeader) as error:
            self._fail(str(error))
            wait = settings.interval
        self._due = now + wait
        return max(self._due - self._clock.seconds(), 0.0)

    def _written(self, settings: LandingSettings, begun: float) -> LandingReport:
        cluster = self._cluster_id()
        if cluster is None:
            raise WriterFailed("no meta.properties in a log dir has the cluster id")
        folder_of(cluster)  # or all of it would be looked at for nothing
        survey = self._survey()
        header = Header(
            snapshot_id=uuid4().hex,
            cluster_id=cluster,
            broker_id=self._broker,
            source=Source.GUARD,
            taken_at_ms=math.floor(survey.made_at.timestamp() * 1000),
        )
        delivered = self._writer.write(header, self._sections(survey), settings.spool_bytes)
        ended = self._clock.seconds()
        return replace(
            self.report,
            sent=self.report.sent + delivered.sent,
            dropped=self.report.dropped + delivered.dropped,
            waiting=delivered.waiting,
            waiting_bytes=delivered.waiting_bytes,
            name=delivered.name,
            bytes=delivered.bytes,
            landed=ended if delivered.sent else self.report.landed,
            took=ended - begun,
            failure=delivered.failure,
        )

    def _fail(self, failure: str) -> None:
        self._become(replace(self.report, failed=self.report.failed + 1, failure=failure))

    def _become(self, report: LandingReport) -> None:
        self.report = report
        self._changed(report)

"""A disk's own page, made when somebody asks for it: its topics, its use since the guard started, and a dry run of any
ceiling.

**Bounded.** One look at files and cluster serves a disk for half a minute, however often the slider moves, and is
forgotten soon after. A disk that cannot be read is not looked at: its page says so, with what is known without.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime

from brimline.decide.reclaim.dry_run import DryRun, dry_run
from brimline.decide.topic_use import summaries
from brimline.disks.task import DiskReport
from brimline.documents.guard_state import GuardState, VolumeDocument
from brimline.documents.history import Timeline
from brimline.guard.broker_client import BrokerClient
from brimline.guard.feature import Core
from brimline.guard.reclaim.survey import ReclaimSurvey, Surveyor
from brimline.guard.topics import heads_of
from brimline.model import Failure, FailureKind, ObservationFailed, used_percent
from brimline.model.blast_radius import GroupsSeen
from brimline.model.topic_use import TopicSummary
from brimline.observe.cluster.admin import Admin
from brimline.pages.chart import Expectation, Reading, UseChart
from brimline.pages.disk_page import DiskQuery, DiskSeen, TopicOnDisk
from brimline.pages.guard_page import shown_volume
from brimline.pages.volumes_page import ShownVolume

_FRESH, _KEPT = 30.0, 60.0
_FIRST_APART = 5.0
_MOST_READINGS = 720
_DAY = 86_400.0
_FORESEEN = 3
"""A forecast is drawn as far ahead as so many times the past."""


class NoSuchDisk(ValueError):
    """The sentence names it."""


class ReadingsOfDisk:
    """How full a disk was since the guard started: when there are too many, every other one goes."""

    def __init__(self) -> None:
        self._apart = _FIRST_APART
        self._last = -_FIRST_APART
        self.kept: tuple[Reading, ...] = ()

    def add(self, at: datetime, seconds: float, percent: float) -> None:
        """Replaces ``kept``: others may be reading it."""
        if seconds < self._last + self._apart:
            return
        self._last = seconds
        self.kept = (*self.kept, Reading(at, percent))
        if len(self.kept) > _MOST_READINGS:
            self.kept, self._apart = self.kept[::2], 2 * self._apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Look:
    survey: ReclaimSurvey
    groups: GroupsSeen
    topics: Sequence[TopicSummary]


class DiskPages:
    """``seen`` is for one thread, ``decided`` for the disks' own."""

    def __init__(self, core: Core, state: Callable[[], GuardState], history: Callable[[], Timeline]) -> None:
        self._core = core
        self._state = state
        self._history = history
        self._readings: dict[str, ReadingsOfDisk] = {}
        self._looks: dict[str, _Look] = {}

    def decided(self, disks: DiskReport) -> None:
        for volume in disks.volumes:
            reading = volume.reading
            if reading.total_bytes and reading.usable_bytes is not None:
                percent = used_percent(reading.total_bytes, reading.usable_bytes)
                kept = self._readings.setdefault(reading.device, ReadingsOfDisk())
                kept.add(reading.observed_at, reading.seconds, percent)
        now = self._core.clock.seconds()
        for device, look in list(self._looks.items()):
            if now > look.survey.seconds + _KEPT:
                self._looks.pop(device, None)

    def seen(self, query: DiskQuery) -> DiskSeen:
        """Raises ``NoSuchDisk``."""
        state = self._state()
        volume = next((each for each in state.volumes if each.device == query.device), None)
        if volume is None:
            devices = ", ".join(each.device for each in state.volumes)
            raise NoSuchDisk(f"this broker has no device {query.device}: it has {devices}")
        row = shown_volume(volume, state)
        ceiling = query.ceiling_for(row.ceiling)
        try:
            look = self._looked(volume)
            made: DryRun | str = dry_run(look.survey.tables.tables, 0, ceiling, look.survey.made_at, look.groups)
        except (ObservationFailed, ValueError) as error:
            look, made = None, f"deletions unknown: {error}"
        seen = DiskSeen(row=row, ceiling=ceiling, dry_run=made, config=state.guard.config)
        if query.only_plan:
            return seen
        return replace(
            seen,
            chart=self._chart(volume, row),
            topics=self._topics(volume, look),
            topics_from="" if look is not None else "Sizes as the broker told them last.",
            history=self._history(),
        )

    def _looked(self, volume: VolumeDocument) -> _Look:
        """The survey is of this device alone: its row is 0."""
        if volume.failure is not None or not all(map(self._core.may_read, volume.log_dirs)):
            message = volume.failure.message if volume.failure is not None else "the disk cannot be read"
            raise ObservationFailed(Failure(kind=FailureKind.UNREADABLE, message=message))
        look = self._looks.get(volume.device)
        if look is None or self._core.clock.seconds() > look.survey.seconds + _FRESH:
            look = self._looks[volume.device] = self._look_now(volume)
        return look

    def _look_now(self, volume: VolumeDocument) -> _Look:
        config, clock = self._core.config, self._core.clock
        with closing(BrokerClient(config.admin, config.node_id, clock)) as client:
            survey = Surveyor.of(config, client, clock, writes=False).survey(config.reclaim_policy, volume.log_dirs)
        with Admin(config.admin) as admin:
            answer = admin.describe_log_dirs([config.node_id])[config.node_id]
            here = {path: found for path, found in answer.log_dirs.items() if path in volume.log_dirs}
            topics, groups = admin.topic_use({config.node_id: replace(answer, log_dirs=here)})
        heads = heads_of(survey.tables, config.node_id)
        now_ms = int(survey.made_at.timestamp() * 1000)
        return _Look(survey=survey, groups=groups, topics=summaries(topics, heads, now_ms))

    def _topics(self, volume: VolumeDocument, look: _Look | None) -> list[TopicOnDisk]:
        plain = self._core.percents.plain
        known = [each for each in plain.topics if each.log_dir in volume.log_dirs] if plain is not None else []
        if look is None:
            found = [
                TopicOnDisk(topic=each.topic, replicas=0, bytes=each.bytes, growth_bytes_per_hour=each.growth)
                for each in known
            ]
        else:
            growth = {(each.log_dir, each.topic): each.growth for each in known}
            found = [
                TopicOnDisk.of(topic, place, growth.get((place.log_dir, topic.name)))
                for topic in look.topics
                for place in topic.places
            ]
        return sorted(found, key=lambda each: (-each.bytes, each.topic))

    def _chart(self, volume: VolumeDocument, row: ShownVolume) -> UseChart | None:
        kept = self._readings.get(volume.device)
        readings = [] if kept is None else list(kept.kept)
        if volume.used_percent is not None and (not readings or readings[-1].at < volume.observed_at):
            readings.append(Reading(volume.observed_at, volume.used_percent))
        if not readings:
            return None
        days = None if volume.seconds_to_limit is None else volume.seconds_to_limit / _DAY
        past = (readings[-1].at - readings[0].at).total_seconds() / _DAY
        expected = (
            None if days is None or days > _FORESEEN * past else Expectation(days=days, soonest=days, latest=days)
        )
        marks = {"fence": row.fence, "ceiling": row.ceiling}
        return UseChart(readings=readings, **marks, expected=expected, is_observed=row.is_observed)

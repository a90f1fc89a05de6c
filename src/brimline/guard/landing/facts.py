"""What the guard puts into a snapshot: its survey of files and cluster, the disks' states, its percentages.

All of it was found by other tasks for their own ends, or is a survey of its own; here it is only laid side by side, a
row for every log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.percent.percentages import PercentColumn, TieredFigures
from brimline.guard.percent.task import PercentReport
from brimline.guard.survey import Survey
from brimline.landing.sections import LogFigures, NamedTopic, Numbers, Sections, VolumeRow, sections_of
from brimline.model import BrokerId, Reason, TopicPartition
from brimline.model.log_dirs import ReplicaColumns
from brimline.model.reclaim import NO_TOPIC, CleanupRules
from brimline.model.scan import FolderKind
from brimline.observe.cluster.replica_facts import ReplicaFacts


def snapshot_sections(survey: Survey, disks: DiskReport, percents: PercentReport, broker: BrokerId) -> Sections:
    tables = survey.tables.tables
    volumes = [*_surveyed_volumes(survey, disks), *_other_volumes(survey, disks)]
    rows = {row.log_dir: place for place, row in enumerate(volumes)}
    counts = np.diff([0, *survey.tables.ends])
    return sections_of(
        volumes=volumes,
        topics=[NamedTopic(facts=topic, topic_id=_text(survey.topic_id(topic.name))) for topic in tables.topics],
        logs=tables.logs,
        volume_of_log=np.repeat(np.array([rows[path] for path in survey.tables.log_dirs], dtype=np.int32), counts),
        figures=_figures(survey, percents, broker),
        segments=tables.segments,
    )


def _surveyed_volumes(survey: Survey, disks: DiskReport) -> Iterator[VolumeRow]:
    """In the order of the devices in the tables, so that they come out of the file in that order."""
    described = survey.facts.answer.log_dirs
    status = _status_by_log_dir(disks)
    for volume, device in zip(survey.volumes, survey.tables.tables.devices, strict=True):
        for path in volume.log_dirs:
            yield VolumeRow(
                log_dir=path,
                device=volume.device,
                total_bytes=volume.total_bytes,
                usable_bytes=volume.usable_bytes,
                total_files=volume.total_files,
                usable_files=volume.usable_files,
                failure=None if volume.failure is None else volume.failure.message,
                state=status[path].state_of(path).value if path in status else None,
                limits=status[path].limits if path in status else disks.limits,
                policy=device.policy,
                observed_at_ms=device.now_ms,
                is_offline=path not in described or described[path].error is not None,
            )


def _other_volumes(survey: Survey, disks: DiskReport) -> Iterator[VolumeRow]:
    """Log dirs that nobody could look into without fear of hanging: what is known is that nothing is."""
    for path, volume in _status_by_log_dir(disks).items():
        if path not in survey.tables.log_dirs:
            yield VolumeRow(
                log_dir=path,
                device=volume.reading.device,
                total_bytes=volume.reading.total_bytes,
                usable_bytes=volume.reading.usable_bytes,
                failure="not scanned" if volume.reading.failure is None else volume.reading.failure.message,
                state=volume.state_of(path).value,
                limits=volume.limits,
                is_offline=path in volume.offline,
            )


def _status_by_log_dir(disks: DiskReport) -> Mapping[str, VolumeStatus]:
    return {path: volume for volume in disks.volumes for path in volume.log_dirs}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@dataclass(slots=True)
class _Row:
    """The figures of one log; ``None`` is not known."""

    size: int | None = None
    lag: int | None = None
    is_leader: bool | None = None
    remote: int | None = None
    only_local: int | None = None
    reason: Reason | None = None
    plain: int | None = None
    total: int | None = None
    local: int | None = None


def _figures(survey: Survey, percents: PercentReport, broker: BrokerId) -> LogFigures:
    rows = list(_rows(survey, percents, broker))
    return LogFigures(
        size_bytes=_numbers([row.size for row in rows]),
        offset_lag=_numbers([row.lag for row in rows]),
        is_leader=_numbers([row.is_leader for row in rows], np.bool_),
        remote_bytes=_numbers([row.remote for row in rows]),
        only_local_bytes=_numbers([row.only_local for row in rows]),
        remote_reason=[None if row.reason is None else row.reason.label for row in rows],
        bytes_percent=_numbers([row.plain for row in rows], np.float64),
        total_percent=_numbers([row.total for row in rows], np.float64),
        local_percent=_numbers([row.local for row in rows], np.float64),
    )


def _rows(survey: Survey, percents: PercentReport, broker: BrokerId) -> Iterator[_Row]:
    """A row for every log, in the order of the logs."""
    broker_tables, facts = survey.tables, survey.facts
    logs = broker_tables.tables.logs
    names = [topic.name for topic in broker_tables.tables.topics]
    figures = _Percentages(percents)
    begin = 0
    for path, end in zip(broker_tables.log_dirs, broker_tables.ends, strict=True):
        described = facts.answer.log_dirs.get(path)
        places = {} if described is None else _places(described.replicas)
        for topic, partition, kind in zip(
            logs.topic[begin:end].tolist(),
            logs.partition[begin:end].tolist(),
            logs.kind[begin:end].tolist(),
            strict=True,
        ):
            if topic == NO_TOPIC or kind not in (FolderKind.CURRENT, FolderKind.FUTURE):
                yield _Row()
                continue
            row = _Row()
            where = TopicPartition(names[topic], partition)
            is_future = kind == FolderKind.FUTURE
            place = places.get((where, is_future))
            if described is not None and place is not None:
                row.size, row.lag = int(described.replicas.size[place]), int(described.replicas.offset_lag[place])
            leader = _leader(facts, where)
            row.is_leader = None if leader is None else leader == broker and not is_future
            rules = facts.rules.get(where.topic)
            row.remote, row.only_local, row.reason = figures.remote(where, rules, row.size, is_future=is_future)
            row.plain, row.total, row.local = figures.percents(where, is_future=is_future)
            yield row
        begin = end


def _places(replicas: ReplicaColumns) -> dict[tuple[TopicPartition, bool], int]:
    return {
        (replicas.topic_partition(row), is_future): row for row, is_future in enumerate(replicas.is_future.tolist())
    }


def _leader(facts: ReplicaFacts, partition: TopicPartition) -> BrokerId | None:
    topic = facts.topics.get(partition.topic)
    return None if topic is None else topic.leaders.get(partition.partition)


class _Percentages:
    """KIP-1257's figures, to be found by partition."""

    def __init__(self, report: PercentReport) -> None:
        self._tiered: TieredFigures | None = report.tiered
        plain, tiered = report.plain, report.tiered
        self._current = {} if plain is None else _by_partition(plain.current)
        self._future = {} if plain is None else _by_partition(plain.future)
        self._total = {} if tiered is None else _by_partition(tiered.total)
        self._local = {} if tiered is None else _by_partition(tiered.local)

    def percents(self, partition: TopicPartition, *, is_future: bool) -> tuple[int | None, int | None, int | None]:
        key = (partition.topic, str(partition.partition))
        if is_future:
            return self._future.get(key), None, None
        return self._current.get(key), self._total.get(key), self._local.get(key)

    def remote(
        self, partition: TopicPartition, rules: CleanupRules | None, size: int | None, *, is_future: bool
    ) -> tuple[int | None, int | None, Reason | None]:
        """Remote size and only-local size, or why one of them is not known. What is not tiered is wholly local."""
        if rules is None:
            return None, None, Reason.NO_ANSWER
        if not rules.is_tiered:
            return None, None if is_future else size, Reason.NOT_TIERED
        if is_future:
            return None, None, Reason.FUTURE_REPLICA
        if self._tiered is None:
            return None, None, Reason.NOT_ASKED
        found = self._tiered.sizes.get(partition, Reason.CHANGING)
        return (None, None, found) if isinstance(found, Reason) else (*found, None)


def _by_partition(column: PercentColumn) -> Mapping[tuple[str, ...], int]:
    return dict(zip(column.rows, column.values.tolist(), strict=True))


def _numbers(values: Sequence[int | None], kind: "type[np.generic]" = np.int64) -> Numbers:
    missing = np.array([value is None for value in values], dtype=np.bool_)
    column: Numbers = np.ma.MaskedArray(np.array([value or 0 for value in values], dtype=kind), mask=missing)
    return column

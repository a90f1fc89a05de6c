"""What a broker says of itself through the admin protocol, as the sections of a snapshot without segments.

A broker does not name its devices. Log dirs that seem to share a volume (``model.volumes``) get one device here, named
by the first of them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from brimline.landing.sections import (
    LogFigures,
    NamedTopic,
    Numbers,
    Sections,
    VolumeRow,
    known,
    nothing_known,
    sections_of,
)
from brimline.model import BrokerId, BrokerLogDirs, LogDirDescription, Reason
from brimline.model.log_dirs import ReplicaColumns
from brimline.model.reclaim import CleanupRules, LogTable, TopicFacts, Views
from brimline.model.scan import FolderKind, Int64Column
from brimline.model.volumes import volumes_of
from brimline.observe.cluster.topics import Topic


def collected_sections(
    answer: BrokerLogDirs, topics: Mapping[str, Topic], rules: Mapping[str, CleanupRules]
) -> Sections:
    log_dirs = sorted(answer.log_dirs.values(), key=lambda log_dir: log_dir.path)
    names = sorted({name for log_dir in log_dirs for name in log_dir.replicas.topic_names})
    counts = [len(log_dir.replicas) for log_dir in log_dirs]
    replicas = [log_dir.replicas for log_dir in log_dirs]
    return sections_of(
        volumes=_volumes(log_dirs),
        topics=[
            NamedTopic(facts=TopicFacts(name=name, rules=rules.get(name)), topic_id=_topic_id(topics.get(name)))
            for name in names
        ],
        logs=_logs(replicas, {name: row for row, name in enumerate(names)}),
        volume_of_log=np.repeat(np.arange(len(log_dirs), dtype=np.int32), counts),
        figures=_figures(replicas, topics, answer.broker),
        segments=None,
    )


def _volumes(log_dirs: Sequence[LogDirDescription]) -> list[VolumeRow]:
    devices = {member.path: volume.log_dirs[0].path for volume in volumes_of(log_dirs) for member in volume.log_dirs}
    return [
        VolumeRow(
            log_dir=log_dir.path,
            device=devices[log_dir.path],
            total_bytes=log_dir.total_bytes,
            usable_bytes=log_dir.usable_bytes,
            failure=None if log_dir.error is None else f"the broker answers {log_dir.error}",
            is_offline=log_dir.error is not None,
        )
        for log_dir in log_dirs
    ]


def _topic_id(topic: Topic | None) -> str | None:
    return None if topic is None or topic.topic_id is None else str(topic.topic_id)


def _logs(parts: Sequence[ReplicaColumns], rows: Mapping[str, int]) -> LogTable:
    is_future = _joined([part.is_future for part in parts], np.bool_)
    topic = _joined([_topic_rows(part, rows) for part in parts], np.int32)
    partition = _joined([part.partition for part in parts], np.int32)
    count = len(topic)
    unknown: Int64Column = np.full(count, -1, dtype=np.int64)
    nothing: Int64Column = np.zeros(count, dtype=np.int64)
    key = topic.astype(np.int64) << 32 | partition
    return LogTable(
        device=np.zeros(count, dtype=np.int32),
        topic=topic,
        partition=partition,
        kind=np.where(is_future, FolderKind.FUTURE, FolderKind.CURRENT).astype(np.uint8),
        is_moving=np.asarray(~is_future & np.isin(key, key[is_future]), dtype=np.bool_),
        views=np.full(count, Views.NOT_READABLE, dtype=np.uint8),
        segments_begin=np.zeros(count + 1, dtype=np.int64),
        log_start_offset=unknown,
        high_watermark=unknown,
        log_end_offset=unknown,
        highest_remote_offset=unknown,
        last_stable_offset=unknown,
        deleted_bytes=nothing,
        foreign_bytes=nothing,
        other_bytes=nothing,
    )


def _topic_rows(part: ReplicaColumns, rows: Mapping[str, int]) -> Numbers:
    return np.array([rows[name] for name in part.topic_names], dtype=np.int32)[part.topic]


def _figures(parts: Sequence[ReplicaColumns], topics: Mapping[str, Topic], broker: BrokerId) -> LogFigures:
    remote_reason = _joined([part.remote_size_reason for part in parts], np.uint8)
    only_local_reason = _joined([part.only_local_size_reason for part in parts], np.uint8)
    reason = np.where(remote_reason == Reason.KNOWN, only_local_reason, remote_reason)
    labels = {int(each): None if each is Reason.KNOWN else each.label for each in Reason}
    percent = nothing_known(len(reason), np.dtype(np.float64))
    return LogFigures(
        size_bytes=known(_joined([part.size for part in parts], np.int64)),
        offset_lag=known(_joined([part.offset_lag for part in parts], np.int64)),
        is_leader=_leaderships(parts, topics, broker),
        remote_bytes=known(_joined([part.remote_size for part in parts], np.int64)),
        only_local_bytes=known(_joined([part.only_local_size for part in parts], np.int64)),
        remote_reason=[labels[each] for each in reason.tolist()],
        bytes_percent=percent,
        total_percent=percent,
        local_percent=percent,
    )


def _leaderships(parts: Sequence[ReplicaColumns], topics: Mapping[str, Topic], broker: BrokerId) -> Numbers:
    leads, missing = [], []
    for part in parts:
        leaders = [topics[name].leaders if name in topics else {} for name in part.topic_names]
        for topic, partition, is_future in zip(
            part.topic.tolist(), part.partition.tolist(), part.is_future.tolist(), strict=True
        ):
            leader = leaders[topic].get(partition)
            leads.append(leader == broker and not is_future)
            missing.append(leader is None)
    column: Numbers = np.ma.MaskedArray(np.array(leads, dtype=np.bool_), mask=np.array(missing, dtype=np.bool_))
    return column


def _joined(parts: Sequence[Numbers], kind: type[np.generic]) -> Numbers:
    return np.concatenate([np.zeros(0, dtype=kind), *parts]).astype(kind, copy=False)

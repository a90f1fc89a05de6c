"""What a cluster says of the topics in its log dirs: settings, offsets, times of records, and which groups read them.

Everything is asked for all partitions at once, some topics at a time: the topics, their configurations, of every leader
a few offsets, and of the coordinators what groups have committed. What somebody does not tell is not known, and never
an error. The times of records of a tiered topic are not asked for: the broker would fetch them from the remote store.

Retention that a topic does not set itself is the default of the broker that answers.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brimline.model import BrokerId, BrokerLogDirs, Bytes, Failure, Offset, TopicPartition
from brimline.model.blast_radius import GroupActivity, GroupsSeen
from brimline.model.reclaim import AN_HOUR_MS, CleanupRules
from brimline.model.topic_use import PartitionUse, ReplicaUse, TopicUse
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.configs import TopicConfig, describe_topic_configs
from brimline.observe.cluster.group_offsets import committed_offsets
from brimline.observe.cluster.offsets import OffsetSpec, list_log_ends, list_offsets, list_records_at
from brimline.observe.cluster.replica_facts import CLEANUP_KEYS, Offsets, cleanup_rules, known_offsets, leaders_of
from brimline.observe.cluster.topics import Topic, describe_topics, some_at_a_time

_SEGMENT_BYTES, _SEGMENT_MS, _MIN_IN_SYNC = "segment.bytes", "segment.ms", "min.insync.replicas"
_KEYS = (*CLEANUP_KEYS, _SEGMENT_BYTES, _SEGMENT_MS, _MIN_IN_SYNC)
_THE_FIRST = 0
"""The first record that is dated at or after this is the first of all."""

Held = Mapping[TopicPartition, Sequence[ReplicaUse]]
Records = Mapping[TopicPartition, tuple[Offset, int] | None]
"""Offset and time of a record; ``None``: there is none. What is not known is missing."""
Committed = Mapping[str, Mapping[str, Mapping[int, Offset]]]
"""By topic, group and partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offsets:
    starts: Offsets
    watermarks: Offsets
    ends: Offsets
    oldest: Records
    hour_ago: Records
    newest: Records


def look_at_topic_use(
    connection: Connection,
    answers: Mapping[BrokerId, BrokerLogDirs],
    wanted: frozenset[str] | None,
    now_ms: int,
    deadline: Deadline,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[list[TopicUse], GroupsSeen]:
    """Of the topics that have replicas in ``answers``. Raises ``ObservationFailed`` when nobody answers at all."""
    held = _held(answers, wanted)
    names = sorted({partition.topic for partition in held})
    topics: dict[str, Topic] = {}
    configs: dict[str, TopicConfig | Failure] = {}
    for some in some_at_a_time(names):
        topics |= describe_topics(connection, some, deadline.renewed())
        configs |= describe_topic_configs(connection, some, _KEYS, deadline.renewed())
    rules = {name: _rules(name, configs.get(name), topics.get(name)) for name in names}
    tiered = frozenset(name for name, each in rules.items() if each is None or each.is_tiered)
    offsets = _offsets(connection, leaders_of(held, topics), tiered, now_ms, deadline)
    groups = committed_offsets(connection, held, progress)
    partitions: defaultdict[str, list[PartitionUse]] = defaultdict(list)
    for partition in sorted(held):
        partitions[partition.topic].append(_partition(partition, held[partition], topics, offsets))
    committed, activity = _by_topic(groups)
    found = [
        TopicUse(
            name=name,
            rules=rules[name],
            partitions=tuple(partitions[name]),
            committed=committed.get(name, {}),
            activity=activity,
            **_settings(configs.get(name)),
        )
        for name in names
    ]
    return found, groups


def _held(answers: Mapping[BrokerId, BrokerLogDirs], wanted: frozenset[str] | None) -> Held:
    held: defaultdict[TopicPartition, list[ReplicaUse]] = defaultdict(list)
    for broker, answer in answers.items():
        for path, log_dir in answer.log_dirs.items():
            replicas = log_dir.replicas if wanted is None else log_dir.replicas.only_topics(wanted)
            for partition, info in replicas.each():
                held[partition].append(
                    ReplicaUse(
                        broker=broker,
                        log_dir=path,
                        size=Bytes(info.size),
                        remote_size=info.remote_size,
                        only_local_size=info.only_local_size,
                        is_future=info.is_future,
                    )
                )
    return held


def _rules(name: str, config: TopicConfig | Failure | None, topic: Topic | None) -> CleanupRules | None:
    if config is None or isinstance(config, Failure):
        return None
    found = cleanup_rules(name, config, is_internal=topic is not None and topic.is_internal)
    return None if isinstance(found, Failure) else found


def _settings(config: TopicConfig | Failure | None) -> dict[str, Any]:
    if config is None or isinstance(config, Failure):
        return {}
    numbers = {"segment_bytes": _SEGMENT_BYTES, "segment_ms": _SEGMENT_MS, "min_in_sync": _MIN_IN_SYNC}
    told = {name: config.get(key) or "" for name, key in numbers.items()}
    return {"own": config.own} | {name: int(text) for name, text in told.items() if text.isdecimal()}


def _offsets(
    connection: Connection,
    leaders: Mapping[TopicPartition, BrokerId],
    tiered: frozenset[str],
    now_ms: int,
    deadline: Deadline,
) -> _Offsets:
    plain = {partition: leader for partition, leader in leaders.items() if partition.topic not in tiered}

    def records(at_ms: int) -> Records:
        found = list_records_at(connection, plain, at_ms, deadline.renewed()) if plain else {}
        return {each: told for each, told in found.items() if not isinstance(told, Failure)}

    return _Offsets(
        starts=known_offsets(list_offsets(connection, leaders, OffsetSpec.EARLIEST, deadline.renewed())),
        watermarks=known_offsets(list_offsets(connection, leaders, OffsetSpec.LATEST, deadline.renewed())),
        ends=known_offsets(list_log_ends(connection, leaders, deadline.renewed())),
        oldest=records(_THE_FIRST),
        hour_ago=records(now_ms - AN_HOUR_MS),
        newest=records(OffsetSpec.MAX_TIMESTAMP),
    )


def _partition(
    partition: TopicPartition, replicas: Sequence[ReplicaUse], topics: Mapping[str, Topic], offsets: _Offsets
) -> PartitionUse:
    topic = topics.get(partition.topic)
    watermark = offsets.watermarks.get(partition)
    oldest, newest = offsets.oldest.get(partition), offsets.newest.get(partition)
    since = offsets.hour_ago.get(partition)
    # A log with records in which no record is found at all is being trimmed: that says nothing of the last hour
    is_odd = oldest is None and watermark != offsets.starts.get(partition)
    nothing_since = watermark if partition in offsets.hour_ago and not is_odd else None
    in_sync = None if topic is None else topic.in_sync.get(partition.partition)
    return PartitionUse(
        partition=partition.partition,
        replicas=tuple(replicas),
        leader=None if topic is None else topic.leaders.get(partition.partition),
        in_sync=None if in_sync is None else len(in_sync),
        log_start=offsets.starts.get(partition),
        high_watermark=watermark,
        log_end=offsets.ends.get(partition),
        written_since=nothing_since if since is None else since[0],
        oldest_ms=None if oldest is None else oldest[1],
        newest_ms=None if newest is None else newest[1],
    )


def _by_topic(seen: GroupsSeen) -> tuple[Committed, Mapping[str, GroupActivity]]:
    committed: defaultdict[str, defaultdict[str, dict[int, Offset]]] = defaultdict(lambda: defaultdict(dict))
    for group in seen.groups:
        for partition, offset in group.committed.items():
            committed[partition.topic][group.name][partition.partition] = offset
    return committed, {group.name: group.activity for group in seen.groups}

"""What a broker's log cleaner goes by: its own settings, and those of the compacted topics that the broker holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brimline.model import BrokerId, Failure, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.configs import TopicConfig, describe_broker_config, describe_topic_configs
from brimline.observe.cluster.topics import some_at_a_time

_ENABLED, _THREADS = "log.cleaner.enable", "log.cleaner.threads"
_RATE, _BACKOFF = "log.cleaner.io.max.bytes.per.second", "log.cleaner.backoff.ms"
_DELETE_DELAY = "log.segment.delete.delay.ms"
_TIERED, _INDEX_CACHE = "remote.log.storage.system.enable", "remote.log.index.file.cache.total.size.bytes"
_OF_BROKER = (_ENABLED, _THREADS, _RATE, _BACKOFF, _DELETE_DELAY, _TIERED, _INDEX_CACHE)

_POLICY, _SEGMENT, _RATIO = "cleanup.policy", "segment.bytes", "min.cleanable.dirty.ratio"
_INDEX, _LAG, _TOPIC_DELAY = "segment.index.bytes", "max.compaction.lag.ms", "file.delete.delay.ms"
_OF_TOPIC = (_POLICY, _SEGMENT, _INDEX, _RATIO, _LAG, _TOPIC_DELAY)
_FOR_EVER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Of one broker. ``bytes_per_second`` is of all threads together, ``None`` where nothing limits it; times are
    seconds; ``index_cache_bytes`` is 0 without tiered storage."""

    is_enabled: bool = True
    threads: int = 1
    bytes_per_second: float | None = None
    delete_delay: float = 60.0
    backoff: float = 15.0
    index_cache_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedTopic:
    """``has_own_rhythm``: it is cleaned by a ratio or a compaction lag of its own, whatever the broker's ratio is."""

    segment_bytes: int
    index_bytes: int = 10 << 20
    delete_delay: float
    has_own_rhythm: bool


def ask_cleaner_settings(connection: Connection, broker: BrokerId, deadline: Deadline) -> CleanerSettings:
    """Raises ``ObservationFailed``. A key that this broker does not know has Kafka's default."""
    found = describe_broker_config(connection, broker, _OF_BROKER, deadline)
    if isinstance(found, Failure):
        raise ObservationFailed(found)
    rate = float(found.get(_RATE) or "inf")
    return CleanerSettings(
        is_enabled=found.get(_ENABLED) != "false",
        threads=int(found.get(_THREADS) or 1),
        bytes_per_second=rate if rate < _FOR_EVER else None,
        delete_delay=int(found.get(_DELETE_DELAY) or 60_000) / 1000,
        backoff=int(found.get(_BACKOFF) or 15_000) / 1000,
        index_cache_bytes=int(found.get(_INDEX_CACHE) or 0) if found.get(_TIERED) == "true" else 0,
    )


def ask_compacted_topics(
    connection: Connection, broker: BrokerId, topics: Iterable[str], deadline: Deadline
) -> Mapping[str, CompactedTopic | None]:
    """``None``: not compacted. What the broker does not tell of a topic is missing. Raises ``ObservationFailed``."""
    found: dict[str, CompactedTopic | None] = {}
    for some in some_at_a_time(sorted(topics)):
        answers = describe_topic_configs(connection, some, _OF_TOPIC, deadline.renewed(), broker)
        found |= {name: _topic(config) for name, config in answers.items() if not isinstance(config, Failure)}
    return found


def _topic(config: TopicConfig) -> CompactedTopic | None:
    if "compact" not in (config.get(_POLICY) or ""):
        return None
    has_lag = int(config.get(_LAG) or _FOR_EVER) < _FOR_EVER
    return CompactedTopic(
        segment_bytes=int(config.get(_SEGMENT) or 1 << 30),
        index_bytes=int(config.get(_INDEX) or 10 << 20),
        delete_delay=int(config.get(_TOPIC_DELAY) or 60_000) / 1000,
        has_own_rhythm=_RATIO in config.own or has_lag,
    )

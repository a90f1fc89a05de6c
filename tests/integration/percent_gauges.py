"""KIP-1257's percentages of a cluster with a topic of every kind: as its files have them, and as beans show them."""

from collections.abc import Mapping
from functools import partial

from brimline.sandbox import Sandbox
from tests.integration.cluster import TIERED, configure, create_topic, produce
from tests.integration.test_remote_info import is_settled, local_segments, only_local_on_disk, remote_segments
from tests.metrics.jmx_exporter import GENERAL_RULES, RULES, Series
from tests.waiting import eventually

MIB = 1 << 20
PLAIN = "kafka_log_log_retentionsizeinpercent"
TOTAL = "kafka_log_remote_remotelogmanager_retentionsizeinpercent"
LOCAL = "kafka_log_remote_remotelogmanager_localretentionsizeinpercent"
FUTURE = "brimline_future_log_retention_size_percent"
METADATA_LOG = "__cluster_metadata"
PROPERTIES = {"log.cleaner.backoff.ms": "500"}
"""Compacted logs get their figure from the log cleaner, which looks every 15 s unless told otherwise."""
BOTH_RULES = f"{RULES.read_text()}{GENERAL_RULES}"
ODD_NAME = "my.topic_a-b"
SMALL = {"segment.bytes": str(MIB), "file.delete.delay.ms": "0"}
NOT_COPIED = {"remote.storage.enable": "true", "remote.log.copy.disable": "true", "local.retention.bytes": "-2"}
COMPACT = {**SMALL, "cleanup.policy": "compact", "retention.bytes": str(4 * MIB)}

Figures = dict[tuple[str, str, int], int]
"""(metric, topic, partition) → percent."""


def percent(size: int, limit: int) -> int:
    return size * 100 // limit


def size(sandbox: Sandbox, topic: str, partition: int = 0) -> int:
    return sum(local_segments(sandbox, topic, partition).values())


def whole_size(sandbox: Sandbox, topic: str) -> int:
    return only_local_on_disk(sandbox, topic, 0) + sum(remote_segments(sandbox, topic, 0).values())


def percentages(series: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]) -> Figures:
    found = {}
    for (name, labels), value in series.items():
        if name in (PLAIN, TOTAL, LOCAL, FUTURE):
            tags = dict(labels)
            found[name, tags["topic"], int(tags["partition"])] = int(value)
    return found


def beans(series: Series) -> Figures:
    """What jmx_exporter made of a JMX server's beans; nothing if it could not read them this time."""
    return percentages(series) if series["jmx_scrape_error", ()] == 0 else {}


def fill(sandbox: Sandbox) -> None:
    """A topic of every kind, quiet when this returns."""
    limited = {"retention.bytes": str(20 * MIB)}
    create_topic(sandbox, "plain", partitions=2, config={**SMALL, "retention.bytes": str(4 * MIB)})
    create_topic(sandbox, ODD_NAME, config={**SMALL, "retention.bytes": str(4 * MIB)})
    create_topic(sandbox, "over", config={**SMALL, "retention.bytes": "1500000"})
    create_topic(sandbox, "unlimited", config={"retention.bytes": "-1"})
    create_topic(sandbox, "compacted", config=COMPACT)
    create_topic(sandbox, "compacted-and-deleted", config={**COMPACT, "cleanup.policy": "compact,delete"})
    create_topic(sandbox, "tiered", config={**TIERED, **limited})
    create_topic(sandbox, "not-yet-uploaded", config={**TIERED, **limited})
    create_topic(sandbox, "one-limit", config={**TIERED, **limited, "local.retention.bytes": "-2"})
    create_topic(sandbox, "all-unlimited", config={**TIERED, "local.retention.bytes": "-1", "retention.bytes": "-1"})
    create_topic(sandbox, "never-copied", config={**SMALL, **NOT_COPIED, **limited})
    create_topic(sandbox, "no-longer-copied", config={**TIERED, **limited})
    filling = {"plain": 2.2, ODD_NAME: 0.3, "over": 4.7, "unlimited": 0.5, "not-yet-uploaded": 0.4}
    for topic, megabytes in filling.items():
        produce(sandbox, topic, megabytes)
    for topic in ("compacted", "compacted-and-deleted"):
        produce(sandbox, topic, 1.3, keyed=True)
    uploading = {"tiered": 3, "one-limit": 9, "all-unlimited": 9, "no-longer-copied": 3}
    for topic in (*uploading, "never-copied"):
        produce(sandbox, topic, 5.5)
    for topic, at_most in uploading.items():
        eventually(partial(is_settled, sandbox, topic, 0, at_most))
    configure(sandbox, "TOPIC", "no-longer-copied", NOT_COPIED)
    eventually(lambda: len(local_segments(sandbox, "over", 0)) <= 2)


def figures_of_files(sandbox: Sandbox) -> Figures:
    """The KIP's table, row by row, from the sizes of the files."""
    found: Figures = {
        (PLAIN, "plain", 0): percent(size(sandbox, "plain"), 4 * MIB),
        (PLAIN, "plain", 1): 0,
        (PLAIN, ODD_NAME, 0): percent(size(sandbox, ODD_NAME), 4 * MIB),
        (PLAIN, "over", 0): percent(size(sandbox, "over"), 1_500_000),
        (PLAIN, "unlimited", 0): 0,
        (PLAIN, "compacted", 0): percent(size(sandbox, "compacted"), 4 * MIB),
        (PLAIN, "compacted-and-deleted", 0): percent(size(sandbox, "compacted-and-deleted"), 4 * MIB),
    }
    for topic in ("tiered", "not-yet-uploaded", "one-limit"):
        found[PLAIN, topic, 0] = 0
        found[TOTAL, topic, 0] = percent(whole_size(sandbox, topic), 20 * MIB)
        found[LOCAL, topic, 0] = percent(size(sandbox, topic), (20 if topic == "one-limit" else 2) * MIB)
    for metric in (PLAIN, TOTAL, LOCAL):
        found[metric, "all-unlimited", 0] = 0
    for topic in ("never-copied", "no-longer-copied"):
        found[PLAIN, topic, 0] = found[LOCAL, topic, 0] = percent(size(sandbox, topic), 20 * MIB)
        found[TOTAL, topic, 0] = percent(whole_size(sandbox, topic), 20 * MIB)
    return found


def of_topics(figures: Figures, topics: set[str]) -> Figures:
    return {row: value for row, value in figures.items() if row[1] in topics}


def of_topic(figures: Figures, topic: str) -> dict[str, int]:
    """Metric → percent, of the topic's only partition."""
    return {metric: value for (metric, name, _), value in figures.items() if name == topic}

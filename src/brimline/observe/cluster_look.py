"""A whole cluster through the admin protocol, with nothing installed near a broker: what ``fleet collect`` collects.

Volumes, replicas, configurations and remote sizes; no segments, which only a guard beside the broker can see. A broker
that does not answer is a failure in its place, and the others are looked at all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from brimline.model import BrokerId, BrokerLogDirs, Failure
from brimline.model.reclaim import CleanupRules
from brimline.observe.admin import Admin, DescribeLogDirsOptions
from brimline.observe.topics import Topic

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterLook:
    """``brokers`` are those that answered, ``failures`` the others. ``rules`` lack what a broker did not tell."""

    cluster_id: str
    brokers: Mapping[BrokerId, BrokerLogDirs]
    failures: Mapping[BrokerId, Failure]
    topics: Mapping[str, Topic]
    rules: Mapping[BrokerId, Mapping[str, CleanupRules]]
    notes: tuple[str, ...]


def look_at_cluster(
    admin: Admin, timeout: timedelta, brokers: Sequence[BrokerId] | None = None, progress: Progress | None = None
) -> ClusterLook:
    """Raises ``ObservationFailed`` when the cluster as a whole gives no answer."""
    cluster_id = admin.cluster_id(timeout)
    options = DescribeLogDirsOptions(include_remote_info=True, timeout=timeout)
    described = admin.describe_log_dirs(brokers, options, progress)
    answers = {broker: answer for broker, answer in described.items() if answer.failure is None}
    topics = admin.topics(None, timeout)
    rules = admin.cleanup_rules({broker: _held(answer) for broker, answer in answers.items()}, timeout)
    return ClusterLook(
        cluster_id=cluster_id,
        brokers=answers,
        failures=described.failures,
        topics=topics,
        rules={broker: _known(found, topics) for broker, found in rules.items()},
        notes=described.notes,
    )


def _held(answer: BrokerLogDirs) -> list[str]:
    return sorted({name for log_dir in answer.log_dirs.values() for name in log_dir.replicas.topic_names})


def _known(rules: Mapping[str, CleanupRules | Failure], topics: Mapping[str, Topic]) -> Mapping[str, CleanupRules]:
    return {
        name: replace(found, is_internal=name in topics and topics[name].is_internal)
        for name, found in rules.items()
        if not isinstance(found, Failure)
    }

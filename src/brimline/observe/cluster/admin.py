"""A cluster through the admin protocol: the Python API, and all of it at once for the fleet.

Log dirs are in the shapes of KIP-827 and KIP-1187::

    config = ClientConfig.from_properties(["broker:9092"])
    with Admin(config) as admin:
        for broker, answer in admin.describe_log_dirs().items():
            for path, log_dir in answer.log_dirs.items():
                print(broker, path, log_dir.usable_bytes, log_dir.total_bytes)

What ``fleet collect`` collects needs nothing installed near a broker:
volumes, replicas, configurations and remote sizes; no segments, which only a guard beside the broker can see. A broker
that does not answer is a failure in its place, and the others are looked at all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from brimline.model import BrokerId, BrokerLogDirs, Failure
from brimline.model.blast_radius import GroupsSeen
from brimline.model.reclaim import CleanupRules
from brimline.model.topic_use import TopicUse
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.log_dirs import describe_log_dirs
from brimline.observe.cluster.replica_facts import look_at_cleanup_rules
from brimline.observe.cluster.topic_use import look_at_topic_use
from brimline.observe.cluster.topics import Topic, cluster_id, describe_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsOptions:
    """``include_remote_info`` is KIP-1187's option; ``topics`` limits whose remote information is worked out.

    ``timeout`` is how long the brokers have for one round of answers. Reading remote log metadata may take longer:
    it goes on for as long as records keep coming.
    """

    include_remote_info: bool = False
    topics: frozenset[str] | None = None
    timeout: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescribeLogDirsResult(Mapping[BrokerId, BrokerLogDirs]):
    """Every asked broker's answer or failure, by broker id.

    ``skipped_records`` counts remote log metadata that could not be decoded, ``notes`` say what could not be read.
    """

    brokers: Mapping[BrokerId, BrokerLogDirs]
    skipped_records: int = 0
    notes: tuple[str, ...] = ()

    def __getitem__(self, broker: BrokerId) -> BrokerLogDirs:
        return self.brokers[broker]

    def __iter__(self) -> Iterator[BrokerId]:
        return iter(self.brokers)

    def __len__(self) -> int:
        return len(self.brokers)

    @property
    def failures(self) -> Mapping[BrokerId, Failure]:
        return {broker: answer.failure for broker, answer in self.brokers.items() if answer.failure is not None}


class Admin:
    """A client of one cluster. Connects when made; raises ``ObservationFailed`` if no broker can be reached."""

    def __init__(self, config: ClientConfig, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._connection = Connection(config)
        self._now = now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @property
    def brokers(self) -> Mapping[BrokerId, str]:
        """The live brokers, each with its address."""
        return {broker: node.address for broker, node in self._connection.brokers.items()}

    def topics(
        self, names: Iterable[str] | None = None, timeout: timedelta = timedelta(seconds=30)
    ) -> Mapping[str, Topic]:
        """The named topics, or all, with their ids and leaders."""
        return describe_topics(self._connection, names, Deadline(timeout))

    def cluster_id(self, timeout: timedelta = timedelta(seconds=30)) -> str:
        return cluster_id(self._connection, Deadline(timeout))

    def cleanup_rules(
        self, held: Mapping[BrokerId, Sequence[str]], timeout: timedelta = timedelta(seconds=30)
    ) -> Mapping[BrokerId, Mapping[str, CleanupRules | Failure]]:
        """How each broker cleans up the topics that it holds: what a topic does not set is that broker's default."""
        return look_at_cleanup_rules(self._connection, held, Deadline(timeout))

    def topic_use(
        self,
        answers: Mapping[BrokerId, BrokerLogDirs],
        wanted: frozenset[str] | None = None,
        timeout: timedelta = timedelta(seconds=30),
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> tuple[Sequence[TopicUse], GroupsSeen]:
        """Settings, offsets and readers of the topics in ``answers``. ``progress`` hears of consumer groups."""
        now_ms = int(self._now().timestamp() * 1000)
        return look_at_topic_use(self._connection, answers, wanted, now_ms, Deadline(timeout), progress)

    def describe_log_dirs(
        self,
        brokers: Iterable[BrokerId] | None = None,
        options: DescribeLogDirsOptions = DescribeLogDirsOptions(),  # noqa: B008 (frozen)
        progress: Callable[[int, int], None] | None = None,
    ) -> DescribeLogDirsResult:
        """Asks the brokers, or all live ones, at once. ``progress`` hears of metadata records (read, in all)."""
        asked = list(self._connection.brokers if brokers is None else brokers)
        deadline = Deadline(options.timeout)
        if not options.include_remote_info:
            return DescribeLogDirsResult(brokers=describe_log_dirs(self._connection, asked, deadline, self._now))
        return self._describe_with_remote_info(asked, options, deadline, progress)

    def _describe_with_remote_info(
        self,
        asked: list[BrokerId],
        options: DescribeLogDirsOptions,
        deadline: Deadline,
        progress: Callable[[int, int], None] | None,
    ) -> DescribeLogDirsResult:
        """From the gateways where there are any; for the other brokers it is worked out here."""
        # Reading records brings codecs and more: only for those who ask.
        from brimline.observe.remote.gateway_log_dirs import ask_gateways
        from brimline.observe.remote.info import describe_with_remote_info

        answered = ask_gateways(self._connection, asked, options.topics, deadline, self._now)
        others = [broker for broker in asked if broker not in answered.brokers]
        if not others:
            return DescribeLogDirsResult(
                brokers=answered.brokers, skipped_records=answered.skipped_records, notes=answered.notes
            )
        found = describe_with_remote_info(
            self._connection, options.topics, others, deadline.renewed(), self._now, progress
        )
        by_broker = {**answered.brokers, **found.brokers}
        return DescribeLogDirsResult(
            brokers={broker: by_broker[broker] for broker in asked},
            skipped_records=max(answered.skipped_records, found.skipped_records),
            notes=tuple(dict.fromkeys((*answered.notes, *found.notes))),
        )


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

"""Fills the remote columns of log-dir descriptions: KIP-1187 from outside.

The order of looking is part of the rule. First the uploads, so that every one of them was complete before the local
sizes were taken; then the local log starts, the log dirs, and the local log starts once more: if a start moved in
between, local segments were deleted while looking, and the only-local size of that partition is not known. Whoever
describes the log dirs in a way of their own does it between ``begin_look`` and ``finish_look``.

Whatever fails here costs remote figures and their reasons say why; the log dirs are described all the same.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from brimline.model import BrokerId, Failure, FailureKind, ObservationFailed, Reason, TopicPartition
from brimline.model.failures import TOPIC_AUTHORIZATION_FAILED
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.configs import describe_broker_config, describe_topic_configs
from brimline.observe.cluster.log_dirs import Clock, describe_log_dirs
from brimline.observe.cluster.topics import Topic, describe_topics
from brimline.observe.remote.columns import LogDirsByBroker, OnDisk, RemoteFacts, filled, id_of, unseen
from brimline.observe.remote.remote_log import Progress, RemoteLogFollower
from brimline.observe.remote.sizes import LogStarts, look_at_local_starts, look_at_log_starts
from brimline.wire.remote_log_metadata import TOPIC as METADATA_TOPIC

_TIERED = "remote.storage.enable"
_METADATA_MANAGER = "remote.log.metadata.manager.class.name"
_TOPIC_BASED_MANAGER = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteInfo:
    """The log dirs with their remote columns filled; ``notes`` are sentences about what could not be read."""

    brokers: LogDirsByBroker
    skipped_records: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLook:
    """What was seen before the log dirs are described; ``finish_look`` needs it after."""

    facts: RemoteFacts
    leaders: Mapping[TopicPartition, BrokerId]
    starts: LogStarts
    notes: tuple[str, ...]

    @property
    def tiered_topics(self) -> Iterable[str]:
        """Those whose uploads are known: for all others it does not matter when the log dirs are described."""
        return self.facts.tiered


def describe_with_remote_info(
    connection: Connection,
    topics: frozenset[str] | None,
    brokers: Collection[BrokerId],
    deadline: Deadline,
    now: Clock,
    progress: Progress | None = None,
) -> RemoteInfo:
    """The log dirs of these brokers; ``topics`` limits whose remote information is worked out."""
    try:
        look = begin_look(connection, topics, brokers, deadline, RemoteLogFollower(), progress)
    except ObservationFailed as error:
        notes = (f"remote information unknown: {error}",)
        return _without_remote_info(describe_log_dirs(connection, brokers, deadline.renewed(), now), topics, notes)
    described = describe_log_dirs(connection, brokers, deadline.renewed(), now)
    return finish_look(connection, topics, look, described, deadline)


def begin_look(
    connection: Connection,
    topics: frozenset[str] | None,
    brokers: Collection[BrokerId],
    deadline: Deadline,
    follower: RemoteLogFollower,
    progress: Progress | None = None,
) -> RemoteLook:
    """Everything that comes before the log dirs of ``brokers``; raises ``ObservationFailed`` if nothing is known."""
    notes: list[str] = []
    facts = _look_at_uploads(connection, topics, deadline, follower, progress, notes)
    # Only a leader's only-local size is known, so nobody needs the log starts of other brokers' leaders.
    leaders = {partition: leader for partition, leader in facts.leaders.items() if leader in brokers}
    starts = look_at_log_starts(connection, leaders, facts.uploads, deadline)
    return RemoteLook(facts=facts, leaders=leaders, starts=starts, notes=tuple(dict.fromkeys(notes)))


def finish_look(
    connection: Connection,
    topics: frozenset[str] | None,
    look: RemoteLook,
    described: LogDirsByBroker,
    deadline: Deadline,
    on_disk: OnDisk = unseen,
) -> RemoteInfo:
    """The look at the local log starts that comes after the log dirs, and what all of it means."""
    local_after = look_at_local_starts(connection, look.leaders, deadline)
    _find_reasons_for_the_rest(connection, described, topics, look.facts, deadline.renewed())
    return RemoteInfo(
        brokers=filled(described, look.facts, look.starts, local_after, on_disk),
        skipped_records=look.facts.logs.skipped_records,
        notes=look.notes,
    )


def _without_remote_info(brokers: LogDirsByBroker, asked: frozenset[str] | None, notes: tuple[str, ...]) -> RemoteInfo:
    names = {n for answer in brokers.values() for d in answer.log_dirs.values() for n in d.replicas.topic_names}
    facts = RemoteFacts(topics=dict.fromkeys(names if asked is None else names & asked, Reason.NO_ANSWER))
    starts = LogStarts(earliest={}, local={}, epoch_ends={})
    return RemoteInfo(brokers=filled(brokers, facts, starts, {}), skipped_records=0, notes=notes)


def _look_at_uploads(
    connection: Connection,
    names: frozenset[str] | None,
    deadline: Deadline,
    follower: RemoteLogFollower,
    progress: Progress | None,
    notes: list[str],
) -> RemoteFacts:
    described = describe_topics(connection, names, deadline)
    reasons = _tiered_or_why_not(connection, described, deadline.renewed())
    tiered = {name: described[name] for name, reason in reasons.items() if reason is Reason.KNOWN}
    if not tiered:
        return RemoteFacts(topics=reasons)
    metadata_topic = _metadata_topic(connection, deadline.renewed())
    if isinstance(metadata_topic, Reason):
        return RemoteFacts(topics=reasons | dict.fromkeys(tiered, metadata_topic))
    keys = [(id_of(topic), partition) for topic in tiered.values() for partition in topic.leaders]
    logs = follower.follow(connection, keys, metadata_topic.leaders, deadline.renewed(), progress)
    notes += [f"remote log metadata could not be read: {failure}" for failure in logs.failures.values()]
    return RemoteFacts(topics=reasons, tiered=tiered, logs=logs)


def _tiered_or_why_not(connection: Connection, topics: Mapping[str, Topic], deadline: Deadline) -> dict[str, Reason]:
    reasons = {name: _reason_of(topic) for name, topic in topics.items() if topic.error is not None}
    usable = {name: topic for name, topic in topics.items() if topic.error is None}
    configs = describe_topic_configs(connection, usable, [_TIERED], deadline)
    for name, topic in usable.items():
        config = configs.get(name)
        if config is None or isinstance(config, Failure):
            refused = config is not None and config.kind is FailureKind.NOT_AUTHORIZED
            reasons[name] = Reason.NO_PERMISSION if refused else Reason.NO_ANSWER
        elif config.get(_TIERED) != "true":
            # Brokers before 3.6 do not know the key at all: their topics cannot be tiered.
            reasons[name] = Reason.NOT_TIERED
        else:
            reasons[name] = Reason.KNOWN if topic.topic_id is not None else Reason.BROKER_TOO_OLD
    return reasons


def _reason_of(topic: Topic) -> Reason:
    refused = topic.error is not None and topic.error.code == TOPIC_AUTHORIZATION_FAILED
    return Reason.NO_PERMISSION if refused else Reason.CHANGING


def _metadata_topic(connection: Connection, deadline: Deadline) -> Topic | Reason:
    any_broker = next(broker for broker in connection.brokers if broker not in deadline.silent)
    manager = describe_broker_config(connection, any_broker, [_METADATA_MANAGER], deadline)
    # Without the permission to see the broker's configuration, the topic itself must tell.
    if (
        not isinstance(manager, Failure)
        and manager.get(_METADATA_MANAGER, _TOPIC_BASED_MANAGER) != _TOPIC_BASED_MANAGER
    ):
        return Reason.OTHER_METADATA_MANAGER
    topic = describe_topics(connection, [METADATA_TOPIC], deadline.renewed())[METADATA_TOPIC]
    if topic.error is None:
        return topic
    refused = topic.error.code == TOPIC_AUTHORIZATION_FAILED
    return Reason.NO_PERMISSION if refused else Reason.METADATA_TOPIC_ABSENT


def _find_reasons_for_the_rest(
    connection: Connection,
    brokers: LogDirsByBroker,
    asked: frozenset[str] | None,
    facts: RemoteFacts,
    deadline: Deadline,
) -> None:
    """A broker lists replicas of topics that Metadata hid (no permission) or did not have yet (just created)."""
    seen = {
        name
        for answer in brokers.values()
        for log_dir in answer.log_dirs.values()
        for name in log_dir.replicas.topic_names
    }
    unexplained = [name for name in seen - set(facts.topics) if asked is None or name in asked]
    if not unexplained:
        return
    try:
        described = describe_topics(connection, unexplained, deadline)
    except ObservationFailed:
        facts.topics |= dict.fromkeys(unexplained, Reason.NO_ANSWER)
        return
    for name in unexplained:
        refused = name in described and _reason_of(described[name]) is Reason.NO_PERMISSION
        facts.topics[name] = Reason.NO_PERMISSION if refused else Reason.CHANGING

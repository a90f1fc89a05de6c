"""A short text that a consumer group's name finds again, from anywhere in the cluster: kept by Kafka itself.

It is the metadata of an offset that is committed for partition 0 of ``__consumer_offsets``, by a group without members
(OffsetCommit with generation -1). That topic is there in every cluster that has committed anything, and asking for a
group's coordinator makes it where it is not. A broker keeps the text for ``offsets.retention.minutes`` (a week) after
it was written last, and takes ``offset.metadata.max.bytes`` (4,096) of it.

To write takes READ on the group and on the topic, to read DESCRIBE on both.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.group_offsets import LEFT_OUT, offset_fetch

TOPIC = "__consumer_offsets"
_PARTITION = 0
_GROUP = 0
"""The kind of coordinator that is asked for."""
_SEVERAL_KEYS, _LAST_WITH_NAMES = 4, 9
_NO_MEMBER = -1
_REFUSED = {29: f"the topic {TOPIC}", 30: "the groups brimline-guard-*"}
_PASSING = frozenset({3, 14, 15, 16})
"""The topic is being made, or a coordinator reads its groups or is moving."""
_ASK_AGAIN_AFTER = 0.25

Note = str | Failure | None
"""``None``: there is none."""


def read_notes(
    connection: Connection,
    groups: Collection[str],
    deadline: Deadline,
    *,
    waits: bool = True,
    sleep: Callable[[float], None] = time.sleep,
) -> Mapping[str, Note]:
    """Of every group. ``waits``: what may pass is asked for again until the deadline."""
    found: dict[str, Note] = {}
    left = list(groups)
    while left:
        answers = _asked_once(connection, left, deadline)
        found.update({group: _read(answer) for group, answer in answers.items()})
        left = [group for group, answer in answers.items() if isinstance(answer, int) and answer in _PASSING]
        if not waits or deadline.remaining_ms <= _ASK_AGAIN_AFTER * 1000:
            break
        if left:
            sleep(_ASK_AGAIN_AFTER)
    return found


def write_note(
    connection: Connection, group: str, text: str, deadline: Deadline, sleep: Callable[[float], None] = time.sleep
) -> None:
    """What may pass is tried again until the deadline. Raises ``ObservationFailed``."""
    while outcome := _written_once(connection, group, text, deadline):
        if outcome not in _PASSING or deadline.remaining_ms <= _ASK_AGAIN_AFTER * 1000:
            raise ObservationFailed(outcome if isinstance(outcome, Failure) else _refusal(outcome, "READ"))
        sleep(_ASK_AGAIN_AFTER)


def _written_once(connection: Connection, group: str, text: str, deadline: Deadline) -> Failure | int:
    """0: it is written."""
    coordinators, failed = _coordinators(connection, [group], deadline)
    for broker in coordinators:
        answer = connection.ask(broker, _commit(group, text), deadline)
        codes = [each.error_code for topic in answer.topics for each in topic.partitions]
        failed[group] = codes[0] if codes else LEFT_OUT
    return failed[group]


def _asked_once(connection: Connection, groups: Collection[str], deadline: Deadline) -> Mapping[str, Note | int]:
    """``int``: an error code."""
    coordinators, failed = _coordinators(connection, groups, deadline)
    found: dict[str, Note | int] = dict(failed)
    questions = {broker: (broker, _fetch(some)) for broker, some in coordinators.items()}
    for broker, answer in connection.ask_each(questions, deadline).items():
        texts = {} if isinstance(answer, Failure) else {each.group_id: _text(each) for each in answer.groups}
        silence = answer if isinstance(answer, Failure) else LEFT_OUT
        found.update({group: texts.get(group, silence) for group in coordinators[broker]})
    return found


def _coordinators(
    connection: Connection, groups: Collection[str], deadline: Deadline
) -> tuple[Mapping[BrokerId, list[str]], dict[str, Failure | int]]:
    """Whom to ask for which groups, and why nobody can be asked for the others."""
    request = partial(FindCoordinatorRequest, key_type=_GROUP, coordinator_keys=list(groups), min_version=_SEVERAL_KEYS)
    coordinators: dict[BrokerId, list[str]] = defaultdict(list)
    failed: dict[str, Failure | int] = {}
    try:
        answer = connection.ask_any(request, deadline)
    except ObservationFailed as error:
        return coordinators, dict.fromkeys(groups, error.failure)
    for each in answer.coordinators:
        if each.error_code:
            failed[each.key] = each.error_code
        else:
            coordinators[BrokerId(each.node_id)].append(each.key)
    found = {*failed, *(group for some in coordinators.values() for group in some)}
    return coordinators, {**failed, **dict.fromkeys(set(groups) - found, LEFT_OUT)}


def _fetch(groups: Collection[str]) -> OffsetFetchRequest:
    topic_fields = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
    return offset_fetch(groups, [topic_fields(name=TOPIC, partition_indexes=[_PARTITION])])


def _commit(group: str, text: str) -> OffsetCommitRequest:
    topic_fields = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic_fields.OffsetCommitRequestPartition(
        partition_index=_PARTITION, committed_offset=0, committed_leader_epoch=-1, committed_metadata=text
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_MEMBER,
        member_id="",
        group_instance_id=None,
        topics=[topic_fields(name=TOPIC, partitions=[partition])],
        max_version=_LAST_WITH_NAMES,
    )


def _text(answer: Any) -> str | int | None:
    for each in (each for topic in answer.topics for each in topic.partitions):
        if each.error_code:
            return int(each.error_code)
        if each.committed_offset >= 0:
            return str(each.metadata or "")
    return answer.error_code or None


def _read(answer: Note | int) -> Note:
    return _refusal(answer, "DESCRIBE") if isinstance(answer, int) else answer


def _refusal(code: int, right: str) -> Failure:
    if code not in _REFUSED:
        return Failure(kind=FailureKind.KAFKA_ERROR, message=f"the coordinator answers {KafkaError(code)}")
    message = f"no permission: this principal needs {right} on {_REFUSED[code]} ({KafkaError(code)})"
    return Failure(kind=FailureKind.NOT_AUTHORIZED, message=message)

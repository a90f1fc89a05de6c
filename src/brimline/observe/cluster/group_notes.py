"""What guards of before have left in Kafka for one another: read once, at the upgrade (``guard.reclaim.inherited``).

A note is the metadata of an offset that a group without members has committed for partition 0 of
``__consumer_offsets``. Whoever may read in the cluster may write such a note, so nothing is deleted because of one.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from brimline.model import BrokerId, Failure, FailureKind, KafkaError
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.group_offsets import LEFT_OUT, offset_fetch

_TOPIC, _PARTITION = "__consumer_offsets", 0
_OF_GROUPS, _SEVERAL_KEYS = 0, 4
_REFUSED = frozenset({29, 30})

Note = str | Failure | None
"""``None``: there is none."""


def read_notes(connection: Connection, groups: Collection[str], deadline: Deadline) -> Mapping[str, Note]:
    """Of every group. Raises ``ObservationFailed`` when nobody answers."""
    request = partial(
        FindCoordinatorRequest, key_type=_OF_GROUPS, coordinator_keys=list(groups), min_version=_SEVERAL_KEYS
    )
    found: dict[str, Note] = dict.fromkeys(groups, LEFT_OUT)
    coordinators: dict[BrokerId, list[str]] = defaultdict(list)
    for each in connection.ask_any(request, deadline).coordinators:
        if each.error_code:
            found[each.key] = _failure(each.error_code)
        else:
            coordinators[BrokerId(each.node_id)].append(each.key)
    topic_fields = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
    topics = [topic_fields(name=_TOPIC, partition_indexes=[_PARTITION])]
    questions = {broker: (broker, offset_fetch(some, topics)) for broker, some in coordinators.items()}
    for broker, answer in connection.ask_each(questions, deadline).items():
        if isinstance(answer, Failure):
            found.update(dict.fromkeys(coordinators[broker], answer))
        else:
            found.update({each.group_id: _text(each) for each in answer.groups})
    return found


def _text(answer: Any) -> Note:
    for each in (each for topic in answer.topics for each in topic.partitions):
        if each.error_code:
            return _failure(each.error_code)
        if each.committed_offset >= 0:
            return str(each.metadata or "")
    return _failure(answer.error_code) if answer.error_code else None


def _failure(code: int) -> Failure:
    kind = FailureKind.NOT_AUTHORIZED if code in _REFUSED else FailureKind.KAFKA_ERROR
    return Failure(kind=kind, message=f"the coordinator answers {KafkaError(code)}")

"""Produce requests by hand: no client library hides an error code, its text, or a connection that is closed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from kafka.protocol.metadata import ApiVersionsRequest

from tests.integration.raw_kafka import RawConnection, framed, raw_connection, request
from tests.wire.produce_messages import (
    FIRST_VERSION_WITH_TOPIC_ID,
    Partition,
    PlainRequest,
    PlainTopic,
    answer_read_by_oracle,
    batch,
    encoded_request,
)

BY_NAME = 9
BY_ID = FIRST_VERSION_WITH_TOPIC_ID
"""Versions of Produce that name their topics in the one and in the other way; both carry a text with an error."""

Where = tuple[str, int]
"""Topic and partition."""
Parts = Mapping[Where, bytes] | Sequence[Where]
"""What is sent: these batches, or some record for each of these partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The answer for one partition."""

    code: int
    text: str | None
    offset: int


class RawProducer:
    """One request at a time. ``by_name`` is the version of those that name topics by name."""

    def __init__(self, connection: RawConnection, by_name: int = BY_NAME) -> None:
        self._connection = connection
        self._by_name = by_name

    def produce(self, parts: Parts, ids: Mapping[str, UUID] | None = None) -> dict[Where, Said]:
        """All in one request, in which each partition is answered once. ``ids``: name the topics by these."""
        answer = answer_read_by_oracle(self.produce_for_bytes(parts, ids), BY_ID if ids else self._by_name)
        names = {topic_id: name for name, topic_id in (ids or {}).items()}
        said = [
            (
                (topic.name if topic.topic_id is None else names[topic.topic_id], partition.index),
                Said(code=partition.error_code, text=partition.message, offset=partition.base_offset),
            )
            for topic in answer.topics
            for partition in topic.partitions
        ]
        assert sorted(where for where, _ in said) == sorted(parts), "every partition is answered, and only once"
        return dict(said)

    def produce_for_bytes(self, parts: Parts, ids: Mapping[str, UUID] | None = None) -> bytes:
        """The same; the answer as it comes."""
        answer = self._connection.ask(_frame(parts, ids, self._by_name, acks=-1))
        assert answer is not None, "the connection was closed instead of an answer"
        return answer

    def is_closed_after(self, parts: Parts, *, acks: int = 0) -> bool:
        """Produce without acknowledgement, to which there is no answer, and wait for the end of the connection."""
        return self._connection.ask(_frame(parts, None, self._by_name, acks=acks)) is None

    def api_versions(self) -> bytes:
        """What is offered, as it comes."""
        return self._connection.answers(request(ApiVersionsRequest(), 0))


@contextmanager
def raw_producer(address: str, by_name: int = BY_NAME) -> Iterator[RawProducer]:
    with raw_connection(address) as connection:
        yield RawProducer(connection, by_name)


def _frame(parts: Parts, ids: Mapping[str, UUID] | None, by_name: int, *, acks: int) -> bytes:
    batches = parts if isinstance(parts, Mapping) else dict.fromkeys(parts, batch())
    topics: dict[str, list[Partition]] = {}
    for (topic, partition), records in batches.items():
        topics.setdefault(topic, []).append(Partition(index=partition, records=records))
    named = [
        PlainTopic(name=name, topic_id=ids[name] if ids else None, partitions=partitions)
        for name, partitions in topics.items()
    ]
    return framed(encoded_request(PlainRequest(topics=named, acks=acks), BY_ID if ids else by_name))

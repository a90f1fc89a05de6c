"""What the guard says of followers without room: skipped, or fenced.

Which partitions are not to grow on which followers: the guard's word, for as long as it keeps giving it.

**Invariant.** A ``SkipSnapshot`` never changes; ``FollowerSkips`` replaces it whole, so the forwarder takes no lock and
sees one moment.

**Fail open.** Nothing here is on record, and a word that is not renewed in time counts for nothing, which is checked
when it is read. A gateway that has just started skips nothing; a guard that has died, or cannot say which followers are
full, lets replication go on, seconds later. The other way round a follower could stay out of the ISR for ever, for a
disk that has long had room again.

Thousands of partitions may be skipped. They are sent once, with a number that names them (``epoch``); renewing says
that number alone. A gateway that has no such set, because it was started meanwhile or was told another one, says so,
and is sent the set again.

What the guard says of followers that have no room, read from its JSON: whose partitions are not to be produced to.

::

    {"3": {"reason": "a follower's disk is full: …", "topics": [{"topic": "orders", "partitions": [0, 1]}]}}
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

from brimline.decide.followers import Partition
from brimline.model import BadInput

LONGEST_SECONDS = 60.0
"""The guard renews its word every second or so; nothing that it says should outlive it by more."""

_LARGEST_PARTITION = 2**31 - 1


class SkippedTopic(NamedTuple):
    """Partitions of one topic. The id is what followers call it since Kafka 3.1, the name what older ones do; with
    only one of them given, the others' fetches pass."""

    name: str | None
    topic_id: UUID | None
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPartitions:
    """Of one follower, in the two ways in which a fetch can call them."""

    by_name: frozenset[Partition] = frozenset()
    by_id: frozenset[Partition] = frozenset()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkipSnapshot:
    """``followers`` goes by broker id, and counts until ``until`` on the clock ``seconds``."""

    seconds: Callable[[], float]
    epoch: int | None = None
    followers: Mapping[int, SkippedPartitions] = field(default_factory=dict)
    until: float = 0.0

    @property
    def is_in_force(self) -> bool:
        return bool(self.followers) and self.seconds() < self.until

    @property
    def seconds_left(self) -> float:
        return max(self.until - self.seconds(), 0.0)


class FollowerSkips:
    """Thread-safe."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._replacing = threading.Lock()
        self.snapshot = SkipSnapshot(seconds=seconds)

    def put(self, followers: Mapping[int, Iterable[SkippedTopic]], *, epoch: int, seconds: float) -> None:
        """In place of everything that was said before; it counts for so many seconds."""
        _check(seconds)
        skipped = {broker: _skipped(topics) for broker, topics in followers.items()}
        with self._replacing:
            self.snapshot = SkipSnapshot(
                seconds=self._seconds,
                epoch=epoch,
                followers={broker: partitions for broker, partitions in skipped.items() if partitions.count},
                until=self._seconds() + seconds,
            )

    def renew(self, *, epoch: int, seconds: float) -> bool:
        """Whether this is what was said last: then it counts for so many seconds from now."""
        _check(seconds)
        with self._replacing:
            if self.snapshot.epoch != epoch:
                return False
            self.snapshot = replace(self.snapshot, until=self._seconds() + seconds)
            return True

    def drop_expired(self) -> Mapping[int, SkippedPartitions]:
        """What has run out since the last time, for whoever tells people of it."""
        with self._replacing:
            snapshot = self.snapshot
            if not snapshot.followers or snapshot.is_in_force:
                return {}
            self.snapshot = SkipSnapshot(seconds=self._seconds)
            return snapshot.followers


def read_followers(document: object) -> dict[int, list[SkippedTopic]]:
    """From JSON: ``{"2": [{"topic": "orders", "topicId": "…", "partitions": [0, 1]}]}``."""
    if not isinstance(document, dict):
        raise BadInput("followers is an object that goes by broker id")
    return {_broker_id(key): [_topic(row) for row in _list(rows)] for key, rows in document.items()}


def _skipped(topics: Iterable[SkippedTopic]) -> SkippedPartitions:
    listed = list(topics)
    return SkippedPartitions(
        by_name=frozenset((each.name.encode(), number) for each in listed if each.name for number in each.partitions),
        by_id=frozenset(
            (each.topic_id.bytes, number) for each in listed if each.topic_id for number in each.partitions
        ),
        count=sum(len(each.partitions) for each in listed),
    )


def _check(seconds: float) -> None:
    if not 0 < seconds <= LONGEST_SECONDS:
        raise BadInput(f"skips last more than 0 and at most {LONGEST_SECONDS:.0f} seconds, not {seconds}")


def _broker_id(key: str) -> int:
    if not key.isdecimal():
        raise BadInput(f"{key!r} is no broker id")
    return int(key)


def _topic(row: Any) -> SkippedTopic:
    if not isinstance(row, dict):
        raise BadInput("a topic is an object with topic, topicId and partitions")
    name, topic_id, partitions = row.get("topic"), row.get("topicId"), _list(row.get("partitions"))
    if not (name or topic_id) or not isinstance(name, str | None) or not isinstance(topic_id, str | None):
        raise BadInput("a topic is called by topic, topicId or both")
    if not all(isinstance(number, int) and 0 <= number <= _LARGEST_PARTITION for number in partitions):
        raise BadInput(f"partitions of {name or topic_id} that are no partition numbers")
    return SkippedTopic(name, None if topic_id is None else _uuid(topic_id), tuple(partitions))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInput(f"{text!r} is no topic id: hexadecimal digits are expected") from None


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput("a list is missing")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedFollower:
    """A broker without room, why, and the partitions that it holds there and this broker leads."""

    broker: int
    reason: str
    partitions: tuple[tuple[str, int], ...]


def read_full_followers(document: object) -> list[FencedFollower]:
    """Raises ``BadInput`` for what is not such a document."""
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        raise BadInput("followers is an object that goes by broker id, to objects with reason and topics")
    topics = read_followers({broker: each.get("topics") for broker, each in document.items()})
    return [
        FencedFollower(
            broker=int(broker),
            reason=str(each.get("reason", "")),
            partitions=tuple(_named(topics[int(broker)])),
        )
        for broker, each in document.items()
    ]


def _named(topics: list[SkippedTopic]) -> list[tuple[str, int]]:
    """Names alone count: the gateway knows the names of all topics whose logs are here, and we speak of no others."""
    return [(topic.name, number) for topic in topics if topic.name is not None for number in topic.partitions]

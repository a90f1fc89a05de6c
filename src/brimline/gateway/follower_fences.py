"""What the guard says of followers that have no room, read from its JSON: whose partitions are not to be produced to.

::

    {"3": {"reason": "a follower's disk is full: …", "topics": [{"topic": "orders", "partitions": [0, 1]}]}}
"""

from dataclasses import dataclass

from brimline.gateway.fetch_skips import SkippedTopic, read_followers
from brimline.model import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class FullFollower:
    """A broker without room, why, and the partitions that it holds there and this broker leads."""

    broker: int
    reason: str
    partitions: tuple[tuple[str, int], ...]


def read_full_followers(document: object) -> list[FullFollower]:
    """Raises ``BadInput`` for what is not such a document."""
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        raise BadInput("followers is an object that goes by broker id, to objects with reason and topics")
    topics = read_followers({broker: each.get("topics") for broker, each in document.items()})
    return [
        FullFollower(
            broker=int(broker),
            reason=str(each.get("reason", "")),
            partitions=tuple(_named(topics[int(broker)])),
        )
        for broker, each in document.items()
    ]


def _named(topics: list[SkippedTopic]) -> list[tuple[str, int]]:
    """Names alone count: the gateway knows the names of all topics whose logs are here, and we speak of no others."""
    return [(topic.name, number) for topic in topics if topic.name is not None for number in topic.partitions]

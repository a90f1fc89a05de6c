"""What a gateway is told over its control socket, and the frame of its answers.

One JSON object a line each way, each with the version ``v`` (none is 1) and an order with its name, ``op``::

    {"v": 1, "op": "lease", "seconds": 20.0, "full": {"/data/a": "why"}, "offline": ["/data/b"]}
    {"v": 1, "op": "skips", "epoch": 7, "seconds": 20.0,
     "followers": {"2": [{"topic": "orders", "topicId": "5e3c1f0a-…", "partitions": [0, 1]}]}}
    {"v": 1, "op": "follower-fences", "epoch": 7, "seconds": 20.0,
     "followers": {"2": {"reason": "…", "topics": [{"topic": "orders", "partitions": [0, 1]}]}}}
    {"v": 1, "op": "address-limits", "connections": 100, "connectionsOf": {"10.0.0.5": 1000},
     "perSecond": null, "perSecondOf": {"10.0.0.7": 9.0}}
    {"v": 1, "op": "intercepted", "letGo": true}
    {"v": 1, "op": "fence", "logDir": "/data/a", "reason": "…", "by": "root"}

Members are added, never changed or removed, while the version stays.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from brimline.documents.codec import to_json

VERSION = 1
NO_LIMIT = math.inf
_LARGEST_PARTITION = 2**31 - 1
_OMITTED = {"omitted": True}
_LIMIT = {
    "omitted": True,
    "write": lambda limit: None if limit == NO_LIMIT else limit,
    "read": lambda limit: NO_LIMIT if limit is None else _limit(limit),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOrder:
    OP: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        return {"v": VERSION, "op": self.OP, **to_json(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWanted(GatewayOrder):
    OP: ClassVar[str] = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(GatewayOrder):
    """The guard's decision: these log dirs are full, each with a sentence why. Holds for so many seconds.

    ``offline``: those that the broker holds offline, until it is said otherwise. The answer's ``full`` are the log dirs
    that the gateway itself sees full; where they are others, both look at their disks at once."""

    OP: ClassVar[str] = "lease"
    seconds: float
    full: Mapping[str, str]
    offline: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldTopic:
    """Partitions of one topic. The id is what followers call it since Kafka 3.1, the name what older ones do; with
    only one of them given, the others' fetches pass."""

    topic: str | None = None
    topic_id: UUID | None = None
    partitions: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.topic and self.topic_id is None:
            raise ValueError("a topic is called by topic, topicId or both")
        if not all(0 <= number <= _LARGEST_PARTITION for number in self.partitions):
            raise ValueError(f"partitions of {self.topic or self.topic_id} that are not partition numbers")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldFollower:
    """A broker without room: why, and the partitions that clients are refused for."""

    reason: str = ""
    topics: tuple[WithheldTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipsOrder(GatewayOrder):
    """Which partitions are not to grow on which followers. Without ``followers`` it renews what was said under that
    epoch. The answer's ``inForce`` is false if that is not what the gateway was told last: then it is told again."""

    OP: ClassVar[str] = "skips"
    epoch: int
    seconds: float
    followers: Mapping[int, tuple[WithheldTopic, ...]] | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFencesOrder(GatewayOrder):
    """Goes the same way, and has clients refused instead."""

    OP: ClassVar[str] = "follower-fences"
    epoch: int
    seconds: float
    followers: Mapping[int, WithheldFollower] | None = field(default=None, metadata=_OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLimitsOrder(GatewayOrder):
    """What the broker decides by the address of a client. ``None`` is not said, and stays as it was. It holds until it
    is said otherwise."""

    OP: ClassVar[str] = "address-limits"
    connections: float | None = field(default=None, metadata=_LIMIT)
    connections_of: Mapping[str, int] | None = field(default=None, metadata=_OMITTED)
    per_second: float | None = field(default=None, metadata=_LIMIT)
    per_second_of: Mapping[str, float] | None = field(default=None, metadata=_OMITTED)

    def __post_init__(self) -> None:
        said = (self.connections is None, self.per_second is None)
        if said != (self.connections_of is None, self.per_second_of is None):
            raise ValueError("a limit for all goes with the limits of addresses")
        for limit in (*(self.connections_of or {}).values(), *(self.per_second_of or {}).values()):
            _limit(limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptedWanted(GatewayOrder):
    """Whether it is there, and on which ports of its own it waits for clients of the broker's ports. ``let_go``: it
    ends some of its connections, each between two requests. ``begins``: clients went past it until now."""

    OP: ClassVar[str] = "intercepted"
    let_go: bool = False
    begins: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceOrder(GatewayOrder):
    """By hand."""

    OP: ClassVar[str] = "fence"
    log_dir: str | None = field(default=None, metadata=_OMITTED)
    topic: str | None = field(default=None, metadata=_OMITTED)
    reason: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        if (self.log_dir is None) == (self.topic is None):
            raise ValueError("give either a log dir or a topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceOrder(FenceOrder):
    OP: ClassVar[str] = "unfence"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAnswer:
    """``error`` goes with ``ok`` being false, the others with some orders."""

    v: object = VERSION
    ok: bool
    error: object = "the gateway refuses without a reason"
    state: object = None
    full: object = None
    in_force: object = None
    passed_unread: object = None
    ports: object = None
    for_fetches: object = None


def _limit(limit: Any) -> Any:
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
        raise ValueError("a limit is a number from 0, or null for none")
    return limit

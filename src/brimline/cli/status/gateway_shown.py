"""The gateway's part of a guard's ``/v1/state``, in the shapes that a table needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFence:
    target: str
    is_topic: bool
    is_manual: bool
    reason: str
    since: datetime
    seconds: float
    """How long it has stood when the state was taken."""
    by: str | None
    partitions: int
    what_to_do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRefused:
    partition: str
    client: str
    batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLately:
    seconds: float
    batches: int
    size: int
    most: tuple[ShownRefused, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """What a gateway said that answered."""

    version: str
    is_enforcing: bool
    is_draining: bool
    reject_error: int
    up_seconds: float
    connections: int
    listeners: tuple[str, ...]
    fences: tuple[ShownFence, ...]
    lately: ShownLately


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGateway:
    failure: str | None
    answer: ShownAnswer | None

    @property
    def lets_everything_through(self) -> bool:
        return self.answer is not None and not self.answer.fences


def shown_gateway(gateway: Json | None, observed_at: str) -> ShownGateway | None:
    if gateway is None:
        return None
    failure, state = gateway["failure"], gateway["state"]
    return ShownGateway(
        failure=None if failure is None else failure["message"],
        answer=None if state is None else _answer(state, datetime.fromisoformat(observed_at)),
    )


def _answer(state: Json, now: datetime) -> ShownAnswer:
    return ShownAnswer(
        version=state["version"],
        is_enforcing=state["enforcement"] == "gateway",
        is_draining=state["draining"],
        reject_error=state["rejectError"],
        up_seconds=_seconds(datetime.fromisoformat(state["startedAt"]), now),
        connections=state["connections"],
        listeners=tuple(f"{listener['name']}://{listener['address']}" for listener in state["listeners"]),
        fences=_fences(state["fences"], now),
        lately=_lately(state["lately"]),
    )


def _fences(fences: list[Json], now: datetime) -> tuple[ShownFence, ...]:
    """Full disks first. Gateway and guard both see them: for people that is one fence, as old as the older one."""
    shown: dict[tuple[str, bool], ShownFence] = {}
    for fence in sorted((_fence(fence, now) for fence in fences), key=lambda fence: (fence.is_manual, fence.since)):
        shown.setdefault((fence.target, fence.is_manual), fence)
    return tuple(shown.values())


def _fence(fence: Json, now: datetime) -> ShownFence:
    since = datetime.fromisoformat(fence["since"])
    return ShownFence(
        target=fence["logDir"] if fence["topic"] is None else f"topic {fence['topic']}",
        is_topic=fence["topic"] is not None,
        is_manual=fence["cause"] == "manual",
        reason=fence["reason"],
        since=since,
        seconds=_seconds(since, now),
        by=fence["by"],
        partitions=fence["partitions"],
        what_to_do=fence["whatToDo"],
    )


def _lately(lately: Json) -> ShownLately:
    return ShownLately(
        seconds=lately["seconds"],
        batches=lately["batches"],
        size=lately["bytes"],
        most=tuple(_refused(row) for row in lately["most"]),
    )


def _refused(row: Json) -> ShownRefused:
    partition = row["topic"] if row["partition"] is None else f"{row['topic']}-{row['partition']}"
    return ShownRefused(partition=partition, client=row["client"], batches=row["batches"])


def _seconds(since: datetime, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)

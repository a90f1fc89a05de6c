"""Followers and cordoned log dirs in a guard's ``/v1/state``, in the shapes that a table needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFollower:
    """One whose disk is full."""

    is_held_back: bool
    sentence: str
    what_to_do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFollowers:
    action: str
    why: str
    is_possible: bool
    peers: Mapping[str, int]
    """How many other brokers there are, by what is known of their disks."""
    failure: str | None
    full: tuple[ShownFollower, ...]

    @property
    def others(self) -> int:
        return sum(self.peers.values())

    @property
    def unknown(self) -> int:
        return self.others - self.peers.get("fresh", 0) - self.peers.get("stale", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCordon:
    log_dirs: tuple[str, ...]
    by_operator: tuple[str, ...]
    kept_open: tuple[str, ...]
    failure: str | None


def shown_followers(followers: Json | None) -> ShownFollowers | None:
    if followers is None:
        return None
    return ShownFollowers(
        action=followers["action"],
        why=followers["why"],
        is_possible=followers["possible"],
        peers=followers["peers"],
        failure=_message(followers["failure"]),
        full=tuple(
            ShownFollower(is_held_back=each["heldBack"], sentence=each["does"], what_to_do=each["whatToDo"])
            for each in followers["full"]
        ),
    )


def shown_cordon(cordon: Json | None) -> ShownCordon | None:
    if cordon is None:
        return None
    return ShownCordon(
        log_dirs=tuple(cordon["logDirs"]),
        by_operator=tuple(cordon["byOperator"]),
        kept_open=tuple(cordon["keptOpen"]),
        failure=_message(cordon["failure"]),
    )


def _message(failure: Json | None) -> str | None:
    return None if failure is None else failure["message"]

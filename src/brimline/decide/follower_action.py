"""What is done about a follower whose disk is full, by the leader's guard: ``brimline.follower.action``.

**Rule.** What the operator names is what is done. ``auto`` skips where this broker's gateway stands between it and its
followers, and fences elsewhere: skipping needs the brokers' own listener to run through the gateway, fencing only the
clients' one. It is the leader's layout alone that matters; a follower's gateway has no part in either.

- *Skip* (KIP-1201): the follower is not sent the partition. It leaves the ISR, clients go on, and it catches up when it
  has room: availability before durability.
- *Fence*: clients are refused for the partition although the leader has room. No replica falls behind: durability
  before availability.

Where what is to be done cannot be done, nothing is done in its place, and ``obstacle`` says why.
"""

from dataclasses import dataclass
from enum import Enum

AUTO = "auto"


class FollowerAction(Enum):
    """The value is the word of the key, of JSON and of metrics."""

    SKIP = "skip"
    FENCE = "fence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    action: FollowerAction
    why: str
    """Completes "it is … because …"."""
    obstacle: str | None = None


def choose_action(wish: str, *, carries_replication: bool, carries_clients: bool) -> Choice:
    """``wish`` is the key's value; the others tell what of this broker runs through its gateway."""
    if wish == FollowerAction.SKIP.value:
        return _skip("brimline.follower.action says so", carries_replication=carries_replication)
    if wish == FollowerAction.FENCE.value:
        return _fence("brimline.follower.action says so", carries_clients=carries_clients)
    if carries_replication:
        return _skip("followers fetch from this broker through its gateway", carries_replication=True)
    return _fence(
        "followers fetch from this broker past its gateway (brimline.gateway.listeners does not name the listener that "
        "the brokers use among themselves)",
        carries_clients=carries_clients,
    )


def _skip(why: str, *, carries_replication: bool) -> Choice:
    obstacle = (
        "followers fetch from this broker past its gateway: name the listener that the brokers use among themselves in "
        "brimline.gateway.listeners, or choose fence"
    )
    return Choice(action=FollowerAction.SKIP, why=why, obstacle=None if carries_replication else obstacle)


def _fence(why: str, *, carries_clients: bool) -> Choice:
    obstacle = "no listener of this broker runs through a gateway, so no client can be refused"
    return Choice(action=FollowerAction.FENCE, why=why, obstacle=None if carries_clients else obstacle)

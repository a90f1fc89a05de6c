"""A snapshot's way out: what waits goes first, then the new one; what cannot go waits.

**Invariant.** Every snapshot ends in exactly one place: the landing place, the spool, or the count of those dropped.
One that reached the landing place and was not yet removed from the spool when the process died is sent again: same
name, same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from brimline.durable_files import read_state
from brimline.landing.place import PlaceFailed
from brimline.landing.spool import Spool

Put = Callable[[str, bytes], None]
"""Raises ``PlaceFailed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    sent: int
    """Snapshots that reached the landing place now, old and new."""
    dropped: int
    waiting: int
    waiting_bytes: int
    failure: str | None
    """Why not everything was sent."""


def deliver(put: Put, spool: Spool, name: str, data: bytes) -> Delivery:
    """A spool that cannot be used keeps nobody from the landing place."""
    sent, failure, problem = _send_waiting(put, spool)
    if failure is None:
        failure = _try(put, name, data)
        sent += failure is None
    dropped = 0
    if failure is not None:
        dropped, kept_not = _keep(spool, name, data)
        problem = kept_not or problem
    waiting, unseen = _left(spool)
    reasons = [reason for reason in (failure, problem or unseen) if reason is not None]
    return Delivery(
        sent=sent,
        dropped=dropped,
        waiting=len(waiting),
        waiting_bytes=sum(waiting),
        failure="; ".join(reasons) or None,
    )


def _send_waiting(put: Put, spool: Spool) -> tuple[int, str | None, str | None]:
    """How many were sent, why the landing place took no more, and why the spool gave no more."""
    sent = 0
    try:
        for each in spool.waiting():
            failure = _try(put, each.name, read_state(each.path))
            if failure is not None:
                return sent, failure, None
            sent += 1
            spool.remove(each)
    except OSError as error:
        return sent, None, _unusable(error)
    return sent, None, None


def _try(put: Put, name: str, data: bytes) -> str | None:
    try:
        put(name, data)
    except PlaceFailed as failed:
        return str(failed)
    return None


def _keep(spool: Spool, name: str, data: bytes) -> tuple[int, str | None]:
    try:
        return spool.add(name, data), None
    except OSError as error:
        return 1, _unusable(error)


def _left(spool: Spool) -> tuple[list[int], str | None]:
    try:
        return [each.size for each in spool.waiting()], None
    except OSError as error:
        return [], _unusable(error)


def _unusable(error: OSError) -> str:
    return f"the spool cannot be used: {error}"

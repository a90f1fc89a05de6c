"""A run's history: everything that was done and seen, one JSON object a line, in the order in which it became known.

``at`` is in seconds since 1970, on this machine's clock, whatever a fault does to the guard's. Facts are written down
by whoever sees them; what they mean is the business of ``judge`` alone.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TextIO, get_args

from brimline.model import BadInput
from brimline.sandbox.supervisor import read_line

ONCE, STORED, LEADER, NOTHING = "once", "stored", "leader", "nothing"
"""What a client's settings promise of an acknowledged record: stored once and in order (idempotent), stored at least
once (acks=all), stored while the leader keeps its log (acks=1), nothing at all (acks=0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun(Event):
    seed: int
    version: str
    brokers: int
    replicas: int
    protected: list[str]
    left_out: dict[str, str]
    """Faults and clients that are not to be had here, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client(Event):
    client: str
    topic: str
    promise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(Event):
    """``at``: the client's own reading, before the record was handed to its library."""

    client: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked(Event):
    """``offset`` -1: the broker did not say where."""

    client: str
    number: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event):
    client: str
    number: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Event):
    """``suspends``: the invariants that do not count for what this fault touches, until it is undone."""

    step: int
    fault: str
    target: str
    suspends: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone(Event):
    step: int
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced(Event):
    """The gateway itself has said so; ``at`` is when its answer had come. ``fence`` numbers the fences of a run."""

    fence: int
    broker: int
    log_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Event):
    """``at``: the last moment at which the fence was known to be up: the gateway was asked then and said so, or it did
    not answer and the volume was still over its limit. ``used_percent``: of the volume, when the fence was gone."""

    fence: int
    used_percent: float
    is_still_full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd(Event):
    """Where the leader's log ended, behind a fence. ``asked_at`` is after the fence was known to be up."""

    fence: int
    topic: str
    partition: int
    leader_epoch: int
    end: int
    asked_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart(Event):
    """Where a log begins, whenever that has changed."""

    topic: str
    partition: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Event):
    """A trim that a guard's ledger has on record."""

    broker: int
    topic: str
    partition: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Event):
    """A topic was deleted and created again."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied(Event):
    """The only copy of this log was taken away by a fault."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """A process has ended, and no fault has killed it."""

    process: str
    exit_code: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint(Event):
    """A line of a log that nobody wants to see: ``what`` is ``no-space`` (of a broker) or ``bug`` (of ours)."""

    process: str
    what: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(Event):
    """A record that was read back at the end, from the broker itself."""

    topic: str
    partition: int
    offset: int
    client: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Event):
    """At the end, all faults undone: whether ``what`` works again (a broker, a gateway, a guard, a client)."""

    what: str
    works: bool
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Event):
    """The last line of a run that came to its end."""

    minutes: float
    faults: int


AnyEvent = (
    Begun
    | Client
    | Sent
    | Acked
    | Failed
    | Fault
    | Undone
    | Fenced
    | Released
    | LogEnd
    | LogStart
    | Planned
    | Created
    | Emptied
    | Ended
    | Complaint
    | Stored
    | Recovered
    | Finished
)
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(AnyEvent)}


class History:
    """Written by many threads, a line at a time."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def note(self, event: AnyEvent) -> None:
        line = line_of(event)
        with self._lock:
            self._file.write(line)


def line_of(event: AnyEvent) -> str:
    return json.dumps({"kind": type(event).__name__, **asdict(event)}) + "\n"


def read_history(path: Path) -> Iterator[AnyEvent]:
    """Raises ``BadInput`` with the line that is none."""
    try:
        with path.open() as lines:
            for number, line in enumerate(lines, 1):
                yield event_of(line, f"{path}, line {number}")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error


def event_of(line: str, where: str) -> AnyEvent:
    try:
        members = read_line(line)
        kind = _KINDS[members.pop("kind")]
        known = {each.name for each in fields(kind)}
        event: AnyEvent = kind(**{name: value for name, value in members.items() if name in known})  # type: ignore[assignment]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{where}: no line of a history ({error!r})") from error
    return event

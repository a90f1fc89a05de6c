"""The guard's side of the line to its gateway: leases out, figures in, news for the log.

**The last minute** is worked out from counters that only grow. The gateway counts from its start. Its counts of a
minute ago are kept, and the difference is what happened since. A gateway that was started again counts from 0, so what
was kept of the one before is forgotten.

**Invariant.** While both run, the gateway knows the full log dirs of the guard's last look, and the guard those of the
gateway's: a change is sent at once, what did not change is said again four times a second, and where the two differ
both look at once, each for itself: the word of one is never the state of the other. It is a lease: a guard that is gone
or hangs cannot keep a log dir fenced, nor can its silence release one that the gateway itself sees full.

A gateway may be there or not, may come later and may be started again. ``decided`` only leaves a note and wakes the
task; nobody else ever waits for the gateway.

The log has one line when the gateway begins to answer, one when it stops, none in between.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from brimline.documents.gateway_state import GatewayState, RefusedBatches
from brimline.model import BadInput, Bytes, Failure, FailureKind, ObservationFailed
from brimline.service.clock import Clock
from brimline.service.log_lines import say

LATELY = 60.0
_APART = 5.0
"""Counts are kept this often: there may be a thousand of them each time."""
_MOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """``most`` has the rows with the most batches. ``seconds`` is a minute, or less while nobody has looked for one."""

    seconds: float
    batches: int
    bytes: Bytes
    most: tuple[RefusedBatches, ...]


NOTHING_YET = Lately(seconds=0.0, batches=0, bytes=Bytes(0), most=())


@dataclass(frozen=True, slots=True)
class _Counts:
    seconds: float
    gateway: tuple[int, object]
    rows: tuple[RefusedBatches, ...]


class RefusedLately:
    def __init__(self) -> None:
        self._kept: deque[_Counts] = deque()

    def add(self, state: GatewayState, seconds: float) -> Lately:
        """The newest state, seen at this time of the monotonic clock; returns what happened up to it."""
        now = _Counts(seconds, (state.pid, state.started_at), state.counted)
        if self._kept and self._kept[0].gateway != now.gateway:
            self._kept.clear()
        if not self._kept or seconds >= self._kept[-1].seconds + _APART:
            self._kept.append(now)
        while len(self._kept) > 1 and self._kept[1].seconds <= seconds - LATELY:
            self._kept.popleft()
        return _between(self._kept[0], now)


def _between(then: _Counts, now: _Counts) -> Lately:
    before = {(row.topic, row.partition, row.client): row for row in then.rows}
    grown = [
        row if (old := before.get((row.topic, row.partition, row.client))) is None else _difference(row, old)
        for row in now.rows
    ]
    return Lately(
        seconds=now.seconds - then.seconds,
        batches=sum(row.batches for row in grown),
        bytes=Bytes(sum(row.bytes for row in grown)),
        most=tuple(_largest(row for row in grown if row.batches > 0)),
    )


def _difference(row: RefusedBatches, old: RefusedBatches) -> RefusedBatches:
    return replace(row, batches=row.batches - old.batches, bytes=Bytes(row.bytes - old.bytes))


def _largest(rows: Iterable[RefusedBatches]) -> list[RefusedBatches]:
    return sorted(rows, key=lambda row: (-row.batches, row.topic, row.partition or 0, row.client))[:_MOST]


LEASE = 5.0
RENEW = 0.25
ASK_STATE = 1.0


class LinkedGateway(Protocol):
    """What is asked of the gateway; ``GatewayClient`` asks a real one."""

    def lease(
        self, full: Mapping[str, str], seconds: float, offline: Collection[str] = ()
    ) -> frozenset[str] | None: ...

    def state(self) -> GatewayState: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayReport:
    """The gateway's last answer, or why there is none; neither before it was asked for the first time."""

    is_wanted: bool
    """Whether ``brimline.enforcement`` relies on it."""
    state: GatewayState | None = None
    failure: Failure | None = None
    lately: Lately = NOTHING_YET

    @property
    def is_absent(self) -> bool:
        """Nobody wants one and none is there: nothing to speak of."""
        return not self.is_wanted and self.state is None and (self.failure is None or _is_gone(self.failure))


class GatewayTask:
    """``changed`` is told of every new report; ``wake`` ends the wait between two steps."""

    def __init__(
        self,
        gateway: LinkedGateway,
        clock: Clock,
        wake: Callable[[], None],
        changed: Callable[[GatewayReport], None],
        differs: Callable[[], None] = lambda: None,
        *,
        is_wanted: bool,
    ) -> None:
        """``differs``: the log dirs that the gateway sees full are not those of ``decided``."""
        self._gateway = gateway
        self._differs = differs
        self._clock = clock
        self._wake = wake
        self._changed = changed
        self._is_wanted = is_wanted
        self._full: Mapping[str, str] = {}
        self._offline: frozenset[str] = frozenset()
        self._told: tuple[frozenset[str], frozenset[str]] | None = None
        self._due = self._state_due = clock.seconds()
        self._lately = RefusedLately()
        self.report = GatewayReport(is_wanted=is_wanted)

    def decided(self, full: Mapping[str, str], offline: frozenset[str] = frozenset()) -> None:
        """The full log dirs, each with a sentence why. From any thread; returns at once.

        The sentences have figures in them that change with every look: those wait for the next renewal.
        """
        is_news = self._full.keys() != full.keys() or self._offline != offline
        self._full, self._offline = full, offline
        if is_news:
            self._wake()

    def step(self) -> float:
        """Say what there is to say, ask for the figures when they are due; returns the seconds until the next."""
        full, offline = self._full, self._offline
        told = (frozenset(full), offline)
        try:
            if self._clock.seconds() >= self._due or self._told != told:
                theirs = self._gateway.lease(full, LEASE, offline)
                if theirs is not None and theirs != full.keys():
                    self._differs()
                self._told = told
                self._due = self._clock.seconds() + RENEW
            if self._clock.seconds() >= self._state_due:
                self._became(self._gateway.state())
                self._state_due = self._clock.seconds() + ASK_STATE
        except ObservationFailed as error:
            self._failed(error.failure)
        except BadInput as refusal:
            self._failed(Failure(kind=FailureKind.UNSUPPORTED, message=f"the gateway refuses: {refusal}"))
        return max(self._due - self._clock.seconds(), 0.0)

    def _became(self, state: GatewayState) -> None:
        lately = self._lately.add(state, self._clock.seconds())
        self._tell(GatewayReport(is_wanted=self._is_wanted, state=state, lately=lately))

    def _failed(self, failure: Failure) -> None:
        self._told = None
        self._due = self._state_due = self._clock.seconds() + ASK_STATE
        self._tell(GatewayReport(is_wanted=self._is_wanted, failure=failure))

    def _tell(self, report: GatewayReport) -> None:
        self.report = report
        self._changed(report)


def _is_gone(failure: Failure) -> bool:
    return failure.kind is FailureKind.GONE


class GatewayNews:
    def __init__(self) -> None:
        self._said: str | None = None

    def tell(self, report: GatewayReport) -> None:
        news = "it answers" if report.state is not None else str(report.failure)
        if news == self._said:
            return
        self._said = news
        if report.state is not None:
            say(
                logging.INFO,
                "gateway-answers",
                f"gateway answers; enforcement: {report.state.enforcement}",
                pid=report.state.pid,
            )
        elif report.failure is not None:
            # Where none is wanted and none was ever set up, that is how it should be
            level = logging.INFO if report.is_absent else logging.WARNING
            rest = "; nothing is refused until it runs (start: brimline gateway)" if report.is_wanted else ""
            say(level, "gateway-silent", f"{report.failure}{rest}", kind=report.failure.kind.value)

"""The guard and its gateway: the guard's decision goes there, and the gateway's figures come back.

**Invariant.** While both run, the gateway knows the full log dirs of the guard's last look: a change is sent at once,
and what did not change is said again every second, because it is a lease: a guard that is gone or hangs cannot keep a
log dir fenced, nor can its silence release one that the gateway itself sees full.

A gateway may be there or not, may come later and may be started again. ``decided`` only leaves a note and wakes the
task; nobody else ever waits for the gateway.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from brimline.guard.clock import Clock
from brimline.guard.gateway_state import GatewayState
from brimline.guard.refused_lately import NOTHING_YET, Lately, RefusedLately
from brimline.model import BadInput, Failure, FailureKind, ObservationFailed

LEASE = 5.0
RENEW = 1.0


class Gateway(Protocol):
    """What is asked of the gateway; ``GatewayClient`` asks a real one."""

    def lease(self, full: Mapping[str, str], seconds: float) -> None: ...

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
        gateway: Gateway,
        clock: Clock,
        wake: Callable[[], None],
        changed: Callable[[GatewayReport], None],
        *,
        is_wanted: bool,
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._wake = wake
        self._changed = changed
        self._is_wanted = is_wanted
        self._full: Mapping[str, str] = {}
        self._told: frozenset[str] | None = None
        self._due = clock.seconds()
        self._lately = RefusedLately()
        self.report = GatewayReport(is_wanted=is_wanted)

    def decided(self, full: Mapping[str, str]) -> None:
        """The full log dirs, each with a sentence why. From any thread; returns at once.

        The sentences have figures in them that change with every look: those wait for the next renewal.
        """
        is_news = self._full.keys() != full.keys()
        self._full = full
        if is_news:
            self._wake()

    def step(self) -> float:
        """Say what there is to say, ask for the figures when they are due; returns the seconds until the next."""
        full = self._full
        try:
            is_due = self._clock.seconds() >= self._due
            if is_due or self._told != frozenset(full):
                self._gateway.lease(full, LEASE)
                self._told = frozenset(full)
            if is_due:
                self._became(self._gateway.state())
                self._due = self._clock.seconds() + RENEW
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
        self._due = self._clock.seconds() + RENEW
        self._tell(GatewayReport(is_wanted=self._is_wanted, failure=failure))

    def _tell(self, report: GatewayReport) -> None:
        self.report = report
        self._changed(report)


def _is_gone(failure: Failure) -> bool:
    return failure.kind is FailureKind.GONE

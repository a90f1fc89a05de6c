"""What cordon, throttle and shedding share: something of the broker is held, or let go, and it may refuse."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded

LOOK = 5.0
"""Seconds until it is seen that somebody else has changed what is held."""
UNTIL_WOKEN = 60.0

Holder = TypeVar("Holder")
Report = TypeVar("Report")


class HoldingTask(ABC, Generic[Holder, Report]):
    """``is_wanted`` is asked before every step; ``changed`` is told of every look."""

    RETRY = 30.0
    """Seconds: what was refused once is refused again, and the broker logs every refusal."""

    def __init__(
        self,
        holder: Holder,
        clock: Clock,
        is_wanted: Callable[[], bool],
        wake: Callable[[], None],
        changed: Callable[[Report], None],
    ) -> None:
        self._holder = holder
        self._clock = clock
        self._is_wanted = is_wanted
        self._wake = wake
        self._changed = changed
        self._retry_at = clock.seconds()
        self.report = self._first_report()

    @abstractmethod
    def _first_report(self) -> Report:
        """Before anything was tried."""

    def _seconds_to_wait(self) -> float:
        """After a failure; 0: it may be tried."""
        return max(0.0, self._retry_at - self._clock.seconds())

    def _tried(self, act: Callable[[], Report], failed: Callable[[Failure], Report]) -> Report:
        """What came of ``act``, and if it failed, what is to be told of that."""
        try:
            return act()
        except ObservationFailed as error:
            failure = error.failure
        except NotRecorded as error:
            failure = Failure(kind=FailureKind.UNREADABLE, message=str(error))
        is_refused = failure.kind not in (FailureKind.UNREACHABLE, FailureKind.TIMED_OUT)
        self._retry_at = self._clock.seconds() + (self.RETRY if is_refused else LOOK)
        return failed(failure)

    def _tell(self, report: Report) -> None:
        self.report = report
        self._changed(report)

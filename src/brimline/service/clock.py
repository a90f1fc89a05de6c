"""Time as an argument: the guard's tasks ask a clock, and tests tick one."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The time of day, in UTC, for people and other machines."""

    def seconds(self) -> float:
        """A clock that never jumps, for intervals."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def seconds(self) -> float:
        return time.monotonic()

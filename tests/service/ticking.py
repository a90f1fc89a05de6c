"""A clock that tests tick, and file systems that do what they are told."""

import threading
from datetime import UTC, datetime, timedelta

from brimline.model import Bytes, Failure
from brimline.observe.volumes import LogDirReading
from tests.waiting import PATIENCE_SECONDS

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class TickingClock:
    def __init__(self) -> None:
        self._seconds = 1000.0

    def now(self) -> datetime:
        return _EPOCH + timedelta(seconds=self._seconds)

    def seconds(self) -> float:
        return self._seconds

    def tick(self, seconds: float) -> None:
        self._seconds += seconds


class FakeDisks:
    """Answers looks at log dirs. A path in ``hung`` answers only when its event is set."""

    def __init__(self, **usable: int) -> None:
        self.total = Bytes(1000)
        self.usable = dict(usable)
        self.files: dict[str, int] = {}
        """Inodes left, of a thousand; of other paths they are not counted."""
        self.device = dict.fromkeys(usable, "8:1")
        self.failure: dict[str, Failure] = {}
        self.hung: dict[str, threading.Event] = {}
        self.looks: list[str] = []

    def look(self, path: str, known_device: str | None, observed_at: datetime, seconds: float) -> LogDirReading:
        self.looks.append(path)
        if path in self.hung:
            self.hung[path].wait(PATIENCE_SECONDS)
        if path in self.failure:
            failure = self.failure[path]
            return LogDirReading(
                path=path, observed_at=observed_at, seconds=seconds, device=known_device, failure=failure
            )
        return LogDirReading(
            path=path,
            observed_at=observed_at,
            seconds=seconds,
            device=self.device[path],
            total_bytes=self.total,
            usable_bytes=Bytes(self.usable[path]),
            reserved_bytes=Bytes(0),
            total_files=1000 if path in self.files else None,
            usable_files=self.files.get(path),
        )


class Answers:
    """Counts the looks that are over, so that a test can wait for the next one without sleeping."""

    def __init__(self) -> None:
        self._over = threading.Semaphore(0)

    def __call__(self) -> None:
        self._over.release()

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._over.acquire(timeout=PATIENCE_SECONDS), "no look ended"

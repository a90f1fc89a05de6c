"""Topics of mixed age, size and rate on real volumes: what was written to them, and what became of every segment file.

Both are kept by the test itself, apart from Brimline, so that what the ledger says can be held against it.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.state import CycleRecord
from brimline.act.ledger.story import Story, tell
from tests.integration.kafka_clients import meanwhile
from tests.waiting import PATIENCE_SECONDS, eventually

MIB = 1 << 20
RECORD = b"x" * 10_000
QUICK_BROKER = {
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "broker.session.timeout.ms": "30000",
    "log.index.size.max.bytes": str(64 << 10),
}
DELETE_DELAY_SECONDS = 0.5
TRIMMABLE = {
    "segment.bytes": str(MIB),
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "file.delete.delay.ms": str(int(DELETE_DELAY_SECONDS * 1000)),
}
INTERVAL_SECONDS = 1.0
RECLAIM = {
    # What these tests write is minutes old, and much of it goes at once; test_reclaim_careful.py has the default.
    "brimline.reclaim.policy": "kip-61",
    "brimline.reclaim.interval.ms": str(int(INTERVAL_SECONDS * 1000)),
    "disk.max.used.percent": "100",
    "disk.min.free.bytes": "0",
}
_LOOK_EVERY = 0.1
_STEP_SECONDS = 0.05
_BLOCK = 512
_BASE_DIGITS = 20


def reclaim_keys(state_dir: Path, ceiling: int, **more: str) -> dict[str, str]:
    return {
        **RECLAIM,
        "brimline.state.dir": str(state_dir),
        "log.retention.disk.usage.percent": str(ceiling),
        **{f"brimline.{name.replace('_', '.')}": value for name, value in more.items()},
    }


def story(state_dir: Path, broker: int = 1) -> Story:
    return tell(LedgerFiles(state_dir, broker))


# What was written ----------------------------------------------------------------------------------------------------


class Writer:
    """Writes to partition 0 of topics; ``timestamps`` has the timestamp of every acknowledged record by its offset."""

    def __init__(self, servers: str, *, keys: bool = False) -> None:
        """``keys``: every record has one, for topics that are compacted."""
        self._keys = keys
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True})
        self.timestamps: defaultdict[str, list[int]] = defaultdict(list)
        self.bytes = 0
        self.failures: list[str] = []

    def write(self, topic: str, megabytes: float, *, hours_old: float = 0.0) -> None:
        """All acknowledged when it returns."""
        for _ in range(max(int(megabytes * MIB) // len(RECORD), 1)):
            self._send(topic, hours_old)
        self.flush()

    def flow(self, rates: Mapping[str, float], until_bytes: int, may_go_on: Callable[[int], bool]) -> None:
        """Until so many bytes were written in all; every one acknowledged.

        To each topic its share, and not more in a second. ``may_go_on`` is asked all the time, with the bytes so far.
        """
        sent = dict.fromkeys(rates, 0)
        at_once = int(sum(rates.values()) * _STEP_SECONDS) // len(RECORD)
        while self.bytes < until_bytes:
            eventually(lambda: may_go_on(self.bytes))
            for _ in range(at_once):
                topic = min(rates, key=lambda each: sent[each] / rates[each])
                self._send(topic, 0.0)
                sent[topic] += len(RECORD)
            self.flush()
            time.sleep(_STEP_SECONDS)

    def flush(self) -> None:
        left = self._producer.flush(PATIENCE_SECONDS)
        assert (left, self.failures) == (0, []), "not everything was acknowledged"

    def _send(self, topic: str, hours_old: float) -> None:
        at = int((time.time() - hours_old * 3600) * 1000)
        key = str(self.bytes // len(RECORD) % 100_000).encode() if self._keys else None
        self._producer.produce(topic, RECORD, key, partition=0, timestamp=at, on_delivery=self._delivered)
        self._producer.poll(0)
        self.bytes += len(RECORD)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        topic, offset = message.topic(), message.offset()
        assert topic is not None
        assert offset == len(self.timestamps[topic]), "one producer, in order: no offset is left out"
        self.timestamps[topic].append(message.timestamp()[1])


# What became of the files --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SeenSegment:
    first_seen: float
    allocated_bytes: int
    is_closed: bool = False
    """It was seen beside a later one: ``allocated_bytes`` is all that it ever has."""


@dataclass(slots=True)
class History:
    """Partition folder → base offset → what was seen of that segment, in wall-clock seconds."""

    segments: defaultdict[str, dict[int, SeenSegment]] = field(default_factory=lambda: defaultdict(dict))
    most_used_percent: float = 0.0
    most_used_bytes: int = 0

    def look(self, log_dirs: Sequence[Path]) -> None:
        for log_dir in log_dirs:
            status = os.statvfs(log_dir)
            used = (status.f_blocks - status.f_bavail) * status.f_frsize
            self.most_used_bytes = max(self.most_used_bytes, used)
            self.most_used_percent = max(self.most_used_percent, 100 * used / (status.f_blocks * status.f_frsize))
            for folder in log_dir.iterdir():
                self._look_into(folder)

    def _look_into(self, folder: Path) -> None:
        sizes: defaultdict[int, int] = defaultdict(int)
        live = set()
        files = _files(folder)
        now = time.time()  # they were there before
        for file in files:
            base = file.name[:_BASE_DIGITS]
            if len(base) == _BASE_DIGITS and base.isdigit():
                sizes[int(base)] += _allocated(file)
                if file.name == f"{base}.log":
                    live.add(int(base))
        for first_offset in live:
            allocated = sizes[first_offset]
            seen = self.segments[folder.name].setdefault(first_offset, SeenSegment(now, allocated))
            seen.allocated_bytes = max(seen.allocated_bytes, allocated)
            seen.is_closed = seen.is_closed or first_offset < max(live)


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _allocated(file: Path) -> int:
    try:
        return file.lstat().st_blocks * _BLOCK
    except FileNotFoundError:
        return 0  # it has just gone: what was seen of it before counts


@contextmanager
def watched(*log_dirs: Path) -> Iterator[History]:
    """From before the block begins until it ends."""
    history = History()

    def look(ended: threading.Event) -> None:
        while not ended.wait(_LOOK_EVERY):
            history.look(log_dirs)

    history.look(log_dirs)
    with meanwhile(look):
        yield history


# What must be true ---------------------------------------------------------------------------------------------------


def survivors_older_than_what_went(
    cycles: Sequence[CycleRecord], history: History, timestamps: Mapping[str, Sequence[int]], guarded_since: float
) -> list[str]:
    """Closed segments that a cycle left although they are older than one that it took, unless it says why it had to.

    A segment counts when its successor was there before the guard looked at the files: when the plan before was
    written down, or when the guard was started.
    """
    violations = []
    log_starts: dict[str, int] = {}
    looked_after = guarded_since
    for cycle in cycles:
        plan, at = cycle.plan, looked_after
        looked_after = cycle.begun_at.timestamp()
        log_starts |= {str(trim.partition): int(trim.target) for trim in plan.trims}
        youngest_taken = max(trim.newest_ms for trim in plan.trims)
        passed_over = {str(each.partition) for each in plan.passed_over}
        for topic, written in timestamps.items():
            folder = f"{topic}-0"
            if folder in passed_over:
                continue
            start = log_starts.get(folder, 0)
            known = sorted(base for base in history.segments[folder] if base >= start)
            for base, following in pairwise(known):
                if history.segments[folder][following].first_seen > at:
                    break
                if written[following - 1] < youngest_taken:
                    violations.append(f"{plan.cycle}: {folder} at {base} is older than what was taken")
    return violations

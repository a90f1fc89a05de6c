"""A broker of real files and remembered offsets, a disk that counts them, and the reclaim of it.

The guard sees nothing else: it scans the files, asks this broker, and what it trims is gone after a retention pass.
"""

import io
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

from brimline.act.device_lock import DeviceLock
from brimline.act.ledger.entries import Entry, Recorded
from brimline.act.ledger.files import read_history
from brimline.act.ledger.ledger import Ledger
from brimline.act.seen_settings import SeenFile
from brimline.act.trims.files import files_left
from brimline.act.trims.rules import PartitionNow, Problem
from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.reclaim.report import ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.survey import Surveyor
from brimline.guard.reclaim.task import ReclaimParts, ReclaimTask
from brimline.guard.reclaim.words import ReclaimNews
from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Bytes,
    Failure,
    FailureKind,
    ObservationFailed,
    Offset,
    TopicPartition,
)
from brimline.model.blast_radius import GroupsSeen
from brimline.model.reclaim import CleanupRules, ReclaimPolicy
from brimline.observe.cluster.replica_facts import Offsets, ReplicaFacts
from brimline.observe.cluster.topics import Topic
from brimline.observe.cluster.transactions import Started
from brimline.observe.volumes import LogDirReading, by_volume
from brimline.service import log_lines
from tests.guard.brokers import log_dir as described_log_dir
from tests.observe.scan.log_dir_trees import make_replica
from tests.service.ticking import TickingClock

SEGMENT = 100
"""Records in a segment."""
LOG_BYTES = 40_000
TOPIC_ID = UUID("e91955b8-5490-43b9-95d4-fd1f05135a54")
"""The one that ``make_replica`` writes."""
TOTAL = Bytes(2_000_000)
"""A batch is a 25th of it: a segment or two."""
SILENCE = ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="nobody answers"))


class SmallLock(DeviceLock):
    """``holder`` is whose it is. A real one would be that of the machine's root file system."""

    holder: "SmallLock | None" = None
    is_waited_for = False

    @property
    def is_held(self) -> bool:
        return SmallLock.holder is self

    @property
    def is_wanted_by_others(self) -> bool:
        return SmallLock.is_waited_for and self.is_held

    def take(self) -> bool:
        if SmallLock.holder is None:
            SmallLock.holder, SmallLock.is_waited_for = self, False
        SmallLock.is_waited_for = SmallLock.is_waited_for or not self.is_held
        return self.is_held

    def release(self) -> None:
        if self.is_held:
            SmallLock.holder = None


class SmallBroker:
    """Topics of one partition. ``used_elsewhere``: by files that are nobody's here."""

    def __init__(self, root: Path, clock: TickingClock, **segments: int) -> None:
        self.log_dir = root / "log-dir"
        self.log_dir.mkdir()
        (self.log_dir / "meta.properties").write_text("version=1\n")
        self._clock = clock
        self.used_elsewhere = 0
        self.log_starts = dict.fromkeys(segments, 0)
        self.high_watermarks = {topic: count * SEGMENT for topic, count in segments.items()}
        self.rules = {topic: CleanupRules(retention_ms=-1) for topic in segments}
        self.leaderless: set[str] = set()
        self.forbidden: set[str] = set()
        self.is_silent = False
        self.second_clock: int | None = None
        self.groups_are_silent = False
        self.requests: list[dict[str, int]] = []
        """What was asked for, batch by batch."""
        self.before_trim: Callable[[], object] = lambda: None
        for number, (topic, count) in enumerate(segments.items()):
            bases = [number + n * SEGMENT for n in range(count)]  # the first topic is the oldest, by a little
            make_replica(self.log_dir / f"{topic}-0", 0, *bases[1:], log_bytes=LOG_BYTES)

    def retention_pass(self) -> None:
        """Files below the log starts go; their delay is none."""
        for topic, start in self.log_starts.items():
            folder = self.log_dir / f"{topic}-0"
            bases = sorted(int(path.stem) for path in folder.glob("*.log"))
            for base, following in pairwise(bases):
                if following <= start:
                    for path in folder.glob(f"{base:020d}.*"):
                        path.unlink()

    @property
    def files_bytes(self) -> int:
        return sum(path.lstat().st_blocks * 512 for path in [self.log_dir, *self.log_dir.rglob("*")])

    def fill_to(self, percent: float) -> None:
        self.used_elsewhere = int(TOTAL * percent / 100) - self.files_bytes

    @property
    def used_percent(self) -> float:
        return (self.files_bytes + self.used_elsewhere) * 100 / TOTAL

    def bases(self, topic: str) -> list[int]:
        return sorted(int(path.stem) for path in (self.log_dir / f"{topic}-0").glob("*.log"))

    # What the guard asks ----------------------------------------------------------------------------------------------

    def disk(self, path: str, _known: str | None, observed_at: datetime, seconds: float) -> LogDirReading:
        usable = TOTAL - self.files_bytes - self.used_elsewhere
        return LogDirReading(
            path=path,
            observed_at=observed_at,
            seconds=seconds,
            device="8:1",
            total_bytes=TOTAL,
            usable_bytes=Bytes(usable),
            reserved_bytes=Bytes(0),
        )

    def replica_facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts:
        self._answer()
        rows = [(each.topic, 0, self._size(each.topic), False) for each in sorted(partitions)]
        answer = BrokerLogDirs(
            broker=BrokerId(1),
            address="localhost:9092",
            observed_at=self._clock.now(),
            log_dirs={str(self.log_dir): described_log_dir(str(self.log_dir), rows)},
        )
        topics = {
            topic: Topic(
                name=topic,
                topic_id=TOPIC_ID,
                leaders={0: BrokerId(1)},
                error=None,
                replicas={0: frozenset({BrokerId(1)})},
                may_delete=topic not in self.forbidden,
            )
            for topic in self.rules
        }
        return ReplicaFacts(
            answer=answer,
            topics=topics,
            rules=self.rules,
            unknown={},
            log_starts=self._of_leaders(self.log_starts),
            high_watermarks=self._of_leaders(self.high_watermarks),
            log_ends={},
            highest_remote={},
        )

    def open_transactions(self, _facts: ReplicaFacts, _partitions: Collection[TopicPartition]) -> Started:
        return {}

    def second_clock_ms(self) -> int | None:
        return self.second_clock

    def with_plain_topics(self, facts: ReplicaFacts) -> ReplicaFacts:
        return facts

    def present_starts(self, _facts: ReplicaFacts, _partitions: Collection[TopicPartition]) -> Offsets:
        self._answer()
        return self._of_leaders(self.log_starts)

    def look(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionNow | Problem]:
        self._answer()
        return {each: self._now(each.topic) for each in partitions}

    def trim(
        self, targets: Mapping[TopicPartition, Offset], _leaders: Mapping[TopicPartition, BrokerId]
    ) -> Mapping[TopicPartition, Offset | Problem]:
        self.before_trim()
        self._answer()
        self.requests.append({each.topic: int(target) for each, target in targets.items()})
        for each, target in targets.items():
            self.log_starts[each.topic] = max(self.log_starts[each.topic], target)
        return dict(targets)

    def groups(self, _partitions: Collection[TopicPartition]) -> GroupsSeen:
        if self.groups_are_silent:
            raise SILENCE
        return GroupsSeen(groups=(), asked=0)

    def _now(self, topic: str) -> PartitionNow | Problem:
        if topic in self.leaderless:
            return Problem(why="it has no leader", may_pass=True)
        return PartitionNow(
            topic_id=TOPIC_ID,
            leader=BrokerId(1),
            log_start=Offset(self.log_starts[topic]),
            high_watermark=Offset(self.high_watermarks[topic]),
            cleanup_policy="delete",
            is_tiered=False,
        )

    def _answer(self) -> None:
        if self.is_silent:
            raise SILENCE

    def _of_leaders(self, offsets: Mapping[str, int]) -> Offsets:
        led = (topic for topic in offsets if topic not in self.leaderless)
        return {TopicPartition(topic, 0): Offset(offsets[topic]) for topic in led}

    def _size(self, topic: str) -> int:
        return sum(path.stat().st_size for path in (self.log_dir / f"{topic}-0").glob("*.log"))


class Guarded:
    """The reclaim of one ``SmallBroker``, step by step. A new one on the same state dir is a guard started again."""

    def __init__(self, broker: SmallBroker, state_dir: Path, clock: TickingClock, ceiling: int = 50) -> None:
        self.broker = broker
        self.clock = clock
        self.settings = ReclaimSettings(
            policy=ReclaimPolicy(ceiling_percent=ceiling),
            is_applied=True,
            interval=60.0,
            retention_check=300.0,
            delete_delay=60.0,
        )
        self.woken = 0
        self.chance = 0.0
        self.ledger = Ledger(state_dir, 1, clock.now, sleep=lambda _seconds: None)
        self.lock = SmallLock(str(broker.log_dir))
        self.log = io.StringIO()
        log_lines.set_up(self.log, "json", "info")
        self.counted: list[str] = []
        parts = ReclaimParts(
            surveyor=Surveyor(broker, clock, broker.disk),
            ledger=self.ledger,
            cluster=broker,
            files_left=files_left,
            groups=broker.groups,
            lock=self.lock,
            seen=SeenFile(state_dir, 1, str(broker.log_dir)),
            chance=lambda: self.chance,
            by="guard",
        )
        news = ReclaimNews(self.counted.append)
        self.task = ReclaimTask(
            str(broker.log_dir), lambda: self.settings, parts, clock, self._wake, news, lambda: None
        )
        self.see_disks()

    def see_disks(self, state: DiskState = DiskState.OK, neighbour: str | None = None, reserve: int = 0) -> None:
        """As the disks' own task does. ``neighbour``: a log dir of the same device that stands alone, and is read.
        ``reserve``: what is kept free for what no fence stops."""
        log_dir = str(self.broker.log_dir)
        (reading,) = by_volume([self.broker.disk(log_dir, None, self.clock.now(), self.clock.seconds())])
        status = VolumeStatus(
            reading=reading,
            fullness=state,
            breaches=(),
            bytes_to_limit=None,
            fill_rate=None,
            seconds_left=None,
            next_look=1.0,
            limits=DiskLimits(max_used_percent=99, min_free_bytes=Bytes(0), reserve=Bytes(reserve)),
        )
        limits = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0))
        others = [] if neighbour is None else [replace(reading, log_dirs=(neighbour,))]
        beside = [replace(status, reading=other, fullness=DiskState.OK) for other in others]
        self.task.decided(DiskReport(volumes=(status, *beside), limits=limits))

    def run(self, seconds: float) -> ReclaimReport:
        """As its worker does it, for so long, and a last time at the end."""
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until:
            self.clock.tick(min(max(self.task.step(), 0.001), until - self.clock.seconds()))
        self.task.step()
        assert self.task.report is not None
        return self.task.report

    def kill(self) -> None:
        """What the kernel does for it."""
        self.lock.release()
        self.ledger.close()

    def entries(self) -> list[Entry]:
        return [found.entry for found in read_history(self.ledger.files) if isinstance(found, Recorded)]

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    def _wake(self) -> None:
        self.woken += 1

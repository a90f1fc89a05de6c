"""A cluster in memory whose brokers forget, move, refuse and lose answers, and a guard that is killed at any point.

Everything that the guard does to the world outside passes one of the doors here: a sync of the ledger, a look at the
cluster or at the files, a request. At each of them the world may change first, and the guard may be killed before or
after. What a kill leaves of a write that was not synced is any part of it.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from brimline.act.ledger.entries import CycleId, Plan, PlannedTrim, Recorded, Requested, SegmentRange, TrimNumber
from brimline.act.ledger.files import LedgerFiles, read_history
from brimline.act.trims.rules import Left, PartitionNow, Problem, refusal
from brimline.model import (
    BrokerId,
    Bytes,
    Failure,
    FailureKind,
    KafkaError,
    ObservationFailed,
    Offset,
    TopicPartition,
)

LOG_DIR = "/data/a"
CYCLE = CycleId("8:1-1")
SEGMENT = 100
"""Records in a segment."""
BLOCKS = Bytes(4096)
"""What each of its files takes; there is one."""
SILENCE = ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="nobody answers"))
_NOT_IN_A_MOMENT = "made anew"
"""Not between a look and the request that follows at once: no topic is deleted, made again and filled that fast."""
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Killed(Exception):
    """As ``kill -9``: nothing of this guard runs any more."""


@dataclass(slots=True, kw_only=True)
class Partition:
    """``bases`` are the segments whose files are on this disk; ``durable_start`` is what a killed broker remembers."""

    name: TopicPartition
    topic_id: UUID
    bases: list[int]
    high_watermark: int
    log_start: int = 0
    durable_start: int = 0
    leader: BrokerId | None
    cleanup_policy: str = "delete"
    is_tiered: bool = False
    refuses_with: int = 0

    def make_anew(self, segments: int) -> None:
        self.topic_id = UUID(int=self.topic_id.int + 1000)
        self.bases = [base * SEGMENT for base in range(segments + 1)]
        self.high_watermark, self.log_start, self.durable_start = segments * SEGMENT, 0, 0

    def go_over_retention(self) -> None:
        closed = zip(self.bases, self.bases[1:], strict=False)
        self.bases = [base for base, following in closed if following > self.log_start] + self.bases[-1:]

    def forget(self) -> None:
        self.log_start = max(self.durable_start, min(self.bases, default=0))


@dataclass(slots=True)
class Doors:
    """Counts the doors that the guard goes through, and kills it at those that a test has chosen."""

    kills: list[int] = field(default_factory=list)
    """After how many further doors, each counted from the one before."""

    def pass_through(self) -> None:
        if self.kills:
            if self.kills[0] == 0:
                self.kills.pop(0)
                raise Killed
            self.kills[0] -= 1


class World:
    """``events`` happen one at each look or request; when they are over, the cluster does what it should."""

    def __init__(self, folder: Path, partitions: int, segments: int) -> None:
        self.files = LedgerFiles(folder, 1)
        self.doors = Doors()
        self.events: list[tuple[str, int]] = []
        self.partitions = [
            Partition(
                name=TopicPartition(f"t{n}", 0),
                topic_id=UUID(int=n + 1),
                bases=[base * SEGMENT for base in range(segments + 2)],
                high_watermark=(segments + 2) * SEGMENT,
                leader=BrokerId(1),
            )
            for n in range(partitions)
        ]
        self.sent: list[tuple[UUID, Offset]] = []
        """Every request that a leader carried out: topic id and offset."""
        self.objection: str | None = None
        self.holds_files = False
        """No retention pass comes."""
        self.forgets_everything = False
        """Brokers are killed all the time."""
        self.leaderless: set[str] = set()
        """These topics have no leader, whatever happens."""
        self.disk_is_full = False
        self.silent_for = 0
        self.loses_answers = 0
        self.times_out = 0
        self._planned_ids = {p.name: p.topic_id for p in self.partitions}
        self._seconds = 1000.0
        self._jump = timedelta()
        self._synced: dict[int, int] = {}

    def plan(self, segments: Sequence[int]) -> Plan:
        """So many segments of each partition."""
        trims = [
            PlannedTrim(
                partition=partition.name,
                topic_id=partition.topic_id,
                log_dir=LOG_DIR,
                log_start=Offset(0),
                target=Offset(count * SEGMENT),
                segments=SegmentRange(first=Offset(0), last=Offset((count - 1) * SEGMENT), count=count),
                allocated_bytes=Bytes(count * BLOCKS),
                oldest_ms=0,
                newest_ms=1000,
                reason="the oldest of the device",
            )
            for partition, count in zip(self.partitions, segments, strict=True)
            if count
        ]
        return Plan(
            cycle=CYCLE,
            device="8:1",
            log_dirs=(LOG_DIR,),
            total_bytes=Bytes(1000),
            used_bytes=Bytes(900),
            ceiling_percent=80,
            excess_bytes=Bytes(100),
            going_bytes=Bytes(0),
            by="guard",
            trims=tuple(trims),
        )

    def partition(self, name: TopicPartition) -> Partition:
        return next(partition for partition in self.partitions if partition.name == name)

    # The clocks -------------------------------------------------------------------------------------------------------

    def seconds(self) -> float:
        return self._seconds

    def now(self) -> datetime:
        return _EPOCH + timedelta(seconds=self._seconds) + self._jump

    def tick(self, seconds: float) -> None:
        self._seconds += seconds

    # The ledger's disk ------------------------------------------------------------------------------------------------

    def sync(self, fd: int) -> None:
        self.doors.pass_through()
        if self.disk_is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        facts = os.fstat(fd)
        self._synced[facts.st_ino] = facts.st_size
        self.doors.pass_through()

    def lose_what_was_not_synced(self, part: float) -> None:
        """``part`` of it stays, and the last byte of that is damaged."""
        if not self.files.current.exists():
            return
        facts = self.files.current.stat()
        synced = min(self._synced.get(facts.st_ino, 0), facts.st_size)
        kept = int((facts.st_size - synced) * part)
        content = bytearray(self.files.current.read_bytes()[: synced + kept])
        if kept and part < 1:
            content[-1] ^= 0x55
        self.files.current.write_bytes(content)

    # The cluster ------------------------------------------------------------------------------------------------------

    def look(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionNow | Problem]:
        self._go_through_door()
        return {name: self._now(self.partition(name)) for name in partitions}

    def trim(
        self, targets: Mapping[TopicPartition, Offset], leaders: Mapping[TopicPartition, BrokerId]
    ) -> Mapping[TopicPartition, Offset | Problem]:
        self._assert_on_record(targets)
        self._go_through_door(is_request=True)
        answers = {name: self._trim(self.partition(name), targets[name]) for name in leaders}
        self.doors.pass_through()
        if self.loses_answers:
            self.loses_answers -= 1
            raise SILENCE
        return answers

    def files_left(self, trims: Sequence[PlannedTrim]) -> list[Left]:
        self._go_through_door()
        return [self._left(trim, self.partition(trim.partition)) for trim in trims]

    def _now(self, partition: Partition) -> PartitionNow | Problem:
        if partition.leader is None or partition.name.topic in self.leaderless:
            return Problem(why="it has no leader", may_pass=True)
        return PartitionNow(
            topic_id=partition.topic_id,
            leader=partition.leader,
            log_start=Offset(partition.log_start),
            high_watermark=Offset(partition.high_watermark),
            cleanup_policy=partition.cleanup_policy,
            is_tiered=partition.is_tiered,
        )

    def _trim(self, partition: Partition, target: Offset) -> Offset | Problem:
        if partition.refuses_with:
            return refusal(KafkaError(partition.refuses_with), partition.name)
        if partition.leader is None or partition.name.topic in self.leaderless:
            return refusal(KafkaError(6), partition.name)
        if target > partition.high_watermark:
            return refusal(KafkaError(1), partition.name)
        if target > partition.log_start:
            self.sent.append((partition.topic_id, target))
            partition.log_start = target
        if self.times_out:
            self.times_out -= 1
            return refusal(KafkaError(7), partition.name)
        return Offset(partition.log_start)

    def _left(self, trim: PlannedTrim, partition: Partition) -> Left:
        is_it = partition.topic_id == trim.topic_id
        there = [base for base in partition.bases if is_it and trim.segments.first <= base <= trim.segments.last]
        return Left(files=len(there), allocated_bytes=Bytes(len(there) * BLOCKS))

    def _go_through_door(self, *, is_request: bool = False) -> None:
        self.doors.pass_through()
        if self.events and not (is_request and self.events[0][0] == _NOT_IN_A_MOMENT):
            self._happen(*self.events.pop(0))
        else:
            self._become_well()
        if self.silent_for:
            self.silent_for -= 1
            raise SILENCE

    def _become_well(self) -> None:
        for partition in self.partitions:
            partition.leader = BrokerId(1)
            if self.forgets_everything:
                partition.forget()
            if not self.holds_files:
                partition.go_over_retention()

    def _happen(self, event: str, number: int) -> None:
        partition = self.partitions[number % len(self.partitions)]
        match event:
            case "a broker is killed":
                for each in self.partitions:
                    each.forget()
            case "a checkpoint":
                for each in self.partitions:
                    each.durable_start = each.log_start
            case "retention":
                partition.go_over_retention()
            case "another guard":
                target = min((number + 1) * SEGMENT // 2, partition.high_watermark)
                partition.log_start = max(partition.log_start, target)
            case "no leader":
                partition.leader = None
            case "a leader":
                partition.leader = BrokerId(2)
            case "made anew":
                partition.make_anew(number)
            case "written to":
                partition.high_watermark += SEGMENT
                partition.bases.append(partition.bases[-1] + SEGMENT if partition.bases else partition.log_start)
            case "moved to another disk":
                partition.bases = []
            case "becomes tiered":
                partition.is_tiered = True
            case "compacted only":
                partition.cleanup_policy = "compact"
            case "is cut short":
                partition.high_watermark = SEGMENT // 2
            case "no permission":
                partition.refuses_with = 29
            case "nobody answers":
                self.silent_for = number % 4
            case "an answer is lost":
                self.loses_answers += 1
            case "a follower is slow":
                self.times_out += 1
            case "the clock jumps":
                self._jump += timedelta(hours=number - 6)
            case _:
                raise AssertionError(event)

    def _assert_on_record(self, targets: Mapping[TopicPartition, Offset]) -> None:
        """On the disk, not just written: as somebody else reads it now."""
        size = self.files.current.stat().st_size
        assert self._synced[self.files.current.stat().st_ino] == size
        entries = [found.entry for found in read_history(self.files) if isinstance(found, Recorded)]
        (plan,) = [entry for entry in entries if isinstance(entry, Plan)]
        requested = [row.number for entry in entries if isinstance(entry, Requested) for row in entry.trims]
        for number, trim in enumerate(plan.trims):
            if trim.partition in targets:
                assert targets[trim.partition] == trim.target
                times = sum((trim.topic_id, trim.target) == sent for sent in self.sent)
                assert requested.count(TrimNumber(number)) > times, "sent before it was on record"


EVENTS = (
    "a broker is killed",
    "a checkpoint",
    "retention",
    "another guard",
    "no leader",
    "a leader",
    "made anew",
    "written to",
    "moved to another disk",
    "becomes tiered",
    "no permission",
    "nobody answers",
    "an answer is lost",
    "a follower is slow",
    "the clock jumps",
    "compacted only",
    "is cut short",
)

"""The table of writers: on which volume, what is there before, how each writes, and how room is made again."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

from brimline.sandbox.spec import Filesystem
from brimline.torture.waiting import came_true
from brimline.torture.writers.child import COMMITTED_PARTITIONS, MARKED_PARTITIONS
from brimline.torture.writers.world import GIB, MIB, PROBE, WritersWorld

FILLER = "filler"
_FILLERS = 2
"""Processes that fill: as many as there are cores where this was measured."""
_FILLER_PARTITIONS = 4
_FOREIGN = "foreign"
_FOREIGN_LEAVES = 64 * MIB
_FOREIGN_STEP = 8 * MIB
_FOREIGN_STEP_SECONDS = 0.04
_INODES_QUICKLY_TO, _INODES_LEFT, _INODES_PER_SECOND = 5_000, 300, 500
_SMALL_SEGMENT = str(MIB)
_PREFILL_SECONDS = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    name: str
    writes: str
    volume: int
    start: Callable[[WritersWorld, "Hands"], None]
    volumes: int = 1
    brokers: int = 1
    filesystems: tuple[Filesystem, ...] = ("tmpfs", "ext4")
    since: tuple[int, ...] = ()
    """The first Kafka that has it."""
    prefill: int | None = None
    """So many bytes an ordinary topic leaves free before the writer begins."""
    seconds: float = 100.0
    """How long it goes on behind the fence: longer than Kafka's deletion delay of 60 s."""
    room: tuple[str, ...] = ()
    """The topics that are deleted to make room; empty: all."""


class Hands:
    """What writes now; it ends with the block."""

    def __init__(self, world: WritersWorld) -> None:
        self._world = world
        self._children: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        self._counts: dict[int, int] = {}
        self._over = 0
        self.stopped = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def child(self, kind: str, *arguments: str, processes: int = _FILLERS) -> None:
        program = [sys.executable, "-m", "brimline.torture.writers.child", kind, self._world.servers]
        for number in range(processes):
            child = subprocess.Popen(
                [*program, str(number), *arguments],
                stdin=subprocess.PIPE,  # held open by us: it ends when we do, in whatever way
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._children.append(child)
            self.beside(lambda child=child: self._count(child))  # type: ignore[misc]

    def beside(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        self._threads.append(thread)

    def operations(self) -> int:
        """Acknowledged so far, of all that ever wrote."""
        return self._over + sum(self._counts.values())

    def died(self) -> list[str]:
        return [f"a writer ended with {child.returncode}" for child in self._children if child.poll()]

    def stop(self) -> None:
        self.stopped.set()
        for child in self._children:
            child.kill()
            child.wait()
        for thread in self._threads:
            thread.join()
        for child in self._children:
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    stream.close()
        self._over, self._counts = self.operations(), {}
        self._children, self._threads = [], []
        self.stopped.clear()

    def _count(self, child: "subprocess.Popen[str]") -> None:
        assert child.stdout is not None
        for line in child.stdout:
            self._counts[child.pid] = int(line)


def fill(world: WritersWorld, hands: Hands, topic: str, leave_free: int, volume: Path | None = None) -> None:
    """With an ordinary producer, until so much is left, or a fence is up, or nothing is left that could be filled."""
    where = volume or world.volume

    def full() -> bool:
        status = os.statvfs(where)
        return status.f_bavail * status.f_frsize <= leave_free or world.looked.fenced_at is not None or not world.lives

    hands.child("produce", topic, str(_FILLER_PARTITIONS), "none")
    came_true(full, _PREFILL_SECONDS)
    hands.stop()


def make_room(world: WritersWorld, writer: Writer, topics: tuple[str, ...]) -> None:
    shutil.rmtree(world.volume / _FOREIGN, ignore_errors=True)
    if topics and writer.name != "foreign":
        world.delete_topics(*(writer.room or topics))


# How each writes ------------------------------------------------------------------------------------------------------


def _produce(world: WritersWorld, hands: Hands) -> None:
    world.create_topic(FILLER, _FILLER_PARTITIONS)
    hands.child("produce", FILLER, str(_FILLER_PARTITIONS), "none")


def _compact(segment_bytes: int) -> Callable[[WritersWorld, Hands], None]:
    def start(world: WritersWorld, hands: Hands) -> None:
        world.create_topic("compacted", cleanup_policy="compact", segment_bytes=str(segment_bytes))
        hands.child("produce", "compacted", "1", "unique")

    return start


def _commit(world: WritersWorld, hands: Hands) -> None:
    world.create_topic("committed", COMMITTED_PARTITIONS)
    hands.child("commit", "committed", processes=3)


def _eat_inodes(world: WritersWorld, hands: Hands) -> None:
    """Another process makes empty files, and leaves few; then a producer rolls small segments."""
    world.create_topic("rolled", _FILLER_PARTITIONS, segment_bytes=_SMALL_SEGMENT)
    folder = world.volume / _FOREIGN
    folder.mkdir()
    numbers = count()

    def eat(leave: int) -> bool:
        """Some; whether there was something left to eat."""
        more = os.statvfs(folder).f_favail - leave
        for _ in range(min(50, more)):
            (folder / str(next(numbers))).touch()
        return more > 0

    def eat_slowly() -> None:
        while not hands.stopped.wait(50 / _INODES_PER_SECOND) and eat(_INODES_LEFT):
            pass

    while eat(_INODES_QUICKLY_TO):
        pass
    hands.beside(eat_slowly)
    hands.child("produce", "rolled", str(_FILLER_PARTITIONS), "none", processes=1)


def _move(world: WritersWorld, hands: Hands) -> None:
    """More than there is room for comes from the broker's other log dir."""
    other = world.victim.log_dirs[0]
    world.create_topic("moved", _FILLER_PARTITIONS, log_dir=other)
    fill(world, hands, "moved", 1350 * MIB, world.sandbox.outside(other.parent))
    with world.admin() as client:
        client.alter_replica_log_dirs(
            {("moved", n, world.victim.broker_id): str(world.log_dir) for n in range(_FILLER_PARTITIONS)}
        )


def _transactions(world: WritersWorld, hands: Hands) -> None:
    world.create_topic("marked", MARKED_PARTITIONS)
    hands.child("transactions", "marked", processes=3)
    hands.child("produce", FILLER, str(_FILLER_PARTITIONS), "none", processes=1)


def _producer_ids(world: WritersWorld, hands: Hands) -> None:
    """Segments roll, and each roll writes down every producer id that the partition has seen."""
    world.create_topic("ids", segment_bytes=str(10 * MIB))
    hands.child("producer-ids", "ids")
    hands.child("produce", "ids", "1", "none", processes=1)


def _share(world: WritersWorld, hands: Hands) -> None:
    hands.child("share", FILLER, processes=3)
    hands.child("produce", FILLER, str(_FILLER_PARTITIONS), "none", processes=1)


def _follow(world: WritersWorld, hands: Hands) -> None:
    """The victim leads nothing of it; a foreign file leaves it less than its leaders have."""
    _foreign_file(world, 1300 * MIB)
    one, two, three = (broker.broker_id for broker in world.sandbox.brokers)
    world.create_topic("followed", replicas=[[two, three, one], [three, two, one]])
    hands.child("produce", "followed", "2", "none")


def _foreign(world: WritersWorld, hands: Hands) -> None:
    world.create_topic(FILLER, _FILLER_PARTITIONS)
    hands.child("produce", FILLER, str(_FILLER_PARTITIONS), "none", processes=1)
    hands.beside(lambda: _foreign_file(world, _FOREIGN_LEAVES, hands.stopped))


def _foreign_file(world: WritersWorld, leave_free: int, stopped: threading.Event | None = None) -> None:
    """It grows by 200 MB a second at most, or at once where nobody could stop it."""
    folder = world.volume / _FOREIGN
    folder.mkdir()
    with (folder / "dump").open("wb") as file:
        size = 0
        while not (stopped and stopped.is_set()):
            status = os.statvfs(folder)
            step = min(_FOREIGN_STEP, status.f_bavail * status.f_frsize - leave_free)
            if step <= 0:
                return
            os.posix_fallocate(file.fileno(), size, step)
            size += step
            if stopped:
                time.sleep(_FOREIGN_STEP_SECONDS)


WRITERS = (
    Writer(
        name="compaction",
        writes="unique keys to a compacted topic, segments of 100 MiB",
        volume=3 * GIB,
        start=_compact(100 * MIB),
    ),
    Writer(
        name="compaction-large",
        writes="unique keys to a compacted topic, Kafka's own segments of 1 GiB",
        volume=9 * GIB // 2,
        start=_compact(GIB),
        seconds=150.0,
    ),
    Writer(
        name="commits",
        writes="offsets of 200 partitions with 4,000 bytes of metadata, three groups",
        volume=3 * GIB,
        start=_commit,
        prefill=1300 * MIB,
    ),
    Writer(
        name="inodes",
        writes="another process's empty files, all but 300 inodes, while segments roll",
        volume=2_200_000_000,
        start=_eat_inodes,
        filesystems=("ext4",),
    ),
    Writer(
        name="moves",
        writes="a topic that moves in from the broker's other log dir",
        volume=3 * GIB,
        volumes=2,
        start=_move,
        prefill=1300 * MIB,
        room=(FILLER,),
    ),
    Writer(
        name="transactions",
        writes="ever new transactional ids, and markers of empty transactions to 200 partitions",
        volume=3 * GIB,
        start=_transactions,
        prefill=1300 * MIB,
    ),
    Writer(
        name="producer-ids",
        writes="a new producer id with every request",
        volume=3 * GIB,
        start=_producer_ids,
        prefill=1600 * MIB,
    ),
    Writer(
        name="share-groups",
        writes="share groups that take everything and give it back",
        volume=3 * GIB,
        start=_share,
        since=(4, 2),
        prefill=1300 * MIB,
    ),
    Writer(name="produce", writes="an ordinary topic", volume=3 * GIB, start=_produce),
    Writer(
        name="follower",
        writes="what a follower fetches from leaders that have more room",
        volume=5 * GIB // 2,
        brokers=3,
        start=_follow,
    ),
    Writer(
        name="foreign",
        writes="another process's file, all but 64 MiB, while a producer writes",
        volume=3 * GIB,
        start=_foreign,
    ),
)

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", PROBE)

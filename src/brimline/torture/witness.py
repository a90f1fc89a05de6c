"""The witness: looks at every broker, gateway, guard and disk all the time, and writes down what it sees.

A thread for each broker, so that one that hangs blinds nobody else. It never believes what it can see itself: volumes
are looked at through descriptors opened before the first fault (a mount on top of one hides nothing), logs and ledgers
are read as files, offsets are asked of the broker past its gateway.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from brimline.sandbox import SandboxError, SupervisedProcess
from brimline.sandbox.supervisor import read_line
from brimline.torture.history import Complaint, Ended, Fenced, History, LogEnd, LogStart, Planned, Released
from brimline.torture.read_back import LOG_END, LOG_START, log_offsets
from brimline.torture.world import LIMIT_PERCENT, PARTITIONS, TOPICS, Station, World

_LOOK_EVERY = 0.25
_SURELY_FULL_SECONDS = 2.0
"""For so long no look may have found room, before a volume counts as full all the time."""
_NO_SPACE = ("No space left on device",)
_BUGS = ('"event": "bug"', '"event": "task-died"', "Traceback (most recent call last)")
_LONGEST_LINE = 400


@dataclass(slots=True)
class _Fence:
    number: int
    since: str
    known_until: float


@dataclass(slots=True)
class _Seen:
    """What is known of one broker's surroundings. ``lock`` is held for a whole look."""

    volumes: dict[str, int]
    """Log dir → a descriptor of it."""
    below_limit_at: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    fences: dict[str, _Fence] = field(default_factory=dict)
    planned: set[tuple[str, int, int]] = field(default_factory=set)
    read: dict[Path, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)


class Witness:
    """From when it is made until the end of ``watching``. ``expected_down``: processes that a fault has taken away."""

    def __init__(self, world: World, history: History) -> None:
        self._world = world
        self._history = history
        self._numbers = count(1)
        self._starts: dict[tuple[str, int], int] = {}
        self._starts_lock = threading.Lock()
        self.expected_down: set[str] = set()
        self._seen = {
            number: _Seen({str(path): _descriptor(station, path) for path in station.broker.log_dirs})
            for number, station in world.stations.items()
        }

    @contextmanager
    def watching(self) -> Iterator[None]:
        over = threading.Event()
        threads = [
            threading.Thread(target=self._watch, args=(station, over), name=f"witness of broker {number}")
            for number, station in self._world.stations.items()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
            for station in self._world.stations.values():
                self.look(station)
            for seen in self._seen.values():
                for descriptor in seen.volumes.values():
                    os.close(descriptor)

    def look(self, station: Station) -> None:
        """Once, at everything."""
        seen = self._seen[station.number]
        with seen.lock:
            self._look_at_fences(station, seen)
            self._look_at_log_ends(station, seen)
            self._look_at_log_starts(station)
            self._read_ledger(station, seen)
            controller = [self._world.controller] if self._world.controller and station.number == 1 else []
            for process in (*station.processes, *controller):
                self._look_at_process(process, seen)
            self._read_logs(station, seen)

    def used_percent(self, station: Station, log_dir: str) -> float:
        status = os.fstatvfs(self._seen[station.number].volumes[log_dir])
        return 100 * (1 - status.f_bavail / status.f_blocks)

    def partitions_in(self, station: Station, log_dir: str) -> list[tuple[str, int]]:
        folder = self._seen[station.number].volumes[log_dir]
        names = [name.rpartition("-") for name in os.listdir(folder)]  # noqa: PTH208 (a descriptor)
        return [(topic, int(number)) for topic, _, number in names if topic in TOPICS and number.isdecimal()]

    def _watch(self, station: Station, over: threading.Event) -> None:
        while not over.wait(_LOOK_EVERY):
            try:
                self.look(station)
            except SandboxError:
                return  # the sandbox is ending

    # Fences ------------------------------------------------------------------------------------------------------

    def _look_at_fences(self, station: Station, seen: _Seen) -> None:
        self._look_at_volumes(station, seen)
        asked_at = time.time()
        fenced = station.fenced()
        self._look_at_volumes(station, seen)
        for log_dir, fence in list(seen.fences.items()):
            is_full = time.time() - seen.below_limit_at.get(log_dir, 0.0) > _SURELY_FULL_SECONDS
            if (fenced is None and is_full) or (fenced is not None and fenced.get(log_dir) == fence.since):
                # The same, or down, or it hangs: nothing passes it then, and it will find the disk as full as it was.
                fence.known_until = asked_at
            else:
                del seen.fences[log_dir]
                self._history.note(
                    Released(
                        at=fence.known_until,
                        fence=fence.number,
                        used_percent=self.used_percent(station, log_dir),
                        is_still_full=fenced is not None and log_dir not in fenced and is_full,
                    )
                )
        for log_dir, since in (fenced or {}).items():
            if log_dir not in seen.fences and log_dir in seen.volumes:
                seen.fences[log_dir] = _Fence(next(self._numbers), since, asked_at)
                self._history.note(Fenced(fence=seen.fences[log_dir].number, broker=station.number, log_dir=log_dir))

    def _look_at_volumes(self, station: Station, seen: _Seen) -> None:
        for log_dir in seen.volumes:
            if self.used_percent(station, log_dir) <= LIMIT_PERCENT:
                seen.below_limit_at[log_dir] = time.time()

    def _look_at_log_ends(self, station: Station, seen: _Seen) -> None:
        for log_dir, fence in seen.fences.items():
            asked_at = time.time()
            partitions = self.partitions_in(station, log_dir)
            for each in log_offsets(station.broker.node.admin_port, partitions, LOG_END) or ():
                self._history.note(
                    LogEnd(
                        fence=fence.number,
                        topic=each.topic,
                        partition=each.partition,
                        leader_epoch=each.leader_epoch,
                        end=each.offset,
                        asked_at=asked_at,
                    )
                )

    # Deletions ---------------------------------------------------------------------------------------------------

    def _look_at_log_starts(self, station: Station) -> None:
        everything = [(topic, partition) for topic in TOPICS for partition in PARTITIONS]
        for each in log_offsets(station.broker.node.admin_port, everything, LOG_START) or ():
            where = (each.topic, each.partition)
            with self._starts_lock:
                if self._starts.get(where) == each.offset:
                    continue
                self._starts[where] = each.offset
            self._history.note(LogStart(topic=each.topic, partition=each.partition, start=each.offset))

    def _read_ledger(self, station: Station, seen: _Seen) -> None:
        ledger = station.sandbox.outside(station.state_dir) / f"ledger-{station.number}.jsonl"
        for line in _new_lines(ledger, seen.read):
            try:
                entry = read_line(line)
                if entry["kind"] != "plan":
                    continue
                rows = [dict(zip(entry["columns"], row, strict=True)) for row in entry["trims"]]
                found = {(entry["topics"][row["topic"]][0], row["partition"], row["target"]) for row in rows}
            except (ValueError, KeyError, TypeError, IndexError):
                continue  # damaged by a fault
            for topic, partition, target in sorted(found - seen.planned):
                self._history.note(Planned(broker=station.number, topic=topic, partition=partition, target=target))
            seen.planned |= found

    # Processes and what they say -----------------------------------------------------------------------------------

    def _look_at_process(self, process: SupervisedProcess, seen: _Seen) -> None:
        code = process.exit_code
        if code is None or process.name in self.expected_down or seen.ended.get(process.name) == process.pid:
            return
        seen.ended[process.name] = process.pid
        said = (process.complaint().strip().splitlines() or [""])[-1]
        self._history.note(Ended(process=process.name, exit_code=code, said=said[:_LONGEST_LINE]))

    def _read_logs(self, station: Station, seen: _Seen) -> None:
        home = station.broker.node.home
        for process, path, what, signs in (
            (station.broker.name, home / "server.log", "no-space", _NO_SPACE),
            (station.broker.name, station.broker.output, "no-space", _NO_SPACE),
            (station.gateway.name, station.gateway.output, "bug", _BUGS),
            (station.guard.name, station.guard.output, "bug", _BUGS),
        ):
            for line in _new_lines(station.sandbox.outside(path), seen.read):
                if any(sign in line for sign in signs):
                    self._history.note(Complaint(process=process, what=what, line=line.strip()[:_LONGEST_LINE]))


def _descriptor(station: Station, log_dir: Path) -> int:
    return os.open(station.sandbox.outside(log_dir), os.O_RDONLY | os.O_DIRECTORY)


def _new_lines(path: Path, read: dict[Path, int]) -> list[str]:
    """Whole lines since the last call; all of them of a file that was replaced."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin = read.get(path, 0)
            file.seek(begin if begin <= size else 0)
            content = file.read()
            begin = file.tell() - len(content)
    except OSError:
        read.pop(path, None)
        return []
    whole = content[: content.rfind(b"\n") + 1]
    read[path] = begin + len(whole)
    return whole.decode(errors="replace").splitlines()

"""An attack by frames: many batches at once, every frame judged, the fenced partitions looked at after every batch."""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from brimline.torture.hostile.frames import BATCH_FRAMES, Frames, name_of
from brimline.torture.hostile.judge import complaint, writes_to_fenced
from brimline.torture.hostile.sides import PATIENCE_SECONDS, Fate
from brimline.torture.hostile.world import World

_LANES = 24
"""Batches under way in one process: a frame that nobody answers holds up its own lane alone."""
_CHUNK = 8 * _LANES


@dataclass(slots=True)
class AttackTally:
    frames: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    apis: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    seen_once: int = 0
    """Differences that were not there when the frame was sent again alone."""
    violations: list[tuple[str, bytes]] = field(default_factory=list)
    grown: set[int] = field(default_factory=set)
    """Batches under way when a fenced partition changed."""

    def add(self, other: "AttackTally") -> None:
        self.frames += other.frames
        self.fates += other.fates
        self.apis += other.apis
        self.connections += other.connections
        self.seen_once += other.seen_once
        self.violations += other.violations
        self.grown |= other.grown


@dataclass(frozen=True, slots=True)
class Attacker:
    """In a process of its own."""

    here: World
    frames: Frames

    async def attack(self, numbers: range) -> AttackTally:
        """With these batches, many at once."""
        tally, waiting, under_way = AttackTally(), iter(numbers), set[int]()
        files = self.here.fenced_files()
        connections = self._connections()

        async def lane() -> None:
            nonlocal files
            for number in waiting:
                under_way.add(number)
                await self._attack_once(number, tally)
                found = self.here.fenced_files()
                if found != files:
                    tally.grown |= under_way
                    files = found
                under_way.discard(number)

        async with asyncio.TaskGroup() as lanes:
            for _ in range(_LANES):
                lanes.create_task(lane())
        tally.connections = self._connections() - connections
        return tally

    async def _attack_once(self, number: int, tally: AttackTally) -> None:
        frames = self.frames.batch(number)
        through, past = await asyncio.gather(self.here.through.fates(frames), self.here.past.fates(frames))
        for frame, ours, theirs in zip(frames, through, past, strict=True):
            tally.frames += 1
            tally.fates[ours.kind.value] += 1
            tally.apis[name_of(int.from_bytes(frame[4:6], signed=True))] += 1
            if complaint(frame, ours, theirs) is None:
                continue
            said = complaint(frame, *await alone(self.here, frame))
            if said is None:
                tally.seen_once += 1
            else:
                tally.violations.append((said, frame))

    def _connections(self) -> int:
        return self.here.through.connections + self.here.past.connections


async def alone(here: World, frame: bytes) -> tuple[Fate, Fate]:
    """One frame on connections of its own, through the gateway and past it.

    The very same bytes go both ways, so that nothing depends on names; only what writes to something fenced goes to
    the twin, because nothing may be stored there.
    """
    names_of = here.past if writes_to_fenced(frame) else here.through
    (through,) = await here.through.fates([frame], PATIENCE_SECONDS)
    (past,) = await here.past.fates([frame], PATIENCE_SECONDS, names_of=names_of)
    return through, past


_ATTACKERS: list[Attacker] = []
"""The one of this process."""


def _attack(numbers: range) -> AttackTally:
    return asyncio.run(_ATTACKERS[-1].attack(numbers))


class Attackers:
    """Several processes. To be made before any thread: a process with threads must not be copied."""

    def __init__(self, here: World, frames: Frames, processes: int) -> None:
        _ATTACKERS.append(Attacker(here, frames))
        self._pool = multiprocessing.get_context("fork").Pool(processes)

    def attack(self, count: int) -> Iterator[AttackTally]:
        """With so many frames, and a few more; a tally of each part."""
        batches = -(-count // BATCH_FRAMES)
        chunks = [range(first, min(first + _CHUNK, batches)) for first in range(0, batches, _CHUNK)]
        yield from self._pool.imap_unordered(_attack, chunks)

    def close(self) -> None:
        self._pool.terminate()
        self._pool.join()
        _ATTACKERS.pop()


def culprits(here: World, frames: Frames, tally: AttackTally) -> Iterator[tuple[str, bytes]]:
    """Which frames of those under way when something was stored did it: each is sent again, alone."""
    for number in sorted(tally.grown):
        for frame in frames.batch(number):
            before = here.fenced_files()
            asyncio.run(here.through.fates([frame]))
            after = here.fenced_files()
            if before != after:
                yield f"stored behind the fence: {sorted(after.items() - before.items())}", frame
    if tally.grown:
        yield f"something was stored behind the fence during the batches {sorted(tally.grown)}", b""

"""Makes up a fleet and puts its snapshots into a landing place, as guards would.

**Invariant.** The same specification gives the same files, to the byte, whoever makes them and in whatever order: every
broker is drawn by random numbers of its own. All replicas of a partition tell the same offsets.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from brimline.fleet.synth.broker import MadeUp, SynthBroker
from brimline.fleet.synth.spec import FleetSpec
from brimline.landing.place import LandingPlace
from brimline.landing.schema import LOGS, SEGMENTS
from brimline.landing.writer import encode

_FEW_ROWS = 50_000
"""Below it, starting processes takes longer than they save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFleet:
    """What was put down so far."""

    brokers: int = 0
    snapshots: int = 0
    replicas: int = 0
    """Rows, in all snapshots."""
    segments: int = 0
    bytes: int = 0

    def __add__(self, other: "WrittenFleet") -> "WrittenFleet":
        return WrittenFleet(
            brokers=self.brokers + other.brokers,
            snapshots=self.snapshots + other.snapshots,
            replicas=self.replicas + other.replicas,
            segments=self.segments + other.segments,
            bytes=self.bytes + other.bytes,
        )


Progress = Callable[[WrittenFleet], None]


def synthesise(spec: FleetSpec, landing: str, progress: Progress, processes: int | None = None) -> WrittenFleet:
    """Writes everything; ``progress`` is told after every broker. Raises ``PlaceFailed``."""
    LandingPlace(landing)  # a wrong address is an error here, not one in every process
    jobs = [
        (spec, cluster, broker) for cluster, brokers in enumerate(spec.brokers_of_clusters) for broker in range(brokers)
    ]
    together = WrittenFleet()
    for written in _each(jobs, landing, _wanted(spec, processes)):
        together += written
        progress(together)
    return together


def write_broker(spec: FleetSpec, cluster: int, broker: int, landing: str) -> WrittenFleet:
    """The history of a broker, oldest first, then its newest snapshot with segments."""
    place = LandingPlace(landing)
    synth = SynthBroker(spec, cluster, broker)
    written = WrittenFleet(brokers=1)
    for ms in synth.history():
        written += _put(place, synth.snapshot(ms))
    return written + _put(place, synth.newest())


def _each(jobs: list[tuple[FleetSpec, int, int]], landing: str, processes: int) -> Iterator[WrittenFleet]:
    if processes == 1:
        for job in jobs:
            yield write_broker(*job, landing)
        return
    # Not forked: pyarrow has threads.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_write_job, jobs, [landing] * len(jobs), chunksize=max(len(jobs) // (processes * 50), 1))


def _write_job(job: tuple[FleetSpec, int, int], landing: str) -> WrittenFleet:
    return write_broker(*job, landing)


def _wanted(spec: FleetSpec, processes: int | None) -> int:
    if processes is not None:
        return processes
    looks = spec.days * 24 * 60 // spec.every_minutes
    rows = spec.brokers * spec.replicas * (spec.segments + looks)
    return 1 if rows < _FEW_ROWS else min(os.cpu_count() or 1, spec.brokers)


def _put(place: LandingPlace, made_up: MadeUp) -> WrittenFleet:
    data = encode(made_up.header, made_up.tables)
    place.put(made_up.header.name, data)
    segments = made_up.tables.get(SEGMENTS)
    return WrittenFleet(
        snapshots=1,
        replicas=len(made_up.tables[LOGS]),
        segments=0 if segments is None else len(segments),
        bytes=len(data),
    )

"""The disks of one broker, made up: how large they are, what else lies on them, and when they were made larger.

Sizes are those one can buy. A disk is as large as its logs ever needed, with more or less room, so that some fleets'
disks are nearly full and others half empty.
"""

from dataclasses import dataclass

import numpy as np

from brimline.fleet.synth_cluster import NEVER_MS, Cluster, FailingLogDir
from brimline.fleet.synth_spec import FleetSpec
from brimline.fleet.synth_traffic import A_DAY_MS, Floats
from brimline.model.scan import Int64Column

_GIB = 1 << 30
_LADDER = np.array([step << power for power in range(44) for step in (2, 3)], dtype=np.int64) * (_GIB // 64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disks:
    """Devices by number; ``device`` gives each log dir's."""

    device: Int64Column
    total_bytes: Int64Column
    resized_ms: Int64Column
    """Before it, the device was half as large."""
    reserved_bytes: Int64Column
    """What the file system and others have always used."""
    foreign_bytes: Int64Column
    """A large file that has nothing to do with Kafka, there for a while."""
    foreign_from_ms: Int64Column
    foreign_until_ms: Int64Column
    failing: tuple[FailingLogDir, ...]

    def total_at(self, ms: int) -> Int64Column:
        return np.where(ms < self.resized_ms, self.total_bytes // 2, self.total_bytes)

    def used_at(self, ms: int, held: Int64Column) -> Int64Column:
        """``held`` are the bytes in each log dir. More than everything cannot be used."""
        in_logs = np.zeros(len(self.total_bytes), dtype=np.int64)
        np.add.at(in_logs, self.device, held)
        is_foreign = (self.foreign_from_ms <= ms) & (ms < self.foreign_until_ms)
        used: Int64Column = in_logs + self.reserved_bytes + is_foreign * self.foreign_bytes
        return np.asarray(np.minimum(used, self.total_at(ms)), dtype=np.int64)

    def failure(self, log_dir: int, ms: int) -> FailingLogDir | None:
        return next((each for each in self.failing if each.log_dir == log_dir and each.since_ms <= ms), None)


def make_disks(
    spec: FleetSpec, generator: np.random.Generator, cluster: Cluster, broker: int, most_held: Floats
) -> Disks:
    """``most_held``: the largest size that each log dir ever had."""
    failing = tuple(each for each in cluster.failing if each.broker == broker)
    device = np.arange(spec.log_dirs, dtype=np.int64)
    if spec.log_dirs > 1 and broker % 8 == 5 and not failing:
        device[1] = 0  # two log dirs on one device
        device = np.unique(device, return_inverse=True)[1].astype(np.int64)
    count = int(device.max()) + 1
    needed = np.bincount(device, weights=most_held, minlength=count)
    room = generator.uniform(0.5, 0.96, count)
    total = _LADDER[np.minimum(np.searchsorted(_LADDER, needed / room), len(_LADDER) - 1)]
    span_ms = max(spec.days, 1) * A_DAY_MS
    resized_ms = spec.until_ms - (generator.uniform(0.1, 0.9, count) * span_ms).astype(np.int64)
    is_resized = (generator.random(count) < 0.1) & (needed < 0.45 * total)
    begins = spec.until_ms - (generator.random(count) * span_ms).astype(np.int64)
    is_foreign = generator.random(count) < 0.12
    return Disks(
        device=device,
        total_bytes=total,
        resized_ms=np.where(is_resized, resized_ms, 0),
        reserved_bytes=(total * generator.uniform(0.002, 0.02, count)).astype(np.int64),
        foreign_bytes=(total * generator.uniform(0.02, 0.12, count)).astype(np.int64),
        foreign_from_ms=np.where(is_foreign, begins, NEVER_MS),
        foreign_until_ms=begins + (generator.exponential(4.0, count) * A_DAY_MS).astype(np.int64),
        failing=failing,
    )

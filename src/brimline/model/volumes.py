"""Volumes: which log dirs share one, and what all add up to.

A broker reports the volume's bytes with each of its log dirs and does not name the device, so two log dirs on one
volume look like two volumes. Adding them up would promise space that does not exist.

The rule: log dirs of one broker are taken to share a volume when they report the same total and the same usable
bytes, hold some replica bytes between them, and the volume is used enough to hold all of them. The last two keep
apart what only looks alike: fresh empty disks of one size, and mirrored disks with equal contents. A broker measures
its log dirs one after the other, so while it writes the usable bytes of one volume differ a little: with enough stored
to judge by, a small difference counts as the same.
The guard, which can ask the file system, does not need this rule.

In a sum a shared volume counts once, and so does a partition's remote log, which all its replicas have in
common. What is unknown is left out of a sum and counted beside it; a sum of nothing known is ``None``, not 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.model.log_dirs import BrokerLogDirs, LogDirDescription, ReplicaColumns
from brimline.model.quantities import Bytes, Percent, used_percent

# What a busy broker may write between looking at two of its log dirs; and how much must be stored to judge by it.
_BUSY_SPREAD = 1 << 20
_BUSY_STORED = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capacity:
    """Of a volume, or of several. Sizes are ``None`` when no broker could say.

    A broker asks for the two one after the other: on a volume that grows meanwhile usable can exceed total, and then
    nothing is used.
    """

    total_bytes: Bytes | None
    usable_bytes: Bytes | None

    @property
    def used_bytes(self) -> Bytes | None:
        if self.total_bytes is None or self.usable_bytes is None:
            return None
        return Bytes(max(self.total_bytes - self.usable_bytes, 0))

    @property
    def used_percent(self) -> Percent | None:
        if self.total_bytes is None or self.usable_bytes is None:
            return None
        return used_percent(self.total_bytes, self.usable_bytes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Volume(Capacity):
    """A volume with the log dirs on it."""

    log_dirs: tuple[LogDirDescription, ...]

    @property
    def replica_bytes(self) -> Bytes:
        return Bytes(sum(log_dir.replica_bytes for log_dir in self.log_dirs))


def volumes_of(log_dirs: Iterable[LogDirDescription]) -> Sequence[Volume]:
    """The volumes under one broker's log dirs, in the order of their first log dir's path."""
    by_total: dict[int | None, list[LogDirDescription]] = defaultdict(list)
    for log_dir in log_dirs:
        by_total[None if log_dir.usable_bytes is None else log_dir.total_bytes].append(log_dir)
    volumes = [_volume((log_dir,)) for log_dir in by_total.pop(None, [])]
    for alike in by_total.values():
        for near in _runs(alike, _BUSY_SPREAD):
            if len(near) > 1 and _share(near):
                volumes.append(_volume(near))
            else:
                volumes += [
                    _volume(members)
                    for equal in _runs(near, 0)
                    for members in ([equal] if _share(equal) else [(log_dir,) for log_dir in equal])
                ]
    return sorted(volumes, key=lambda volume: volume.log_dirs[0].path)


def _runs(log_dirs: Sequence[LogDirDescription], spread: int) -> Iterator[tuple[LogDirDescription, ...]]:
    """Log dirs whose usable bytes lie within ``spread`` of the least among them."""
    run: list[LogDirDescription] = []
    for log_dir in sorted(log_dirs, key=_usable):
        if run and _usable(log_dir) - _usable(run[0]) > spread:
            yield tuple(run)
            run = []
        run.append(log_dir)
    if run:
        yield tuple(run)


def _share(log_dirs: Sequence[LogDirDescription]) -> bool:
    least, most = min(map(_usable, log_dirs)), max(map(_usable, log_dirs))
    stored = sum(log_dir.replica_bytes for log_dir in log_dirs)
    enough = 1 if least == most else _BUSY_STORED
    return enough <= stored <= (log_dirs[0].total_bytes or 0) - least


def _usable(log_dir: LogDirDescription) -> int:
    return log_dir.usable_bytes or 0


def _volume(log_dirs: Sequence[LogDirDescription]) -> Volume:
    known = log_dirs[0].usable_bytes is not None
    return Volume(
        log_dirs=tuple(sorted(log_dirs, key=lambda log_dir: log_dir.path)),
        total_bytes=log_dirs[0].total_bytes if known else None,
        usable_bytes=Bytes(min(map(_usable, log_dirs))) if known else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTotals(Capacity):
    brokers: int
    failed_brokers: int
    volumes: int
    unknown_volumes: int
    replicas: int
    replica_bytes: Bytes
    remote_bytes: Bytes | None
    only_local_bytes: Bytes | None


def totals_of(brokers: Iterable[BrokerLogDirs], topics: frozenset[str] | None = None) -> ClusterTotals:
    """The sums over these answers; with ``topics`` the sums over replicas are of those topics only."""
    answers = list(brokers)
    volumes = [volume for answer in answers for volume in volumes_of(answer.log_dirs.values())]
    known = [(volume.total_bytes, volume.usable_bytes) for volume in volumes]
    sizes = [(total, usable) for total, usable in known if total is not None and usable is not None]
    replicas = [
        log_dir.replicas if topics is None else log_dir.replicas.only_topics(topics)
        for answer in answers
        for log_dir in answer.log_dirs.values()
    ]
    return ClusterTotals(
        brokers=len(answers),
        failed_brokers=sum(answer.failure is not None for answer in answers),
        volumes=len(volumes),
        unknown_volumes=len(volumes) - len(sizes),
        total_bytes=Bytes(sum(total for total, _ in sizes)) if sizes else None,
        usable_bytes=Bytes(sum(usable for _, usable in sizes)) if sizes else None,
        replicas=sum(len(columns) for columns in replicas),
        replica_bytes=_sum(columns.size for columns in replicas),
        remote_bytes=_remote_bytes(replicas),
        only_local_bytes=_only_local_bytes(replicas),
    )


def _remote_bytes(replicas: Iterable[ReplicaColumns]) -> Bytes | None:
    largest: dict[tuple[str, int], int] = {}
    for columns in replicas:
        for row in np.flatnonzero(columns.remote_size >= 0).tolist():
            partition = (columns.topic_names[columns.topic[row]], int(columns.partition[row]))
            largest[partition] = max(largest.get(partition, 0), int(columns.remote_size[row]))
    return Bytes(sum(largest.values())) if largest else None


def _only_local_bytes(replicas: Iterable[ReplicaColumns]) -> Bytes | None:
    known = [columns.only_local_size[columns.only_local_size >= 0] for columns in replicas]
    return _sum(known) if any(len(sizes) for sizes in known) else None


def _sum(columns: Iterable[npt.NDArray[np.int64]]) -> Bytes:
    """In Python's integers: numpy's sum of two sizes that a broker made up can wrap around to below 0."""
    return Bytes(sum(sum(sizes.tolist()) for sizes in columns))

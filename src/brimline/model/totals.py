"""What a cluster's log dirs add up to, with nothing counted twice.

A shared volume counts once (see ``volumes``), and so does a partition's remote log, which all its replicas have in
common. What is unknown is left out of a sum and counted beside it; a sum of nothing known is ``None``, not 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimline.model.log_dirs import BrokerLogDirs, ReplicaColumns
from brimline.model.quantities import Bytes
from brimline.model.volumes import Capacity, volumes_of


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

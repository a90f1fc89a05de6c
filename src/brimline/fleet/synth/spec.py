"""What fleet to make up. The same specification is the same fleet, to the byte of every file."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

MOST_REPLICATION = 3


class Draw(IntEnum):
    """What a random generator is for: each has one of its own, so that none disturbs another."""

    CLUSTER = 1
    BROKER = 2
    SNAPSHOT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    until_ms: int
    """When the newest snapshots are taken."""
    seed: int = 0
    clusters: int = 2
    brokers: int = 6
    """In all clusters together."""
    replicas: int = 200
    """On each broker, about."""
    segments: int = 10
    """Of each replica, on average."""
    log_dirs: int = 2
    days: int = 14
    """Of history, before the newest snapshots."""
    every_minutes: int = 180
    ceiling_percent: int = 85

    @property
    def brokers_of_clusters(self) -> tuple[int, ...]:
        """As even as can be, the first ones with one more."""
        least, more = divmod(self.brokers, self.clusters)
        return tuple(least + (number < more) for number in range(self.clusters))

    def generator(self, draw: Draw, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, draw, *numbers])

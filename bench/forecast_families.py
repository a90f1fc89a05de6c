"""How disks of a Kafka fleet fill, made up: families of volumes, each with a shape of its own.

A family gives the used share of its volumes, hour by hour. ``TUNING_FAMILIES`` were there to tune by.
``HELD_OUT_FAMILIES`` and ``HELD_OUT_SEEDS`` were written down before tuning began and scored when it had ended; the
rule was not changed after that. ``LATER_FAMILIES`` were written after tuning, and not tuned by either, but they were
not set aside beforehand and are scored apart. Whoever changes the rule because of what is seen on held-out families has
spent them, and must write others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from brimline.fleet.synth.broker import SynthBroker
from brimline.fleet.synth.spec import FleetSpec

HOURS_A_DAY = 24
HOURS_A_WEEK = 168
Shares: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    name: str
    make: Callable[[np.random.Generator, int, int], Shares]
    """From a generator, a number of volumes and a number of hours to the used share, a row per volume."""


def _column(generator: np.random.Generator, volumes: int, least: float, most: float) -> Shares:
    return generator.uniform(least, most, (volumes, 1))


def _rhythm(generator: np.random.Generator, volumes: int, hours: int, weekend: tuple[float, float]) -> Shares:
    """Traffic by hour, around 1: busy days, quiet nights, and weekends at a share of the rest."""
    hour = np.arange(hours) + generator.integers(0, HOURS_A_WEEK, (volumes, 1))
    daily = 1 + _column(generator, volumes, 0.1, 0.7) * np.sin(2 * np.pi * hour / HOURS_A_DAY)
    is_weekend = (hour // HOURS_A_DAY) % 7 >= 5
    quiet = _column(generator, volumes, *weekend)
    noise = generator.lognormal(0, 0.15, (volumes, hours))
    return np.asarray(daily * np.where(is_weekend, quiet, 1.0) * noise, dtype=np.float64)


def _wandering(generator: np.random.Generator, volumes: int, hours: int, a_day: float) -> Shares:
    """A slow random walk around 1."""
    steps = generator.normal(0, a_day / np.sqrt(HOURS_A_DAY), (volumes, hours))
    return np.asarray(np.exp(np.cumsum(steps, axis=1)), dtype=np.float64)


def _retained(traffic: Shares, window: npt.NDArray[np.int64]) -> Shares:
    """What is still there of hourly traffic when everything goes after ``window`` hours."""
    written = np.cumsum(traffic, axis=1)
    at = np.arange(traffic.shape[1]) - window
    gone = np.where(at >= 0, np.take_along_axis(written, np.maximum(at, 0), axis=1), 0.0)
    return np.asarray(written - gone, dtype=np.float64)


def _scaled(shape: Shares, level: Shares) -> Shares:
    """So that the last hour of ``shape`` is at ``level``."""
    return np.asarray(shape * level / shape[:, -1:], dtype=np.float64)


def growing(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Nothing is deleted: the slope is the traffic."""
    traffic = _rhythm(generator, volumes, hours, (0.6, 1.0)) * _wandering(generator, volumes, hours, 0.02)
    a_day = _column(generator, volumes, 0.0005, 0.02)
    return _column(generator, volumes, 0.1, 0.5) + np.cumsum(traffic * a_day / HOURS_A_DAY, axis=1)


def held_by_time(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Retention of days, older topics at their plateau, one newer topic that has still to reach its own."""
    lead = 21 * HOURS_A_DAY
    window = generator.integers(1, 15, (volumes, 1)) * HOURS_A_DAY
    old = _rhythm(generator, volumes, lead + hours, (0.4, 0.9)) * _wandering(generator, volumes, lead + hours, 0.03)
    plateau = _retained(old, window)[:, lead:]
    begun = generator.integers(0, hours, (volumes, 1))
    young = _rhythm(generator, volumes, hours, (0.4, 0.9)) * (np.arange(hours) >= begun)
    ramp = _retained(young, window) / (window * _column(generator, volumes, 2.0, 8.0))
    shape = plateau / plateau.mean(axis=1, keepdims=True)
    return np.asarray(_column(generator, volumes, 0.3, 0.7) * (shape + ramp), dtype=np.float64)


def steps(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Growth, and now and then a topic that is deleted or a replica that is moved here at once."""
    happens = generator.random((volumes, hours)) < 1.2 / (30 * HOURS_A_DAY)
    size = generator.uniform(-0.12, 0.10, (volumes, hours))
    level = growing(generator, volumes, hours) + np.cumsum(happens * size, axis=1)
    return np.maximum(level, 0.02)


def weekly(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Working days fill the disk, weekends hardly do; retention is longer than what is looked at."""
    traffic = _rhythm(generator, volumes, hours, (0.02, 0.3))
    a_day = _column(generator, volumes, 0.002, 0.015)
    return _column(generator, volumes, 0.1, 0.4) + np.cumsum(traffic * a_day / HOURS_A_DAY, axis=1)


def compounding(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Traffic grows by the same share every day, under a retention of days."""
    lead = 14 * HOURS_A_DAY
    window = generator.integers(2, 11, (volumes, 1)) * HOURS_A_DAY
    growth = np.exp(_column(generator, volumes, 0.0, 0.03) * np.arange(lead + hours) / HOURS_A_DAY)
    shape = _retained(_rhythm(generator, volumes, lead + hours, (0.5, 1.0)) * growth, window)[:, lead:]
    return _scaled(shape, _column(generator, volumes, 0.3, 0.95))


def moves(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Reassignments to and from the volume, each copied or freed over hours; some are taken back."""
    level = growing(generator, volumes, hours)
    hour = np.arange(hours)
    for _ in range(3):
        begins = generator.integers(0, hours, (volumes, 1))
        takes = generator.integers(3, 30, (volumes, 1))
        size = _column(generator, volumes, -0.10, 0.12)
        level = level + size * np.clip((hour - begins) / takes, 0, 1)
        is_taken_back = generator.random((volumes, 1)) < 0.3
        later = begins + takes + generator.integers(2, 60, (volumes, 1))
        level = level - is_taken_back * size * (hour >= later)
    return np.maximum(level, 0.02)


def sawtooth(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """A few partitions held to a size, in large segments: each goes at once when the next is full."""
    level = np.zeros((volumes, hours))
    hour = np.arange(hours)
    for _ in range(4):
        period = _column(generator, volumes, 9.0, 120.0)
        size = _column(generator, volumes, 0.01, 0.05)
        phase = _column(generator, volumes, 0.0, 1.0)
        level += size * ((hour / period + phase) % 1.0)
    drift = _column(generator, volumes, -0.0005, 0.003) * hour / HOURS_A_DAY
    return np.asarray(level + drift + _column(generator, volumes, 0.3, 0.7), dtype=np.float64)


def batches(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """Loads at night, of very different sizes, kept for days; and a steady stream beside them."""
    lead = 14 * HOURS_A_DAY
    hour = np.arange(lead + hours) + generator.integers(0, HOURS_A_DAY, (volumes, 1))
    loads = (hour % HOURS_A_DAY < 2) * generator.pareto(2.2, (volumes, lead + hours))
    window = generator.integers(1, 8, (volumes, 1)) * HOURS_A_DAY
    held = _retained(loads, window)[:, lead:]
    stream = np.cumsum(_rhythm(generator, volumes, hours, (0.5, 1.0)), axis=1) / HOURS_A_DAY
    return np.asarray(
        _column(generator, volumes, 0.1, 0.5)
        + held * _column(generator, volumes, 0.002, 0.012)
        + stream * _column(generator, volumes, 0.0, 0.01),
        dtype=np.float64,
    )


def turning(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """The slope is another one from some hour on: a service moved its traffic."""
    turn = generator.integers(hours // 4, hours, (volumes, 1))
    before, after = (_column(generator, volumes, -0.004, 0.015) for _ in range(2))
    traffic = _rhythm(generator, volumes, hours, (0.5, 1.0))
    slope = np.where(np.arange(hours) < turn, before, after)
    level = _column(generator, volumes, 0.25, 0.5) + np.cumsum(traffic * slope / HOURS_A_DAY, axis=1)
    return np.maximum(level, 0.02)


def made_up_fleet(generator: np.random.Generator, volumes: int, hours: int) -> Shares:
    """What ``brimline fleet synth`` makes, from partitions up: fewer volumes, since each is hundreds of logs."""
    brokers = volumes // 20
    until_ms = 1_760_000_400_000
    spec = FleetSpec(
        until_ms=until_ms,
        seed=int(generator.integers(0, 2**31)),
        clusters=1,
        brokers=brokers,
        replicas=60,
        days=hours // HOURS_A_DAY,
    )
    looks = until_ms - np.arange(hours - 1, -1, -1) * 3_600_000
    made = (SynthBroker(spec, 0, number) for number in range(brokers))
    return np.concatenate([np.stack([each.used_shares(ms) for ms in looks.tolist()], axis=1) for each in made])


TUNING_FAMILIES = tuple(Family(name=make.__name__, make=make) for make in (growing, held_by_time, steps, weekly))
HELD_OUT_FAMILIES = tuple(
    Family(name=make.__name__, make=make) for make in (compounding, moves, sawtooth, batches, turning)
)
LATER_FAMILIES = (Family(name=made_up_fleet.__name__, make=made_up_fleet),)
TUNING_SEEDS = (11, 12)
HELD_OUT_SEEDS = (9001, 9002, 9003)

"""Which fault when: a pure function of the seed, step by step, so that a run can be repeated in whole or in part.

Every step draws from a source of its own, named by the seed and its number: leaving steps out changes no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from brimline.torture.faults.table import Fault

_SECOND_FAULT = 0.35
_PAUSE_SECONDS = (0.5, 3.0)
_HOLD_SECONDS = (1.0, 6.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    fault: Fault
    broker: int
    volume: int

    def __str__(self) -> str:
        return f"{self.fault.name} of broker {self.broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """After ``pause``, one fault or two, one after the other; the first is undone after ``hold``."""

    number: int
    pause: float
    hold: float
    strikes: tuple[Strike, ...]

    def __str__(self) -> str:
        return " with ".join(map(str, self.strikes))


def step_of(seed: int, number: int, faults: Sequence[Fault], brokers: Sequence[int], volumes: int) -> Step:
    """``faults`` are those to draw from, never none."""
    chance = Random(f"{seed}/{number}")

    def strike(among: Sequence[Fault]) -> Strike:
        return Strike(fault=chance.choice(among), broker=chance.choice(list(brokers)), volume=chance.randrange(volumes))

    first = strike(faults)
    beside = [fault for fault in faults if not fault.touches & first.fault.touches]
    strikes = [first]
    if beside and chance.random() < _SECOND_FAULT:
        strikes.append(strike(beside))
    return Step(
        number=number,
        pause=chance.uniform(*_PAUSE_SECONDS),
        hold=chance.uniform(*_HOLD_SECONDS),
        strikes=tuple(strikes),
    )

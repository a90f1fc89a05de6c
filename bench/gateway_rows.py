"""A row of the gateway's table: three ways beside each other, and how the gateway's stands to its goal."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.gateway_paths import DIRECT, GATEWAY, HAPROXY

HEADER = "| what | direct | HAProxy | gateway | ratio | goal |\n|---|---|---|---|---|---|"
ABSENT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeWays:
    """``figures`` by the name of the way; ``against`` is the way that the others are divided by."""

    what: str
    unit: str
    figures: Mapping[str, float]
    against: str | None = None
    goal: str = ""

    def row(self) -> str:
        ways = (self._figure(way) for way in (DIRECT, HAPROXY, GATEWAY))
        return f"| {self.what} | {' | '.join(ways)} | {self._ratios()} | {self.goal} |"

    def _figure(self, way: str) -> str:
        if way not in self.figures:
            return ABSENT
        figure = self.figures[way]
        return f"{figure:,.0f} {self.unit}" if figure >= 1000 else f"{figure:.3g} {self.unit}"

    def _ratios(self) -> str:
        """The gateway's first; what HAProxy reaches of the direct way tells what a forwarder can reach here."""
        if self.against is None:
            return ""
        others = [way for way in (GATEWAY, HAPROXY) if way in self.figures and way != self.against]
        ratios = (f"{way} {self.figures[way] / self.figures[self.against]:.2f}" for way in others)
        return f"{', '.join(ratios)} of {self.against}" if others else ""


def medians(rounds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """By way, of figures that were taken in turns."""
    taken = list(rounds)
    return {way: statistics.median(each[way] for each in taken) for way in taken[0]}

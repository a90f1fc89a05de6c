"""Measured values on their way to people: families of columns, since a broker may hold 100,000 partitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

LabelValues: TypeAlias = tuple[tuple[str, ...], ...]
Values: TypeAlias = Sequence[int | float] | npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricFamily:
    """All series of one metric at one moment. Nobody writes into ``values`` after it was handed over.

    ``label_values`` has a row per series, in the catalogue's order of labels. While the set of series stays the
    same, hand over the same tuple again: whoever renders it recognises it by identity and keeps what it derived.
    A histogram is a family as well, with a row for every number that it is made of.
    """

    name: str
    """The metric's name in the catalogue."""
    label_values: LabelValues
    values: Values

    def __post_init__(self) -> None:
        if len(self.label_values) != len(self.values):
            raise ValueError(f"{self.name}: {len(self.label_values)} series and {len(self.values)} values")

    def __len__(self) -> int:
        return len(self.values)

"""What a metric is: its declaration, its values, its names in JMX.

JMX names are in the very form in which Kafka writes them. Kafka's KafkaMetricsGroup puts ``type`` and ``name`` first,
then the tags, each value through Sanitizer.jmxSanitize: word characters, ``-``, ``%``, ``.``, space and tab stay as
they are, anything else has the whole value quoted by ObjectName.quote. So topic names stand plain, and a log dir, which
has a ``/``, always stands in quotes.

Measured values are families of columns, since a broker may hold 100,000 partitions.

A histogram is a family too: Prometheus knows it as one series for every bound, one for the sum and one for the count.
Its rows are ``(suffix of the name, bound)``. It has no bean: JMX carries the KIPs' gauges, and a bean is one number.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_PLAIN = re.compile(r"[\w\-%. \t]*", re.ASCII)
_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "*": r"\*", "?": r"\?", "\n": r"\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bean:
    """The pattern of a gauge's object name; its one attribute is ``Value``."""

    domain: str
    type: str
    name: str
    keys: tuple[str, ...] = ()
    """The tags that tell the series apart."""
    fixed: tuple[tuple[str, str], ...] = ()
    """Tags with the same value in every series; after the others, where Kafka has ``is-future``."""

    def object_name(self, values: tuple[str, ...]) -> str:
        tags = (*zip(self.keys, values, strict=True), *self.fixed)
        properties = (("type", self.type), ("name", self.name), *tags)
        return f"{self.domain}:{','.join(f'{key}={jmx_sanitize(value)}' for key, value in properties)}"


def jmx_sanitize(value: str) -> str:
    """Kafka's Sanitizer.jmxSanitize."""
    return value if _PLAIN.fullmatch(value) else f'"{value.translate(_QUOTED)}"'


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


_ONE_SERIES: LabelValues = ((),)
BUCKET, SUM, COUNT = "_bucket", "_sum", "_count"


class MetricKind(Enum):
    """The value is the word of both Prometheus formats."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    """The catalogue name: what families carry from room to room."""
    kind: MetricKind
    help: str
    """One sentence for the person who meets the number on a dashboard."""
    prometheus: str
    labels: tuple[str, ...] = ()
    """Label names of Prometheus, in the order of a family's columns."""
    unit: str = ""
    bean: Bean | None = None
    """Where JMX shows it; its keys take the same columns in the same order."""

    def __post_init__(self) -> None:
        if self.kind is MetricKind.COUNTER and not self.prometheus.endswith("_total"):
            raise ValueError(f"{self.prometheus}: OpenMetrics wants a counter's samples to end in _total")
        if self.bean and len(self.bean.keys) != len(self.labels):
            raise ValueError(f"{self.name}: a family's columns must fit the labels and the bean's keys alike")
        if self.kind is MetricKind.HISTOGRAM and (self.bean or self.labels):
            raise ValueError(f"{self.name}: a histogram has no bean, and one set of buckets")

    def family(self, label_values: LabelValues, values: Values) -> MetricFamily:
        return MetricFamily(name=self.name, label_values=label_values, values=values)

    def single(self, value: int | float) -> MetricFamily:
        """The family of a metric without labels."""
        return MetricFamily(name=self.name, label_values=_ONE_SERIES, values=(value,))

    def histogram(self, bounds: Sequence[float], counts: Sequence[int], total: float) -> MetricFamily:
        """Of counts bucket by bucket, the last for what is beyond every bound; ``total`` is the sum of all values."""
        if len(counts) != len(bounds) + 1:
            raise ValueError(f"{self.name}: {len(bounds)} bounds need {len(bounds) + 1} counts, not {len(counts)}")
        below = list(accumulate(counts))  # Prometheus counts everything up to a bound
        return MetricFamily(
            name=self.name, label_values=_histogram_rows(tuple(bounds)), values=(*below, total, below[-1])
        )


@lru_cache(maxsize=8)
def _histogram_rows(bounds: tuple[float, ...]) -> LabelValues:
    """Kept, so that whoever renders them finds the same rows again."""
    buckets = [(BUCKET, repr(float(bound))) for bound in bounds]
    return (*buckets, (BUCKET, "+Inf"), (SUM, ""), (COUNT, ""))

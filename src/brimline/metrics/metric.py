"""What the catalogue says of one metric, and how its numbers become a family.

A histogram is a family too: Prometheus knows it as one series for every bound, one for the sum and one for the count.
Its rows are ``(suffix of the name, bound)``. It has no bean: JMX carries the KIPs' gauges, and a bean is one number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import accumulate

from brimline.metrics.object_names import Bean
from brimline.model.samples import LabelValues, MetricFamily, Values

_ONE_SERIES: LabelValues = ((),)
BUCKET, SUM, COUNT = "_bucket", "_sum", "_count"


class Kind(Enum):
    """The value is the word of both Prometheus formats."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    """The catalogue name: what families carry from room to room."""
    kind: Kind
    help: str
    """One sentence for the person who meets the number on a dashboard."""
    prometheus: str
    labels: tuple[str, ...] = ()
    """Label names of Prometheus, in the order of a family's columns."""
    unit: str = ""
    bean: Bean | None = None
    """Where JMX shows it; its keys take the same columns in the same order."""

    def __post_init__(self) -> None:
        if self.kind is Kind.COUNTER and not self.prometheus.endswith("_total"):
            raise ValueError(f"{self.prometheus}: OpenMetrics wants a counter's samples to end in _total")
        if self.bean and len(self.bean.keys) != len(self.labels):
            raise ValueError(f"{self.name}: a family's columns must fit the labels and the bean's keys alike")
        if self.kind is Kind.HISTOGRAM and (self.bean or self.labels):
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

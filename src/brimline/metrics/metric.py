"""What the catalogue says of one metric."""

from dataclasses import dataclass
from enum import Enum

from brimline.metrics.object_names import Bean
from brimline.model.samples import LabelValues, MetricFamily, Values

_ONE_SERIES: LabelValues = ((),)


class Kind(Enum):
    """The value is the word of both Prometheus formats."""

    GAUGE = "gauge"
    COUNTER = "counter"


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

    def family(self, label_values: LabelValues, values: Values) -> MetricFamily:
        return MetricFamily(name=self.name, label_values=label_values, values=values)

    def single(self, value: int | float) -> MetricFamily:
        """The family of a metric without labels."""
        return MetricFamily(name=self.name, label_values=_ONE_SERIES, values=(value,))

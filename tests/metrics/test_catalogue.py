"""The catalogue's promises: every name once, legal everywhere, with a sentence for people."""

import re

import pytest

from brimline.metrics import catalogue
from brimline.metrics.catalogue import CATALOGUE
from brimline.metrics.metric import Metric, MetricKind

A_PARTITION = ("my.topic_a-b", "0")


@pytest.mark.parametrize("field", ["name", "prometheus"])
def test_no_two_metrics_share_a_name(field: str) -> None:
    names = [getattr(metric, field) for metric in CATALOGUE]

    assert sorted(names) == sorted(set(names))


def test_every_metric_of_the_module_is_in_the_table() -> None:
    defined = {value.name for value in vars(catalogue).values() if isinstance(value, Metric)}

    assert defined == {metric.name for metric in CATALOGUE}


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_names_are_legal_in_prometheus_and_the_help_is_a_sentence(metric: Metric) -> None:
    assert re.fullmatch(r"(kafka_log|brimline)_[a-z_]+", metric.prometheus)
    assert all(re.fullmatch(r"[a-zA-Z_]+", label) for label in metric.labels)
    assert re.fullmatch(r"[^\n]+\.", metric.help)
    assert (metric.kind is MetricKind.COUNTER) == metric.prometheus.endswith("_total")


@pytest.mark.parametrize(
    ("metric", "values", "object_name"),
    [
        (
            catalogue.LOG_RETENTION_SIZE,
            A_PARTITION,
            "kafka.log:type=Log,name=RetentionSizeInPercent,topic=my.topic_a-b,partition=0",
        ),
        (
            catalogue.FUTURE_LOG_RETENTION_SIZE,
            A_PARTITION,
            "kafka.log:type=Log,name=RetentionSizeInPercent,topic=my.topic_a-b,partition=0,is-future=true",
        ),
        (
            catalogue.REMOTE_RETENTION_SIZE,
            A_PARTITION,
            "kafka.log.remote:type=RemoteLogManager,name=RetentionSizeInPercent,topic=my.topic_a-b,partition=0",
        ),
        (
            catalogue.LOCAL_RETENTION_SIZE,
            A_PARTITION,
            "kafka.log.remote:type=RemoteLogManager,name=LocalRetentionSizeInPercent,topic=my.topic_a-b,partition=0",
        ),
        (catalogue.DISK_FULL_LOG_DIRECTORY_COUNT, (), "kafka.log:type=LogManager,name=DiskFullLogDirectoryCount"),
        (
            catalogue.LOG_DIRECTORY_DISK_FULL,
            ("/var/lib/kafka",),
            'kafka.log:type=LogManager,name=LogDirectoryDiskFull,logDirectory="/var/lib/kafka"',
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Metric) else None,
)
def test_the_kips_object_names(metric: Metric, values: tuple[str, ...], object_name: str) -> None:
    assert metric.bean is not None
    assert metric.bean.object_name(values) == object_name


def test_a_counter_that_does_not_end_in_total_is_refused() -> None:
    with pytest.raises(ValueError, match="_total"):
        Metric(name="reloads", kind=MetricKind.COUNTER, help="Reloads.", prometheus="brimline_reloads")


def test_a_histogram_has_no_bean_and_no_labels() -> None:
    with pytest.raises(ValueError, match="one set of buckets"):
        Metric(name="h", kind=MetricKind.HISTOGRAM, help="H.", prometheus="brimline_h", labels=("a",))


def test_a_histogram_with_a_count_missing_is_refused() -> None:
    with pytest.raises(ValueError, match="2 bounds need 3 counts, not 2"):
        catalogue.GATEWAY_ADDED_LATENCY.histogram((0.1, 0.2), (1, 2), 0.3)


def test_a_family_of_unequal_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="2 series and 1 values"):
        catalogue.PARTITIONS.family((("/a",), ("/b",)), (1,))

"""What a scrape gets, read by the parsers of prometheus_client."""

import math
from collections.abc import Callable, Iterable
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric as ParsedMetric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from brimline.metrics import catalogue
from brimline.metrics.catalogue import CATALOGUE
from brimline.metrics.metric import Metric, MetricFamily, MetricKind
from brimline.metrics.prometheus import PrometheusRenderer, TextFormat

Parse = Callable[[str], Iterable[ParsedMetric]]
FORMATS = [(TextFormat.TEXT, parse_text), (TextFormat.OPEN_METRICS, parse_open_metrics)]
PARTITIONS = (("orders", "0"), ("orders", "1"))

each_format = pytest.mark.parametrize(("text_format", "parse"), FORMATS, ids=lambda value: getattr(value, "name", ""))


def parsed(families: Iterable[MetricFamily], text_format: TextFormat, parse: Parse) -> list[ParsedMetric]:
    return list(parse(PrometheusRenderer().render(families, text_format).decode()))


@each_format
def test_every_metric_of_the_catalogue_is_valid(text_format: TextFormat, parse: Parse) -> None:
    singles = [metric for metric in CATALOGUE if metric.kind is not MetricKind.HISTOGRAM]
    families = [metric.family((("a",) * len(metric.labels),), (1,)) for metric in singles]

    found = parsed(families, text_format, parse)

    assert [(m.type, m.documentation) for m in found] == [(m.kind.value, m.help) for m in singles]
    assert [s.name for m in found for s in m.samples] == [m.prometheus for m in singles]


@each_format
@pytest.mark.parametrize(
    "metric", [metric for metric in CATALOGUE if metric.kind is MetricKind.HISTOGRAM], ids=lambda metric: metric.name
)
@given(
    bounds=st.lists(st.floats(1e-6, 1e6), unique=True).map(sorted),
    counts=st.lists(st.integers(0, 2**40), min_size=20, max_size=20),
    total=st.floats(0, 1e9),
)
def test_a_histogram_is_one_to_prometheus(
    text_format: TextFormat, parse: Parse, metric: Metric, bounds: list[float], counts: list[int], total: float
) -> None:
    bounds, counts = bounds[:19], counts[: len(bounds[:19]) + 1]

    (found,) = parsed([metric.histogram(bounds, counts, total)], text_format, parse)

    buckets = [(float(s.labels["le"]), s.value) for s in found.samples if s.name == f"{metric.prometheus}_bucket"]
    rest = {s.name: s.value for s in found.samples if "le" not in s.labels}
    assert (found.type, found.name) == ("histogram", metric.prometheus)
    assert buckets == list(zip([*bounds, math.inf], accumulate(counts), strict=True))
    assert rest == {f"{metric.prometheus}_sum": total, f"{metric.prometheus}_count": sum(counts)}


def test_a_histogram_as_text() -> None:
    family = catalogue.GATEWAY_ADDED_LATENCY.histogram((0.0001, 1), (3, 2, 1), 1.5)

    lines = PrometheusRenderer().render([family], TextFormat.OPEN_METRICS).decode().splitlines()

    assert lines[1:] == [
        "# TYPE brimline_gateway_added_latency_seconds histogram",
        "# UNIT brimline_gateway_added_latency_seconds seconds",
        'brimline_gateway_added_latency_seconds_bucket{le="0.0001"} 3',
        'brimline_gateway_added_latency_seconds_bucket{le="1.0"} 5',
        'brimline_gateway_added_latency_seconds_bucket{le="+Inf"} 6',
        "brimline_gateway_added_latency_seconds_sum 1.5",
        "brimline_gateway_added_latency_seconds_count 6",
        "# EOF",
    ]


@each_format
@given(paths=st.lists(st.text(st.characters(codec="utf-8")), unique=True))
def test_any_log_dir_survives_the_way_through_the_parser(
    text_format: TextFormat, parse: Parse, paths: list[str]
) -> None:
    rows = tuple((path,) for path in paths)

    found = parsed([catalogue.PARTITIONS.family(rows, range(len(paths)))], text_format, parse)

    samples = [(s.labels["log_dir"], s.value) for m in found for s in m.samples]
    assert samples == [(path, float(number)) for number, path in enumerate(paths)]


@each_format
@given(values=st.lists(st.floats() | st.integers(-(2**53), 2**53)))
def test_any_number_survives_it_too(text_format: TextFormat, parse: Parse, values: list[float]) -> None:
    rows = tuple((str(number),) for number in range(len(values)))

    found = parsed([catalogue.SCAN_AGE.family(rows, values)], text_format, parse)

    read = [s.value for m in found for s in m.samples]
    assert len(read) == len(values)
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(read, values, strict=True))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64])
def test_columns_of_numpy_read_like_lists(dtype: type[np.generic]) -> None:
    renderer = PrometheusRenderer()

    column = renderer.render([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, np.array([7, 102], dtype=dtype))])

    numbers = [float(line.rsplit(b" ", 1)[1]) for line in column.splitlines() if not line.startswith(b"#")]
    assert numbers == [7.0, 102.0]


def test_a_path_that_is_not_utf_8_is_shown_as_far_as_it_can_be() -> None:
    family = catalogue.PARTITIONS.family(((b"/data\xff".decode(errors="surrogateescape"),),), (1,))

    assert '{log_dir="/data\ufffd"} 1\n'.encode() in PrometheusRenderer().render([family])


def test_the_text_of_a_scrape() -> None:
    families = [
        catalogue.LOG_DIRECTORY_DISK_FULL.family((("/data",),), (0,)),
        catalogue.VOLUME_SECONDS_TO_LIMIT.family((("/data", "8:1"),), (math.inf,)),
        catalogue.RELOADS.family((("applied",),), (2,)),
    ]

    lines = PrometheusRenderer().render(families, TextFormat.OPEN_METRICS).decode().splitlines()

    assert [line for line in lines if not line.startswith("# HELP")] == [
        "# TYPE kafka_log_logmanager_logdirectorydiskfull gauge",
        'kafka_log_logmanager_logdirectorydiskfull{logDirectory="/data"} 0',
        "# TYPE brimline_volume_to_limit_seconds gauge",
        "# UNIT brimline_volume_to_limit_seconds seconds",
        'brimline_volume_to_limit_seconds{log_dir="/data",device="8:1"} +Inf',
        "# TYPE brimline_config_reloads counter",
        'brimline_config_reloads_total{outcome="applied"} 2',
        "# EOF",
    ]


def test_a_family_without_series_leaves_no_header() -> None:
    assert PrometheusRenderer().render([catalogue.LOG_RETENTION_SIZE.family((), ())]) == b""


def test_new_values_of_the_same_series_are_written() -> None:
    renderer = PrometheusRenderer()
    renderer.render([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2))])

    again = renderer.render([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (3, 4))])

    assert again == PrometheusRenderer().render([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (3, 4))])


def test_other_series_with_the_same_values_are_written() -> None:
    renderer = PrometheusRenderer()
    renderer.render([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2))])
    others = (("payments", "0"), ("payments", "1"))

    again = renderer.render([catalogue.LOG_RETENTION_SIZE.family(others, (1, 2))])

    assert again == PrometheusRenderer().render([catalogue.LOG_RETENTION_SIZE.family(others, (1, 2))])


def test_a_family_that_did_not_change_is_the_same_text_in_either_format() -> None:
    renderer = PrometheusRenderer()
    family = catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2))

    text, open_metrics = (renderer.render([family], text_format) for text_format in TextFormat)

    assert open_metrics == text + b"# EOF\n"

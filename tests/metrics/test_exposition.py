"""Which format and which encoding a scraper gets."""

import gzip

import pytest

from brimline.metrics import catalogue
from brimline.metrics.exposition import accepts_gzip, expose, negotiate
from brimline.metrics.prometheus import PrometheusRenderer, TextFormat

PROMETHEUS_2 = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
MANY = catalogue.LOG_RETENTION_SIZE.family(tuple(("orders", str(n)) for n in range(1000)), range(1000))


@pytest.mark.parametrize(
    ("accept", "text_format"),
    [
        (None, TextFormat.TEXT),
        ("", TextFormat.TEXT),
        ("*/*", TextFormat.TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TextFormat.TEXT),
        (PROMETHEUS_2, TextFormat.OPEN_METRICS),
        (PROMETHEUS_3, TextFormat.OPEN_METRICS),
        ("Application/OpenMetrics-Text", TextFormat.OPEN_METRICS),
        ('application/openmetrics-text; version="1.0.0"', TextFormat.OPEN_METRICS),
        ("application/openmetrics-text;version=0.0.1", TextFormat.TEXT),
        ("application/openmetrics-text;q=0", TextFormat.TEXT),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", TextFormat.TEXT),
        ("application/openmetrics-text;q=much", TextFormat.TEXT),
        (";;,,=;q", TextFormat.TEXT),
    ],
)
def test_the_format_follows_the_accept_header(accept: str | None, text_format: TextFormat) -> None:
    assert negotiate(accept) is text_format


@pytest.mark.parametrize(
    ("accept_encoding", "accepted"),
    [
        (None, False),
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("identity", False),
    ],
)
def test_gzip_is_for_those_who_ask(accept_encoding: str | None, accepted: bool) -> None:  # noqa: FBT001
    assert accepts_gzip(accept_encoding) is accepted


def test_a_compressed_exposition_is_the_same_text() -> None:
    renderer = PrometheusRenderer()

    compressed = expose(renderer, [MANY], accept_encoding="gzip")

    assert compressed.content_encoding == "gzip"
    assert gzip.decompress(compressed.body) == expose(renderer, [MANY]).body


def test_what_fits_into_a_packet_is_not_compressed() -> None:
    small = expose(PrometheusRenderer(), [catalogue.BROKER_CONNECTED.single(1)], accept_encoding="gzip")

    assert small.content_encoding is None


def test_the_content_type_is_that_of_the_format() -> None:
    answer = expose(PrometheusRenderer(), [MANY], accept=PROMETHEUS_3)

    assert answer.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.body.endswith(b"# EOF\n")

"""Object names as Kafka's Sanitizer and Java's ObjectName.quote write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.metrics.metric import jmx_sanitize

UNQUOTED = {"\\": "\\", '"': '"', "*": "*", "?": "?", "n": "\n"}


@pytest.mark.parametrize("value", ["orders", "a.b_c-d", "0", "with space", "50%", "tab\tbed", ""])
def test_what_kafka_leaves_plain_stays_plain(value: str) -> None:
    assert jmx_sanitize(value) == value


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("/var/lib/kafka", '"/var/lib/kafka"'),
        ("C:\\kafka", '"C:\\\\kafka"'),
        ('/a "b"', '"/a \\"b\\""'),
        ("/a*b?c", '"/a\\*b\\?c"'),
        ("/a\nb", '"/a\\nb"'),
        ("/a,b=c:d", '"/a,b=c:d"'),
        ("größe", '"größe"'),
    ],
)
def test_anything_else_is_quoted(value: str, quoted: str) -> None:
    assert jmx_sanitize(value) == quoted


@given(st.text())
def test_quoting_loses_nothing(value: str) -> None:
    sanitized = jmx_sanitize(value)

    if sanitized != value:
        inner = sanitized.removeprefix('"').removesuffix('"')
        assert re.sub(r"\\(.)", lambda match: UNQUOTED[match[1]], inner) == value

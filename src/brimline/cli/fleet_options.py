"""Options that several commands of ``brimline fleet`` share."""

import argparse
import re

WAREHOUSE_HELP = "where the tables are: a folder, or a URI that Spark opens (required)"
_SPAN = re.compile(r"(\d{1,6})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="local[N], spark://host:port, or sc://host:port for Spark Connect (default: %(default)s)",
    )
    parser.add_argument("--driver-memory", default="1g", metavar="SIZE", help="of the driver's JVM (default: 1g)")
    parser.add_argument(
        "--conf", action="append", default=[], type=_setting, metavar="KEY=VALUE", help="a setting of Spark's own"
    )


def span_seconds(text: str) -> float:
    span = _SPAN.fullmatch(text.strip())
    if span is None or not int(span[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a span such as 90s, 5m, 1h or 2d")
    return float(int(span[1]) * _SECONDS[span[2]])


def days(text: str) -> int:
    if not text.isdecimal() or int(text) > 36500:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days")
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not found or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a setting such as spark.executor.memory=4g")
    return key, value

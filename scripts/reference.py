"""Writes the reference pages from what the program itself says, so that the two cannot disagree."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from brimline.cli.parser import build_parser
from brimline.metrics.catalogue import CATALOGUE
from brimline.metrics.jmx_settings import USER
from brimline.metrics.metric import Metric
from brimline.settings.keys import JMX_PORT, STATE_DIR, markdown_table

DOCS = Path(__file__).parent.parent / "docs"
MADE_BY = "by `scripts/reference.py`; a test holds the two together."
COMMANDS: tuple[tuple[str, ...], ...] = (
    (),
    ("log-dirs",),
    ("guard",),
    ("gateway",),
    ("doctor",),
    ("status",),
    ("fence",),
    ("unfence",),
    ("reclaim",),
    ("ledger",),
    ("fleet",),
    ("fleet", "collect"),
    ("fleet", "run"),
    ("fleet", "show"),
    ("fleet", "simulate"),
    ("fleet", "maintain"),
    ("fleet", "synth"),
    ("sandbox",),
    ("sandbox", "up"),
    ("torture",),
    ("torture", "run"),
    ("torture", "check"),
    ("torture", "hostile"),
    ("torture", "conformance"),
)
# argparse folds its lines to the terminal.
WIDTH = 110


def command_line() -> Iterator[str]:
    yield f"# The command line\n\nMade from `--help` {MADE_BY}\n"
    for command in COMMANDS:
        yield f"\n## brimline {' '.join(command)}".rstrip() + f"\n\n```text\n{help_text(command)}```\n"


def help_text(command: Sequence[str]) -> str:
    os.environ["COLUMNS"] = str(WIDTH)
    parser: argparse.ArgumentParser = build_parser(command)
    for name in command:
        (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parser = commands.choices[name]
    return parser.format_help()


def configuration() -> Iterator[str]:
    yield f"# Configuration of the guard\n\nMade from the table of keys {MADE_BY}\n\n"
    yield "The keys stand in the broker's own `server.properties`; Kafka ignores what it does not know.\n\n"
    yield markdown_table().strip() + "\n"


def metrics() -> Iterator[str]:
    yield f"# Metrics of the guard\n\nMade from the catalogue {MADE_BY}\n\n"
    yield (
        f"By JMX (`{JMX_PORT.name}`) the guard asks for a login: the user is `{USER}`, who may only read, and the "
        f"password is in `jmx-ID.password` in `{STATE_DIR.name}`, made at the first start and readable by the guard's "
        "user alone. Other files are named by `brimline.jmx.com.sun.management.jmxremote.password.file` and "
        "`….access.file`; `….authenticate=false` asks nobody.\n\n"
    )
    yield "| Prometheus | labels | JMX bean (attribute `Value`) | meaning |\n|---|---|---|---|\n"
    for metric in CATALOGUE:
        yield f"| `{metric.prometheus}` | {', '.join(metric.labels)} | {bean(metric)} | {metric.help} |\n"


def bean(metric: Metric) -> str:
    if metric.bean is None:
        return ""
    keys = "".join(f",{key}=…" for key in metric.bean.keys) + "".join(f",{k}={v}" for k, v in metric.bean.fixed)
    return f"`{metric.bean.domain}:type={metric.bean.type},name={metric.bean.name}{keys}`"


PAGES: Mapping[Path, Callable[[], Iterator[str]]] = {
    DOCS / "cli.md": command_line,
    DOCS / "configuration.md": configuration,
    DOCS / "metrics.md": metrics,
}


if __name__ == "__main__":
    for page, text in PAGES.items():
        page.write_text("".join(text()))
    sys.exit(0)

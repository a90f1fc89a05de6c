"""Writes the reference pages from what the program itself says, so that the two cannot disagree."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from brimline.cli.help import exit_codes
from brimline.cli.parser import every_command, find_parser
from brimline.cli.shared.exit_codes import EVERYWHERE
from brimline.metrics.catalogue import CATALOGUE
from brimline.metrics.jmx_settings import USER
from brimline.metrics.metric import Metric
from brimline.settings.keys import JMX_PORT, STATE_DIR, markdown_table

DOCS = Path(__file__).parent.parent / "docs"
MADE_BY = "by `scripts/reference.py`; a test holds the two together."
# argparse folds its lines to the terminal.
WIDTH = 110


def command_line() -> Iterator[str]:
    yield f"# The command line\n\nMade from `--help` {MADE_BY}\n"
    yield "\n## Exit codes\n\n`brimline help exit-codes` prints them too.\n\n"
    yield "| command | code | meaning |\n|---|---|---|\n"
    for command, codes in exit_codes():
        for code, meaning in codes.items():
            yield f"| `{command}` | {code} | {meaning} |\n"
    for code, meaning in EVERYWHERE.items():
        yield f"| every command | {code} | {meaning} |\n"
    for path in ((), *every_command()):
        yield f"\n## brimline {' '.join(path)}".rstrip() + f"\n\n```text\n{help_text(path)}```\n"


def help_text(command: Sequence[str]) -> str:
    os.environ["COLUMNS"] = str(WIDTH)
    parser = find_parser(command)
    assert parser is not None
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


def tables() -> Iterator[str]:
    from brimline.fleet.tables.catalogue import Table
    from brimline.fleet.tables.dictionary import KEYS, meaning
    from brimline.fleet.tables.gold_schemas import GOLD
    from brimline.fleet.tables.schemas import BRONZE

    yield f"# The tables of the fleet\n\nMade from the tables' schemas {MADE_BY}\n\n"
    yield (
        "Every table is a Delta table in the folder of its name, in the warehouse. The sentences are the columns' "
        "comments there, too. Unknown is null. Tables of facts are appended to and partitioned by `taken_on`, but for "
        "`newest`, `quarantine` and `thinned`. Tables that answer are written whole by each run in which something "
        "landed. Tables of facts that an older Brimline made have no comments. Questions in SQL: [sql.md](sql.md).\n"
    )
    for title, schemas in (("Facts", BRONZE), ("Answers", GOLD)):
        yield f"\n## {title}\n"
        for table in Table:
            if table in schemas:
                key = ", ".join(f"`{name}`" for name in KEYS.get(table, ()))
                yield f"\n### {table.value}\n\n{table.sentence[0].upper()}{table.sentence[1:]}."
                yield (f" Key: {key}." if key else "") + "\n\n| column | type | null | meaning |\n|---|---|---|---|\n"
                for each in schemas[table].fields:
                    may_be = "yes" if each.nullable else ""
                    kind = each.dataType.simpleString()
                    yield f"| `{each.name}` | {kind} | {may_be} | {meaning(table, each.name)} |\n"


PAGES: Mapping[Path, Callable[[], Iterator[str]]] = {
    DOCS / "cli.md": command_line,
    DOCS / "configuration.md": configuration,
    DOCS / "metrics.md": metrics,
    DOCS / "tables.md": tables,
}


if __name__ == "__main__":
    for page, text in PAGES.items():
        page.write_text("".join(text()))
    sys.exit(0)

"""``brimline doctor``: the effective configuration of a guard in plain words, and everything that is wrong."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, TextIO

from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.options import add_config_options, add_debug_and_version

if TYPE_CHECKING:
    from brimline.cli.parser import Parser
    from brimline.guard.checkup import CheckUp

DESCRIPTION = """\
Check a broker's properties file and host before a guard runs there: limits, shared volumes, impossible limits, missing
permissions, and whether the broker answers. Changes nothing.
"""
EPILOG = """\
examples:
  brimline doctor --config /etc/kafka/server.properties
  brimline doctor --config /etc/kafka/server.properties --report > report.txt
      for a bug report: versions, the settings that are read, and all findings; passwords and logins are hidden
  brimline doctor --config /etc/kafka/server.properties --output json | jq '.findings[] | select(.weight=="problem")'

exit codes:
  0    no problems (there may be warnings and notes)
  1    the configuration cannot be used: every problem with its line is on stderr
  3    problems found: the guard could run, but could not do all of its work"""
_MARKS = {
    "fine": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "red"),
}


def add_parser(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    parser = subparsers.add_parser("doctor", description=DESCRIPTION, epilog=EPILOG)
    add_config_options(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--output", choices=("text", "json"), default="text", help="for people or for programs")
    shown.add_argument("--report", action="store_true", help="for a bug report: versions, settings and findings")
    add_debug_and_version(parser, uses_client=True)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    if args.report:
        from brimline.cli.doctor_report import machine_lines, setting_lines
        from brimline.cli.shared.output import writing_to

        with writing_to(sys.stdout, utf_8=False) as out:
            for line in (*machine_lines(), "", *setting_lines(args.config), ""):
                out.write(f"{line}\n")
    return examine(args, output=args.output)


def examine(args: argparse.Namespace, *, output: str) -> int:
    import os

    from brimline.cli.shared.output import writing_to
    from brimline.guard.checkup import check_up
    from brimline.service.clock import SystemClock
    from brimline.settings.config import load_config

    config = load_config(args.config, os.environ, args.broker_cwd)
    found = check_up(config, SystemClock())
    with writing_to(sys.stdout, utf_8=output == "json") as out:
        write_json(found, out) if output == "json" else write_text(found, out)
    return ExitCode.PARTIAL if found.problems else ExitCode.DONE


# Two blanks and the word in front of a sentence.
_INDENT = 10


def write_json(found: "CheckUp", out: TextIO) -> None:
    findings = [
        {"topic": finding.topic, "weight": finding.weight.value, "sentence": finding.sentence}
        for finding in found.findings
    ]
    document = {"format": "brimline.doctor", "version": 1, "findings": findings}
    out.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def write_text(found: "CheckUp", out: TextIO) -> None:
    from rich.text import Text

    from brimline.cli.shared.glyphs import printable
    from brimline.cli.shared.output import console_on, print_hanging
    from brimline.model.quantities import counted

    console = console_on(out)
    topics = list(dict.fromkeys(finding.topic for finding in found.findings))
    for topic in topics:
        console.print(Text(topic.capitalize(), "bold"))
        for finding in found.findings:
            if finding.topic == topic:
                word, style = _MARKS[finding.weight.value]
                line = Text.assemble("  ", (f"{word:<8}", style), printable(finding.sentence))
                print_hanging(console, line, _INDENT)
    problems, warnings = (
        sum(each.weight.value == weight for each in found.findings) for weight in ("problem", "warning")
    )
    verdict = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}"
    if not problems:
        verdict += ": the guard can do all of its work"
    console.print(Text(f"\n{verdict}", "bold red" if problems else "bold green"), soft_wrap=True)

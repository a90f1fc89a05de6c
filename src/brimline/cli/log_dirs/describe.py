"""What ``brimline log-dirs`` does: connect, ask, render, and say by the exit code how whole the answer is.

Meanwhile it tells how far the reading of remote log metadata has come: one line on a terminal's stderr.
"""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TextIO

from brimline.cli.log_dirs.for_programs import ASKING, write_csv, write_json, write_kafka_json
from brimline.cli.log_dirs.report import LogDirsReport
from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.output import writing_to
from brimline.model import BadInput, BrokerId
from brimline.observe.client.config import ClientConfig
from brimline.observe.cluster.admin import Admin, DescribeLogDirsOptions
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry, load_properties

_EVERY_SECONDS = 0.1
_USUAL_WIDTH = 80  # of a terminal that does not say
_TO_LINE_START_AND_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Draws ``done of total`` over itself, at most ten times a second."""

    def __init__(self, terminal: TextIO, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``width`` is the terminal's: a line that ran over could not be cleared whole."""
        self._terminal = terminal
        self._width = width
        self._clock = clock
        self._drawn_at: float | None = None

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if self._drawn_at is not None and now - self._drawn_at < _EVERY_SECONDS:
            return
        self._drawn_at = now
        percent = f"{done * 100 // total:3d} %, " if total else ""
        line = f"Reading __remote_log_metadata: {percent}{done:,} of {total:,} records"
        self._terminal.write(f"{_TO_LINE_START_AND_CLEAR}{line[: self._width - 1]}")
        self._terminal.flush()

    def clear(self) -> None:
        if self._drawn_at is not None:
            self._terminal.write(_TO_LINE_START_AND_CLEAR)
            self._terminal.flush()


@contextmanager
def progress_on(stream: TextIO) -> Iterator[ProgressLine | None]:
    """A progress line that is gone again afterwards; ``None`` where nobody would see it."""
    if not stream.isatty():
        yield None
        return
    line = ProgressLine(stream, os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH)
    try:
        yield line
    finally:
        line.clear()


DEFAULT_TIMEOUT = timedelta(seconds=30)

Connect = Callable[[ClientConfig], AbstractContextManager[Admin]]


def describe(args: Namespace, connect: Connect = Admin) -> int:
    output = args.output or ("table" if sys.stdout.isatty() else "kafka-json")
    config = client_config(args)
    with connect(config) as admin:
        brokers = chosen_brokers(args.broker_list, list(admin.brokers))
        if brokers is None:
            return ExitCode.FAILED
        if output == "kafka-json":
            with writing_to(sys.stdout, utf_8=True) as out:
                out.write(f"{ASKING}\n")
        report = _ask(admin, brokers, config, args)
    if report.skipped_records:
        print(
            f"brimline: warning: unreadable records skipped in __remote_log_metadata ({report.skipped_records:,} "
            f"record{'s' * (report.skipped_records != 1)}); remote sizes may be off by those segments",
            file=sys.stderr,
        )
    for note in report.notes:
        print(f"brimline: {note}", file=sys.stderr)
    return _show(report, output, args.top)


def client_config(args: Namespace) -> ClientConfig:
    """The file, then the single properties, then the options: the later one wins. What is odd is told on stderr."""
    properties = load_properties(args.command_config) if args.command_config else JavaProperties()
    properties = properties.overlaid(JavaProperties(_property(text) for text in args.command_property))
    config = ClientConfig.from_properties(args.bootstrap_server, properties)
    for warning in config.warnings:
        print(f"brimline: warning: {warning}", file=sys.stderr)
    return config if args.timeout is None else replace(config, api_timeout=timedelta(seconds=args.timeout))


def _property(text: str) -> PropertyEntry:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise BadInput(f"--command-property: {key!r} is not key=value")
    return PropertyEntry(key.strip(), value, "--command-property")


def chosen_brokers(asked: tuple[int, ...] | None, live: list[BrokerId]) -> list[BrokerId] | None:
    """The brokers to ask; ``None`` when one of ``asked`` is not there, which is said in the stock tool's words."""
    if asked is None:
        return live
    unknown = [broker for broker in asked if broker not in live]
    if not unknown:
        return [BrokerId(broker) for broker in asked]
    print(
        f"ERROR: The given brokers do not exist from --broker-list: {','.join(map(str, unknown))}. "
        f"Current existent brokers: {','.join(map(str, sorted(live)))}",
        file=sys.stderr,
    )
    return None


def _ask(admin: Admin, brokers: list[BrokerId], config: ClientConfig, args: Namespace) -> LogDirsReport:
    options = DescribeLogDirsOptions(
        include_remote_info=args.include_remote_info,
        timeout=config.api_timeout or DEFAULT_TIMEOUT,
        topics=args.topic_list,
    )
    with progress_on(sys.stderr) as progress:
        answers = admin.describe_log_dirs(brokers, options, progress)
    return LogDirsReport(
        brokers=answers,
        topics=args.topic_list,
        include_remote_info=args.include_remote_info,
        skipped_records=answers.skipped_records,
        notes=answers.notes,
    )


def _show(report: LogDirsReport, output: str, top: int | None) -> int:
    failed = report.failed
    if output != "table":  # the table names them itself
        for answer in failed:
            print(f"brimline: {answer.failure}", file=sys.stderr)
    if output == "kafka-json" and failed:
        return ExitCode.FAILED
    with writing_to(sys.stdout, utf_8=output != "table") as out:
        _render(report, output, top, out)
    if not failed:
        return ExitCode.DONE
    return ExitCode.FAILED if len(failed) == len(report.brokers) else ExitCode.PARTIAL


def _render(report: LogDirsReport, output: str, top: int | None, out: TextIO) -> None:
    if output == "kafka-json":
        write_kafka_json(report, out)
    elif output == "json":
        write_json(report, out)
    elif output == "csv":
        write_csv(report, out)
    else:
        from brimline.cli.log_dirs.table import write_table

        write_table(report, out, top=top)

"""What ``brimline log-dirs`` does: connect, ask, render, and say by the exit code how whole the answer is."""

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import TextIO

from brimline.cli import kafka_json
from brimline.cli.exit_codes import ExitCode
from brimline.cli.output import writing_to
from brimline.cli.progress import progress_on
from brimline.cli.report import LogDirsReport
from brimline.model import BadInput, BrokerId
from brimline.observe.admin import Admin, DescribeLogDirsOptions
from brimline.observe.client_config import ClientConfig
from brimline.observe.java_properties import JavaProperties, PropertyEntry, load_properties

DEFAULT_TIMEOUT = timedelta(seconds=30)

Connect = Callable[[ClientConfig], AbstractContextManager[Admin]]


def describe(args: Namespace, connect: Connect = Admin) -> int:
    output = args.output or ("table" if sys.stdout.isatty() else "kafka-json")
    config = client_config(args)
    for warning in config.warnings:
        print(f"brimline: warning: {warning}", file=sys.stderr)
    with connect(config) as admin:
        brokers = _chosen_brokers(args.broker_list, list(admin.brokers))
        if brokers is None:
            return ExitCode.FAILED
        if output == "kafka-json":
            with writing_to(sys.stdout, utf_8=True) as out:
                out.write(f"{kafka_json.ASKING}\n")
        report = _ask(admin, brokers, config, args)
    if report.skipped_records:
        print(
            f"brimline: warning: skipped what could not be read in __remote_log_metadata ({report.skipped_records:,} "
            f"record{'s' * (report.skipped_records != 1)}); remote sizes may be off by those segments",
            file=sys.stderr,
        )
    for note in report.notes:
        print(f"brimline: {note}", file=sys.stderr)
    return _show(report, output, args.top)


def client_config(args: Namespace) -> ClientConfig:
    """The file, then the single properties, then the options: the later one wins."""
    properties = load_properties(args.command_config) if args.command_config else JavaProperties()
    properties = properties.overlaid(JavaProperties(_property(text) for text in args.command_property))
    config = ClientConfig.from_properties(args.bootstrap_server, properties)
    return config if args.timeout is None else replace(config, api_timeout=timedelta(seconds=args.timeout))


def _property(text: str) -> PropertyEntry:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise BadInput(f"--command-property: {key!r} is not key=value")
    return PropertyEntry(key.strip(), value, "--command-property")


def _chosen_brokers(asked: tuple[int, ...] | None, live: list[BrokerId]) -> list[BrokerId] | None:
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
        kafka_json.write_kafka_json(report, out)
    elif output == "json":
        from brimline.cli.json_document import write_json

        write_json(report, out)
    elif output == "csv":
        from brimline.cli.csv_rows import write_csv

        write_csv(report, out)
    else:
        from brimline.cli.table import write_table

        write_table(report, out, top=top)

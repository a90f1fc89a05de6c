"""What ``brimline topics`` does: ask the cluster, on a broker's host read its files too, and render."""

import os
import sys
from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TextIO

from brimline.cli.log_dirs.describe import DEFAULT_TIMEOUT, chosen_brokers, client_config, progress_on
from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.options import CONFIG_VARIABLE
from brimline.cli.shared.output import writing_to
from brimline.cli.topics.for_programs import write_csv, write_json
from brimline.cli.topics.report import TopicsReport
from brimline.decide.topic_use import Place, summaries
from brimline.model import BadInput, BrokerLogDirs
from brimline.model.topic_use import Head
from brimline.observe.client.config import ClientConfig
from brimline.observe.cluster.admin import Admin, DescribeLogDirsOptions
from brimline.service.clock import SystemClock


def describe(args: Namespace) -> int:
    config, heads = _where(args)
    with Admin(config) as admin:
        brokers = chosen_brokers(args.broker_list, list(admin.brokers))
        if brokers is None:
            return ExitCode.FAILED
        options = DescribeLogDirsOptions(
            include_remote_info=args.include_remote_info,
            timeout=config.api_timeout or DEFAULT_TIMEOUT,
            topics=args.topic_list,
        )
        with progress_on(sys.stderr) as progress:
            answers = admin.describe_log_dirs(brokers, options, progress)
        topics, groups = admin.topic_use(answers, args.topic_list, options.timeout)
    clock = SystemClock()
    now = clock.now()
    found = summaries(topics, heads, int(now.timestamp() * 1000))
    _check_named(args.topic_list or frozenset(), {each.name for each in found}, answers.brokers.values())
    report = TopicsReport(
        observed_at=now,
        brokers=answers.brokers,
        topics=tuple(each for each in found if not args.unread or each.is_unread),
        groups=groups,
        notes=answers.notes,
        include_remote_info=args.include_remote_info,
        only_unread=args.unread,
    )
    return _show(report, args)


def _check_named(named: Collection[str], found: Collection[str], answers: Iterable[BrokerLogDirs]) -> None:
    """Raises ``BadInput`` where none of the named topics is there. Of brokers that are silent nothing is known."""
    missing = sorted(set(named) - set(found))
    if not missing or any(answer.failure is not None for answer in answers):
        return
    sentence = f"no topic {', '.join(missing)} on the brokers that were asked"
    if len(missing) == len(named):
        raise BadInput(sentence)
    print(f"brimline: {sentence}", file=sys.stderr)


def _where(args: Namespace) -> tuple[ClientConfig, Mapping[Place, Head]]:
    """How the cluster is asked, and what the files say where there are any."""
    path = args.config
    if args.bootstrap_server is not None and path == os.environ.get(CONFIG_VARIABLE):
        path = None  # an option wins over the environment
    if (args.bootstrap_server is None) == (path is None):
        raise BadInput("name one of --bootstrap-server (any cluster) and --config (on the broker's host)")
    if path is None:
        return client_config(args), {}
    from brimline.guard.topics import heads_here
    from brimline.settings.config import load_config

    config = load_config(path, os.environ, args.broker_cwd)
    if args.timeout is not None:
        config = replace(config, admin=replace(config.admin, api_timeout=timedelta(seconds=args.timeout)))
    return config.admin, heads_here(config, SystemClock())


def _show(report: TopicsReport, args: Namespace) -> int:
    for note in report.notes:
        print(f"brimline: {note}", file=sys.stderr)
    for answer in report.failed:
        print(f"brimline: {answer.failure}", file=sys.stderr)
    for broker, path in report.offline:
        print(f"brimline: broker {broker} holds {path} offline: its replicas are not counted", file=sys.stderr)
    with writing_to(sys.stdout, utf_8=args.output != "table") as out:
        _render(report, args, out)
    if not report.failed:
        return ExitCode.DONE
    return ExitCode.FAILED if len(report.failed) == len(report.brokers) else ExitCode.PARTIAL


def _render(report: TopicsReport, args: Namespace, out: TextIO) -> None:
    if args.output == "json":
        write_json(report, out)
    elif args.output == "csv":
        write_csv(report, out)
    else:
        from brimline.cli.topics.table import write_table

        write_table(report, out, top=args.top, by_disk=args.by == "disk")

"""``--output csv``: one row per replica, RFC 4180, the header always.

A log dir without a replica to show and a broker that did not answer have a row each too, with the replica's columns
empty: a failed broker must not look like one without data. Unknown is empty, never 0.
"""

import csv
from collections.abc import Iterator
from typing import TextIO

from brimline.cli.report import LogDirsReport, log_dirs_by_path, rows_by_name
from brimline.model import BrokerLogDirs, Reason, ReplicaColumns

COLUMNS = (
    "broker",
    "log_dir",
    "log_dir_error",
    "total_bytes",
    "usable_bytes",
    "topic",
    "partition",
    "size",
    "offset_lag",
    "is_future",
    "remote_size",
    "remote_size_reason",
    "only_local_size",
    "only_local_size_reason",
    "failure",
    "failure_message",
)
_BOOLEANS = ("false", "true")
_REASONS = ["" if reason is Reason.KNOWN else reason.label for reason in Reason]


def write_csv(report: LogDirsReport, out: TextIO) -> None:
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for answer in report.answers:
        writer.writerows(_rows(answer, report))


def _rows(answer: BrokerLogDirs, report: LogDirsReport) -> Iterator[tuple[object, ...]]:
    if answer.failure is not None:
        nothing = (None,) * (len(COLUMNS) - 3)
        yield (answer.broker, *nothing, answer.failure.kind.value, answer.failure.message)
    for log_dir in log_dirs_by_path(answer):
        error = None if log_dir.error is None else log_dir.error.name
        place = (answer.broker, log_dir.path, error, log_dir.total_bytes, log_dir.usable_bytes)
        columns = report.replicas(log_dir)
        if len(columns):
            for replica in _replicas(columns):
                yield _padded(*place, *replica)
        else:
            yield _padded(*place)


def _padded(*values: object) -> tuple[object, ...]:
    return values + (None,) * (len(COLUMNS) - len(values))


def _replicas(columns: ReplicaColumns) -> Iterator[tuple[object, ...]]:
    order = rows_by_name(columns)
    return zip(
        [columns.topic_names[topic] for topic in columns.topic[order].tolist()],
        columns.partition[order].tolist(),
        columns.size[order].tolist(),
        columns.offset_lag[order].tolist(),
        [_BOOLEANS[future] for future in columns.is_future[order].tolist()],
        [None if size < 0 else size for size in columns.remote_size[order].tolist()],
        [_REASONS[reason] for reason in columns.remote_size_reason[order].tolist()],
        [None if size < 0 else size for size in columns.only_local_size[order].tolist()],
        [_REASONS[reason] for reason in columns.only_local_size_reason[order].tolist()],
        strict=True,
    )

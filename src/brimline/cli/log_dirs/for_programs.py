"""``brimline log-dirs`` for programs.

``--output csv``: one row per replica, RFC 4180, the header always. A log dir without a replica to show and a broker
that did not answer have a row each too, with the replica's columns empty: a failed broker must not look like one
without data. Unknown is empty, never 0.

``--output json``: everything that is known, one document::

    {"format": "brimline.log-dirs", "version": 1,
     "topics": null | ["…"],              the --topic-list, which limits "replicas" and nothing else
     "skippedRemoteLogMetadataRecords": 0,
     "brokers": [
       {"broker": 1, "address": "…:9092", "observedAt": "2026-01-31T12:00:00.000Z",
        "failure": null | {"kind": "timed-out", "message": "…"},
        "volumes": [{"totalBytes": 1, "usableBytes": 1, "usedPercent": 12.345, "logDirs": ["…"]}],
        "logDirs": [
          {"logDir": "…", "error": null | "KAFKA_STORAGE_ERROR", "isCordoned": null | false,
           "totalBytes": 1, "usableBytes": 1, "replicaCount": 1, "replicaBytes": 1,
           "replicas": [
             {"topic": "…", "partition": 0, "size": 1, "offsetLag": 0, "isFuture": false,
              "remoteSize": null, "remoteSizeReason": "not-asked",
              "onlyLocalSize": 1, "onlyLocalSizeReason": null}]}]}]}

What is unknown is ``null``; a size of a replica then has its reason beside it. Keys are added, never changed or
removed, while ``version`` stays. A volume with several log dirs is one that they share.

``--output kafka-json``: what kafka-log-dirs.sh prints, byte for byte but for the order of elements.

The stock tool's keys come in the order of a Java HashMap and so do its brokers, log dirs and partitions. The keys are
kept in that order; the elements are sorted, so that two runs can be compared. The two keys of KIP-1187 stand where
its sample has them.

A broker may hold a hundred thousand replicas: the text is made from columns, a string per row and no object.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from typing import TextIO

from brimline.cli.log_dirs.report import LogDirsReport, log_dirs_by_path, rows_by_name
from brimline.model import BrokerId, BrokerLogDirs, LogDirDescription, Reason, ReplicaColumns, Volume, volumes_of
from brimline.model.times import time_text

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
_CSV_REASONS = ["" if reason is Reason.KNOWN else reason.label for reason in Reason]


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
            for replica in _csv_replicas(columns):
                yield _padded(*place, *replica)
        else:
            yield _padded(*place)


def _padded(*values: object) -> tuple[object, ...]:
    return values + (None,) * (len(COLUMNS) - len(values))


def _csv_replicas(columns: ReplicaColumns) -> Iterator[tuple[object, ...]]:
    order = rows_by_name(columns)
    return zip(
        [columns.topic_names[topic] for topic in columns.topic[order].tolist()],
        columns.partition[order].tolist(),
        columns.size[order].tolist(),
        columns.offset_lag[order].tolist(),
        [_BOOLEANS[future] for future in columns.is_future[order].tolist()],
        [None if size < 0 else size for size in columns.remote_size[order].tolist()],
        [_CSV_REASONS[reason] for reason in columns.remote_size_reason[order].tolist()],
        [None if size < 0 else size for size in columns.only_local_size[order].tolist()],
        [_CSV_REASONS[reason] for reason in columns.only_local_size_reason[order].tolist()],
        strict=True,
    )


_JSON_REASONS = ["null" if reason is Reason.KNOWN else f'"{reason.label}"' for reason in Reason]


def write_json(report: LogDirsReport, out: TextIO) -> None:
    """A replica per line, so that the document can be read, compared and searched line by line too."""
    topics = None if report.topics is None else sorted(report.topics)
    head = {"format": "brimline.log-dirs", "version": 1, "topics": topics}
    out.write(_open(head | {"skippedRemoteLogMetadataRecords": report.skipped_records}))
    out.write('"brokers": [')
    for number, answer in enumerate(report.answers):
        out.write(",\n" if number else "\n")
        _write_broker(answer, report, out)
    out.write("]}\n")


def _write_broker(answer: BrokerLogDirs, report: LogDirsReport, out: TextIO) -> None:
    failure = answer.failure
    out.write(
        _open(
            {
                "broker": answer.broker,
                "address": answer.address,
                "observedAt": time_text(answer.observed_at),
                "failure": None if failure is None else {"kind": failure.kind.value, "message": failure.message},
                "volumes": [_volume(volume) for volume in volumes_of(answer.log_dirs.values())],
            }
        )
    )
    out.write('"logDirs": [')
    for position, log_dir in enumerate(log_dirs_by_path(answer)):
        out.write(",\n" if position else "\n")
        out.write(_open(_log_dir(log_dir)))
        replicas = ",\n".join(_json_replicas(report.replicas(log_dir)))
        out.write(f'"replicas": [\n{replicas}]}}' if replicas else '"replicas": []}')
    out.write("]}")


def _open(fields: dict[str, object]) -> str:
    """The fields as an object that is still open: more keys follow."""
    return json.dumps(fields, ensure_ascii=False)[:-1] + ", "


def _volume(volume: Volume) -> dict[str, object]:
    percent = volume.used_percent
    return {
        "totalBytes": volume.total_bytes,
        "usableBytes": volume.usable_bytes,
        "usedPercent": None if percent is None else round(percent, 3),
        "logDirs": [log_dir.path for log_dir in volume.log_dirs],
    }


def _log_dir(log_dir: LogDirDescription) -> dict[str, object]:
    return {
        "logDir": log_dir.path,
        "error": None if log_dir.error is None else log_dir.error.name,
        "isCordoned": log_dir.is_cordoned,
        "totalBytes": log_dir.total_bytes,
        "usableBytes": log_dir.usable_bytes,
        "replicaCount": len(log_dir.replicas),
        "replicaBytes": log_dir.replica_bytes,
    }


def _json_replicas(columns: ReplicaColumns) -> Iterator[str]:
    order = rows_by_name(columns)
    names = [json.dumps(name, ensure_ascii=False) for name in columns.topic_names]
    rows = zip(
        columns.topic[order].tolist(),
        columns.partition[order].tolist(),
        columns.size[order].tolist(),
        columns.offset_lag[order].tolist(),
        columns.is_future[order].tolist(),
        columns.remote_size[order].tolist(),
        columns.remote_size_reason[order].tolist(),
        columns.only_local_size[order].tolist(),
        columns.only_local_size_reason[order].tolist(),
        strict=True,
    )
    for topic, partition, size, lag, future, remote, remote_reason, local, local_reason in rows:
        yield (
            f'{{"topic": {names[topic]}, "partition": {partition}, "size": {size}, "offsetLag": {lag}, '
            f'"isFuture": {_BOOLEANS[future]}, '
            f'"remoteSize": {"null" if remote < 0 else remote}, "remoteSizeReason": {_JSON_REASONS[remote_reason]}, '
            f'"onlyLocalSize": {"null" if local < 0 else local}, "onlyLocalSizeReason": {_JSON_REASONS[local_reason]}}}'
        )


ASKING = "Querying brokers for log directories information"


def received(brokers: Iterable[BrokerId]) -> str:
    return f"Received log directory information from brokers {','.join(str(broker) for broker in sorted(brokers))}"


def write_kafka_json(report: LogDirsReport, out: TextIO) -> None:
    """The second and the third line; the first was written before the brokers were asked."""
    out.write(f"{received(report.brokers)}\n")
    out.write('{"brokers":[')
    for number, answer in enumerate(report.answers):
        out.write(f'{"," if number else ""}{{"broker":{answer.broker},"logDirs":[')
        for position, log_dir in enumerate(log_dirs_by_path(answer)):
            out.write("," if position else "")
            out.write(_kafka_log_dir(log_dir, report))
        out.write("]}")
    out.write('],"version":1}\n')


def _kafka_log_dir(log_dir: LogDirDescription, report: LogDirsReport) -> str:
    partitions = ",".join(_kafka_partitions(report.replicas(log_dir), with_remote=report.include_remote_info))
    error = "null" if log_dir.error is None else f'"{log_dir.error.java_class}"'
    return f'{{"partitions":[{partitions}],"error":{error},"logDir":{json.dumps(log_dir.path, ensure_ascii=False)}}}'


def _kafka_partitions(columns: ReplicaColumns, *, with_remote: bool) -> Iterator[str]:
    order = rows_by_name(columns)
    names = [json.dumps(name, ensure_ascii=False)[:-1] for name in columns.topic_names]
    stock = zip(
        columns.topic[order].tolist(),
        columns.partition[order].tolist(),
        columns.size[order].tolist(),
        columns.offset_lag[order].tolist(),
        columns.is_future[order].tolist(),
        strict=True,
    )
    rows = (
        f'{{"partition":{names[topic]}-{partition}","size":{size},"offsetLag":{lag},"isFuture":{_BOOLEANS[future]}'
        for topic, partition, size, lag, future in stock
    )
    if not with_remote:
        return (f"{row}}}" for row in rows)
    remote = zip(columns.remote_size[order].tolist(), columns.only_local_size[order].tolist(), strict=True)
    return (
        f'{row},"remoteSize":{_or_null(remote_size)},"onlyLocalSize":{_or_null(only_local)}}}'
        for row, (remote_size, only_local) in zip(rows, remote, strict=True)
    )


def _or_null(size: int) -> int | str:
    return "null" if size < 0 else size

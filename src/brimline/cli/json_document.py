"""``--output json``: everything that is known, one document, for programs.

::

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
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

from brimline.cli.report import LogDirsReport, log_dirs_by_path, rows_by_name
from brimline.model import BrokerLogDirs, LogDirDescription, Reason, ReplicaColumns, Volume, volumes_of

_BOOLEANS = ("false", "true")
_REASONS = ["null" if reason is Reason.KNOWN else f'"{reason.label}"' for reason in Reason]


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
                "observedAt": _timestamp(answer.observed_at),
                "failure": None if failure is None else {"kind": failure.kind.value, "message": failure.message},
                "volumes": [_volume(volume) for volume in volumes_of(answer.log_dirs.values())],
            }
        )
    )
    out.write('"logDirs": [')
    for position, log_dir in enumerate(log_dirs_by_path(answer)):
        out.write(",\n" if position else "\n")
        out.write(_open(_log_dir(log_dir)))
        replicas = ",\n".join(_replicas(report.replicas(log_dir)))
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


def _replicas(columns: ReplicaColumns) -> Iterator[str]:
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
            f'"remoteSize": {"null" if remote < 0 else remote}, "remoteSizeReason": {_REASONS[remote_reason]}, '
            f'"onlyLocalSize": {"null" if local < 0 else local}, "onlyLocalSizeReason": {_REASONS[local_reason]}}}'
        )


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

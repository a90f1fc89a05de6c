"""``--output kafka-json``: what kafka-log-dirs.sh prints, byte for byte but for the order of elements.

The stock tool's keys come in the order of a Java HashMap and so do its brokers, log dirs and partitions. The keys are
kept in that order; the elements are sorted, so that two runs can be compared. The two keys of KIP-1187 stand where
its sample has them.

A broker may hold a hundred thousand replicas: the text is made from columns, a string per row and no object.
"""

import json
from collections.abc import Iterable, Iterator
from typing import TextIO

from brimline.cli.log_dirs.report import LogDirsReport, log_dirs_by_path, rows_by_name
from brimline.model import BrokerId, LogDirDescription, ReplicaColumns

ASKING = "Querying brokers for log directories information"
_BOOLEANS = ("false", "true")


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
            out.write(_log_dir(log_dir, report))
        out.write("]}")
    out.write('],"version":1}\n')


def _log_dir(log_dir: LogDirDescription, report: LogDirsReport) -> str:
    partitions = ",".join(_partitions(report.replicas(log_dir), with_remote=report.include_remote_info))
    error = "null" if log_dir.error is None else f'"{log_dir.error.java_class}"'
    return f'{{"partitions":[{partitions}],"error":{error},"logDir":{json.dumps(log_dir.path, ensure_ascii=False)}}}'


def _partitions(columns: ReplicaColumns, *, with_remote: bool) -> Iterator[str]:
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

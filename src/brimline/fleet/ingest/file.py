"""One landed file to the rows of the bronze tables, without Spark: what its tasks call. It is opened and read once.

Segments become no rows: the planner reads them from the landed file. They are read here to see that they can be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.schemas import ARROW, NOT_NEGATIVE
from brimline.landing.file_systems import opened_file
from brimline.landing.header import Header
from brimline.landing.reader import Snapshot
from brimline.landing.schema import LOGS, TOPICS, VOLUMES
from brimline.landing.seal import BadSnapshot, QuarantineReason
from brimline.landing.tables import Columns, tables_from
from brimline.model.secrets import is_uri

_UNKNOWN_BELOW_0 = (c.LOG_START_OFFSET, c.HIGH_WATERMARK, c.LOG_END_OFFSET, c.HIGHEST_REMOTE_OFFSET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a file turned out to be: a whole snapshot, or a reason and as much of a header as there was."""

    path: str
    file_bytes: int
    header: Header | None
    failure: BadSnapshot | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """A file, and the rows that it adds to the tables; none of a file that cannot be used."""

    examined: Examined
    rows: Mapping[Table, pa.RecordBatch]


def take_in(path: str) -> TakenIn:
    """All of a file. Never raises for what a file holds, nor for one that is gone; ``OSError`` for a failing store."""
    header, size = None, 0
    try:
        with _file(path) as file:
            size = file.size()
            with Snapshot(file) as snapshot:
                header = snapshot.header
                rows = _rows(snapshot)
    except BadSnapshot as failure:
        return TakenIn(examined=Examined(path=path, file_bytes=size, header=header, failure=failure), rows={})
    return TakenIn(examined=Examined(path=path, file_bytes=size, header=header, failure=None), rows=rows)


def taken_at(header: Header) -> datetime:
    return datetime.fromtimestamp(header.taken_at_ms // 1000, UTC).replace(microsecond=header.taken_at_ms % 1000 * 1000)


def _rows(snapshot: Snapshot) -> dict[Table, pa.RecordBatch]:
    """Every page is decoded, every row that points to another is followed."""
    volumes, topics, logs = (snapshot.columns(section) for section in (VOLUMES, TOPICS, LOGS))
    try:
        tables_from(snapshot, volumes, topics, logs)
    except ValueError as error:
        raise BadSnapshot(QuarantineReason.INCONSISTENT, " ".join(str(error).split())) from None
    # Each log gets the texts of its log dir and topic: one long name may be that of every log
    named = (volumes["log_dir"], volumes["device"], topics["topic"], topics["topic_id"])
    longest = sum(pc.max(pc.binary_length(each)).as_py() or 0 for each in named)
    snapshot.hold(Table.REPLICAS.value, snapshot.header.sections[LOGS].rows * longest)
    found = {
        Table.VOLUMES: volumes,
        Table.REPLICAS: _replicas(volumes, topics, logs),
        Table.TOPIC_CONFIGS: topics,
    }
    for table, columns in found.items():
        for name in NOT_NEGATIVE.get(table, ()):
            if (pc.min(columns[name]).as_py() or 0) < 0:
                raise BadSnapshot(QuarantineReason.INCONSISTENT, f"{table.value}.{name} is below 0")
    of_snapshot = _snapshot_columns(snapshot.header)
    return {table: _batch(ARROW[table], columns, of_snapshot) for table, columns in found.items()}


def _batch(schema: pa.Schema, found: Columns, of_snapshot: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    rows = len(next(iter(found.values())))
    columns = {name: pa.repeat(value, rows) for name, value in of_snapshot.items()} | dict(found)
    return pa.record_batch([_as(columns[field.name], field.type) for field in schema], schema=schema)


def _snapshot_columns(header: Header) -> Mapping[str, pa.Scalar]:
    moment = taken_at(header)
    return {
        c.CLUSTER_ID: pa.scalar(header.cluster_id),
        c.BROKER_ID: pa.scalar(header.broker_id, pa.int32()),
        c.TAKEN_AT: pa.scalar(moment, pa.timestamp("us", tz="UTC")),
        c.SNAPSHOT_ID: pa.scalar(header.snapshot_id),
        c.SOURCE: pa.scalar(header.source.value),
        c.TAKEN_ON: pa.scalar(moment.date()),
    }


def _replicas(volumes: Columns, topics: Columns, of_logs: Columns) -> Columns:
    logs = dict(of_logs)
    volume, topic = logs.pop("volume"), _known(logs.pop("topic"))
    named = {
        c.LOG_DIR: volumes["log_dir"].take(volume),
        c.DEVICE: volumes["device"].take(volume),
        c.TOPIC: topics["topic"].take(topic),
        c.TOPIC_ID: topics["topic_id"].take(topic),
        c.PARTITION: _known(logs.pop("partition")),
    }
    return logs | named | {name: _known(logs[name]) for name in _UNKNOWN_BELOW_0}


SECTION_TABLES = (Table.VOLUMES, Table.REPLICAS, Table.TOPIC_CONFIGS)


def _known(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Null where the file has less than 0."""
    return pc.if_else(pc.less(column, 0), pa.scalar(None, column.type), column)


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # more than one piece of text may stay in pieces
        whole = pa.concat_arrays(whole.chunks)
    return whole.cast(kind) if whole.type != kind else whole


def _file(path: str) -> pa.NativeFile:
    """Raises ``OSError`` for a store that fails: that is no reason to refuse the file for ever."""
    try:
        return opened_file(path)
    except (OSError, pa.ArrowException, ValueError) as error:
        if is_uri(path) and not isinstance(error, FileNotFoundError):
            raise
        raise BadSnapshot(QuarantineReason.UNREADABLE, " ".join(str(error).split())) from None

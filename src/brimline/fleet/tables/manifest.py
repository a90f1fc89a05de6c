"""The newest snapshot of every broker, and its newest one with segments: one small table, read without a JVM.

The ingest keeps it (``batch``), so that no reader looks through all of history for it. A warehouse of an older brimline
has no such table: then it is worked out from ``snapshots``, by the same rule, until the next batch writes it.

A broker is told by one snapshot at a time: rows of different snapshots of one broker are never mixed in an answer, or a
replica that moved between two of its log dirs would be in both.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.session.errors import FleetError, said_by_store
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.landing_paths import for_delta

Row = Mapping[str, object]
_SNAPSHOT = (c.CLUSTER_ID, c.BROKER_ID, c.TAKEN_AT, c.SNAPSHOT_ID, c.SOURCE)
_PLANNED_FROM = {
    c.TAKEN_AT: c.SEGMENTS_TAKEN_AT,
    c.SNAPSHOT_ID: c.SEGMENTS_SNAPSHOT_ID,
    c.PATH: c.SEGMENTS_PATH,
    c.SEGMENTS_ROWS: c.SEGMENTS_ROWS,
}
"""What ``snapshots`` says of a file, and what it is called here."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def newest(warehouse: str) -> list[Row]:
    """A row for each broker. Raises ``DeltaError``."""
    try:
        return _rows(warehouse, Table.NEWEST, (*_SNAPSHOT, *_PLANNED_FROM.values()))
    except TableNotFoundError:
        return newest_of(warehouse)


def newest_of(warehouse: str) -> list[Row]:
    """The same, from all of ``snapshots``."""
    try:
        return with_snapshots([], _rows(warehouse, Table.SNAPSHOTS, (*_SNAPSHOT, c.PATH, c.SEGMENTS_ROWS)))
    except TableNotFoundError:
        return []


def with_snapshots(before: Iterable[Row], snapshots: Iterable[Row]) -> list[Row]:
    """The rows of before and what these rows of ``snapshots`` change. Of two of one moment the larger id is newer."""
    found = {_broker(row): dict(row) for row in before}
    for snapshot in snapshots:
        row = found.setdefault(_broker(snapshot), dict.fromkeys((*_SNAPSHOT, *_PLANNED_FROM.values())))
        if _is_newer(snapshot, row, c.TAKEN_AT, c.SNAPSHOT_ID):
            row |= {name: snapshot[name] for name in _SNAPSHOT}
        if snapshot[c.SEGMENTS_ROWS] and _is_newer(snapshot, row, c.SEGMENTS_TAKEN_AT, c.SEGMENTS_SNAPSHOT_ID):
            row |= {here: snapshot[there] for there, here in _PLANNED_FROM.items()}
    return [found[key] for key in sorted(found)]


def since(rows: Iterable[Row], first: datetime) -> list[Row]:
    """Without what is older: history before has been removed."""
    nothing = dict.fromkeys(_PLANNED_FROM.values())
    kept = [row for row in rows if _moment(row, c.TAKEN_AT) >= first]
    return [row if _moment(row, c.SEGMENTS_TAKEN_AT) >= first else {**row, **nothing} for row in kept]


def newest_files(warehouse: str) -> Sequence[SnapshotFile]:
    """Raises ``FleetError``."""
    try:
        files = planned_from(newest(warehouse))
    except (DeltaError, OSError) as error:
        why = said_by_store(warehouse, error)
        raise FleetError(f"the table {Table.NEWEST.value} in {warehouse} cannot be read: {why}") from error
    if not files:
        raise FleetError(
            f"no snapshot with segments in {warehouse}: guards write them, 'brimline fleet run' ingests them"
        )
    return files


def planned_from(rows: Iterable[Row]) -> list[SnapshotFile]:
    """What the planner reads."""
    return [
        SnapshotFile(
            path=str(row[c.SEGMENTS_PATH]),
            segments=int(str(row[c.SEGMENTS_ROWS])),
            cluster_id=str(row[c.CLUSTER_ID]),
            broker_id=int(str(row[c.BROKER_ID])),
            snapshot_id=str(row[c.SEGMENTS_SNAPSHOT_ID]),
            taken_at_ms=(_moment(row, c.SEGMENTS_TAKEN_AT) - _EPOCH) // timedelta(milliseconds=1),
        )
        for row in rows
        if row[c.SEGMENTS_PATH] is not None
    ]


def _broker(row: Row) -> tuple[str, int]:
    return str(row[c.CLUSTER_ID]), int(str(row[c.BROKER_ID]))


def _is_newer(snapshot: Row, row: Row, at: str, name: str) -> bool:
    ours, theirs = _moment(row, at), _moment(snapshot, c.TAKEN_AT)
    return (theirs, str(snapshot[c.SNAPSHOT_ID])) > (ours, str(row[name] or ""))


def _moment(row: Row, name: str) -> datetime:
    """Before all others where there is none."""
    found = row[name]
    return found if isinstance(found, datetime) else datetime.min.replace(tzinfo=UTC)


def _rows(warehouse: str, table: Table, columns: Sequence[str]) -> list[Row]:
    found = DeltaTable(f"{for_delta(warehouse)}/{table.value}")
    chosen = ", ".join(f'"{name}"' for name in columns)
    read = QueryBuilder().register("shown", found).execute(f"SELECT {chosen} FROM shown").read_all()
    values = zip(*(read.column(place).to_pylist() for place in range(len(columns))), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]

"""The newest snapshot with segments of every broker, from the warehouse's table and without a JVM."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.session.errors import FleetError
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.landing_paths import is_uri

# The keys are counted through here and not in Python: a busy fleet adds half a million rows a day.
_NEWEST = """
SELECT path, rows, cluster_id, broker_id, snapshot_id, taken_at
FROM (SELECT *, row_number() OVER (PARTITION BY cluster_id, broker_id ORDER BY taken_at DESC, snapshot_id DESC) AS place
      FROM manifest) AS placed
WHERE place = 1 ORDER BY cluster_id, broker_id
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def newest_files(warehouse: str) -> Sequence[SnapshotFile]:
    """Raises ``FleetError``."""
    place = warehouse.rstrip("/") if is_uri(warehouse) else str(Path(warehouse).absolute())
    try:
        manifest = DeltaTable(f"{place}/{Table.SEGMENT_SNAPSHOTS.value}")
        found = QueryBuilder().register("manifest", manifest).execute(_NEWEST).read_all()
    except TableNotFoundError:
        raise FleetError(
            f"no snapshot with segments has been taken in to {warehouse}: guards write them, 'brimline fleet run' "
            f"takes them in"
        ) from None
    except (DeltaError, OSError) as error:
        raise FleetError(f"the table {Table.SEGMENT_SNAPSHOTS.value} cannot be read: {error}") from error
    columns = [found.column(place).to_pylist() for place in range(6)]
    return [
        SnapshotFile(
            path=path,
            segments=rows,
            cluster_id=cluster,
            broker_id=broker,
            snapshot_id=snapshot,
            taken_at_ms=(taken_at - _EPOCH) // timedelta(milliseconds=1),
        )
        for path, rows, cluster, broker, snapshot, taken_at in zip(*columns, strict=True)
    ]

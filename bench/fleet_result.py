"""What the planners of a fleet are compared by, to the byte: the row of every log that loses something, and of every
device what is going and what could be taken.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.fleet_landing import FILES

KEY = ("cluster_id", "broker_id", "topic", "partition")
FIGURES = ("new_start", "segments", "bytes", "oldest", "newest")
OF_DEVICE = ("cluster_id", "broker_id", "going_bytes", "removable_bytes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    trims: pa.Table
    devices: pa.Table

    def digest(self) -> str:
        content = hashlib.sha256()
        # A device without a log has a row in ours alone.
        has_any = pc.or_(*(pc.not_equal(self.devices.column(name), 0) for name in OF_DEVICE[2:]))
        for table, order in ((self.trims, KEY), (self.devices.filter(has_any), OF_DEVICE)):
            in_order = table.sort_by([(name, "ascending") for name in order])
            for column in in_order.columns:
                content.update(repr(column.to_pylist()).encode())
        return f"{len(self.trims)} trims, {content.hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trims:
    """In any order, with the number of each row's file in ``FILES`` as ``file``."""

    rows: pa.Table
    devices: pa.Table

    def named(self, folder: Path) -> Plan:
        """By broker and partition."""
        files = pq.read_table(folder / FILES)
        return Plan(
            trims=pa.table(
                {
                    **_of_files(files, self.rows),
                    "topic": self.rows.column("topic").cast(pa.string()),
                    "partition": self.rows.column("partition"),
                    **{name: self.rows.column(name).cast(pa.int64()) for name in FIGURES},
                }
            ),
            devices=pa.table(
                {
                    **_of_files(files, self.devices),
                    **{name: self.devices.column(name).cast(pa.int64()) for name in OF_DEVICE[2:]},
                }
            ),
        )


def _of_files(files: pa.Table, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    brokers = files.take(rows.column("file"))
    return {name: brokers.column(name) for name in ("cluster_id", "broker_id")}


def of_plan_rows(rows: pa.Table) -> Plan:
    """From the rows of ``fleet.planner_rows``; those of devices without a trim say nothing of logs."""
    trims = rows.filter(pc.is_valid(rows.column("topic")))
    ms = pa.timestamp("ms", tz="UTC")
    # A row of each device, whichever: these columns are the same in all of them.
    figures = {name: f"device_{name}" for name in OF_DEVICE[2:]}
    grouped = rows.group_by(["cluster_id", "broker_id", "device"], use_threads=False)
    devices = grouped.aggregate([(column, "max") for column in figures.values()])
    return Plan(
        trims=pa.table(
            {
                **{name: trims.column(name) for name in KEY},
                "new_start": trims.column("new_log_start_offset"),
                "segments": trims.column("taken_segments"),
                "bytes": trims.column("taken_bytes"),
                "oldest": trims.column("oldest_at").cast(ms).cast(pa.int64()),
                "newest": trims.column("newest_at").cast(ms).cast(pa.int64()),
            }
        ),
        devices=pa.table(
            {
                **{name: devices.column(name) for name in OF_DEVICE[:2]},
                **{name: devices.column(f"{column}_max") for name, column in figures.items()},
            }
        ),
    )

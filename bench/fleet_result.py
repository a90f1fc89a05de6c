"""What the planners of a fleet are compared by: the row of every log that loses something, to the byte."""

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.fleet_landing import NAMES
from brimline.model.scan import Int64Column

KEY = ("cluster_id", "broker_id", "topic", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trims:
    """In any order; logs are numbered through the fleet."""

    log: Int64Column
    new_start: Int64Column
    segments: Int64Column
    bytes: Int64Column
    oldest: Int64Column
    newest: Int64Column

    def named(self, folder: Path) -> pa.Table:
        """By broker and partition."""
        names = pq.read_table(folder / NAMES).take(pa.array(np.asarray(self.log, dtype=np.int64)))
        figures = {each.name: np.asarray(getattr(self, each.name), dtype=np.int64) for each in FIGURES}
        return pa.table({**{name: names.column(name) for name in KEY}, **figures})


FIGURES = tuple(field for field in fields(Trims) if field.name != "log")


def of_plan_rows(rows: pa.Table) -> pa.Table:
    """From the rows of ``fleet.planner_rows``; those of devices without a trim say nothing of logs."""
    trims = rows.filter(pc.is_valid(rows.column("topic")))
    ms = pa.timestamp("ms", tz="UTC")
    return pa.table(
        {
            **{name: trims.column(name) for name in KEY},
            "new_start": trims.column("new_log_start_offset"),
            "segments": trims.column("taken_segments"),
            "bytes": trims.column("taken_bytes"),
            "oldest": trims.column("oldest_at").cast(ms).cast(pa.int64()),
            "newest": trims.column("newest_at").cast(ms).cast(pa.int64()),
        }
    )


def digest(trims: pa.Table) -> str:
    in_order = trims.sort_by([(name, "ascending") for name in KEY])
    content = hashlib.sha256()
    for column in in_order.columns:
        values = column.to_pylist()
        content.update(repr(values).encode())
    return f"{len(in_order)} trims, {content.hexdigest()}"

"""Landed snapshots of made-up fleets, and the list of their files.

The list is all that DuckDB and Polars get beside the files: when each was taken and whose it is stands in the file's
metadata, which neither SQL nor an expression reaches.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.synth.spec import FleetSpec
from brimline.fleet.synth.synth import synthesise
from brimline.landing.reader import Snapshot
from brimline.landing.schema import SEGMENTS

UNTIL_MS = 1_760_000_400_000
CEILING_PERCENT = 60
LANDING, FILES = "landing", "files.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A fleet, by what it holds."""

    brokers: int
    clusters: int
    replicas: int
    """Of each broker."""

    @property
    def spec(self) -> FleetSpec:
        return FleetSpec(
            until_ms=UNTIL_MS,
            seed=7,
            clusters=self.clusters,
            brokers=self.brokers,
            replicas=self.replicas,
            days=0,
            ceiling_percent=CEILING_PERCENT,
        )


def make(folder: Path, size: Size) -> int:
    """Returns how many segments there are."""
    return synthesise(size.spec, str(folder / LANDING), lambda _: None).segments


def files_in(folder: Path) -> list[SnapshotFile]:
    """As the manifest of a warehouse names them."""
    paths = sorted((folder / LANDING).rglob("*.parquet"))
    return [_file(path) for path in paths]


def _file(path: Path) -> SnapshotFile:
    with Snapshot(path) as snapshot:
        header = snapshot.header
    return SnapshotFile(
        path=str(path),
        segments=header.sections[SEGMENTS].rows,
        cluster_id=header.cluster_id,
        broker_id=header.broker_id,
        snapshot_id=header.snapshot_id,
        taken_at_ms=header.taken_at_ms,
    )


def write_file_list(folder: Path) -> None:
    """For DuckDB and Polars: the files, numbered by their row."""
    files = files_in(folder)
    columns = {
        "file": list(range(len(files))),
        "path": [file.path for file in files],
        "cluster_id": [file.cluster_id for file in files],
        "broker_id": [file.broker_id for file in files],
        "taken_at_ms": [file.taken_at_ms for file in files],
    }
    pq.write_table(pa.table(columns), folder / FILES)

"""Upkeep of a warehouse: history thinned by age, small files made large, what no reader can need any more removed.

**What goes, and in which order.** Of days older than ``raw_days`` the last snapshot of each hour stays, of every broker
and source; days older than ``hourly_days`` go whole. From the table of accepted snapshots they go last: a run that was
interrupted is simply done again. Then landed files go that are older than ``landing_days``: only files that were taken
in, and never the newest one of a broker that has segments, which is what the planner reads. Quarantined files stay:
they are somebody's to look at. Files of table versions that nobody can still be reading go after a week, Delta's own
safe limit.

It first says what it would do; whether it does it is the caller's word.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.fleet.session.errors import FleetError
from brimline.fleet.session.progress import Progress
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.data_files import COMPRESSION
from brimline.fleet.tables.manifest import newest, planned_from, since
from brimline.fleet.tables.schemas import BRONZE
from brimline.fleet.tables.warehouse import Warehouse
from brimline.landing.file_systems import file_system
from brimline.landing.header import DAY
from brimline.model.secrets import is_uri

VACUUM_HOURS = 168
_HISTORY = (Table.VOLUMES, Table.REPLICAS, Table.TOPIC_CONFIGS)
_OF_BROKER = (c.CLUSTER_ID, c.BROKER_ID)
_WRITTEN = WriterProperties(compression=COMPRESSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long, in days."""

    raw_days: int = 7
    hourly_days: int = 180
    landing_days: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.raw_days <= self.hourly_days:
            raise FleetError("--raw-days must be at least 1, and --hourly-days at least as many")
        if self.landing_days < 1:
            raise FleetError("--landing-days must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What is to go."""

    snapshots: int
    """Whose rows go from the history."""
    rows: int
    landed_files: tuple[str, ...]
    landed_bytes: int
    closed_before: date


def plan_upkeep(spark: SparkSession, warehouse: Warehouse, keep: Keep, now: datetime) -> Upkeep:
    snapshots = warehouse.read(spark, Table.SNAPSHOTS)
    rows = F.col(c.VOLUMES_ROWS) + F.col(c.TOPICS_ROWS) + F.col(c.LOGS_ROWS)
    gone = superfluous(snapshots, keep, now).agg(F.count("*"), F.sum(rows)).collect()[0]
    planned = [each.path for each in planned_from(newest(warehouse.place))]
    old = no_longer_needed(snapshots, planned, keep, now).select(c.PATH, c.FILE_BYTES).collect()
    landed = still_landed((row[c.PATH], row[c.FILE_BYTES]) for row in old)
    return Upkeep(
        snapshots=gone[0],
        rows=gone[1] or 0,
        landed_files=tuple(path for path, _ in landed),
        landed_bytes=sum(size for _, size in landed),
        closed_before=_raw_from(keep, now),
    )


def superfluous(snapshots: DataFrame, keep: Keep, now: datetime) -> DataFrame:
    """Snapshots whose rows are to go."""
    last_of_hour = Window.partitionBy(*_OF_BROKER, c.SOURCE, F.date_trunc("hour", c.TAKEN_AT)).orderBy(
        F.desc(c.TAKEN_AT), F.desc(c.SNAPSHOT_ID)
    )
    is_not_last = F.row_number().over(last_of_hour) > 1
    is_too_old = F.col(c.TAKEN_ON) < F.lit(_hourly_from(keep, now))
    return (
        snapshots.where(F.col(c.TAKEN_ON) < F.lit(_raw_from(keep, now)))
        .withColumn("is_not_last", is_not_last)
        .where(F.col("is_not_last") | is_too_old)
        .drop("is_not_last")
    )


def no_longer_needed(snapshots: DataFrame, planned: Sequence[str], keep: Keep, now: datetime) -> DataFrame:
    """Accepted files that are old enough, without those that the planner reads."""
    before = now - timedelta(days=keep.landing_days)
    old = snapshots.where((F.col(c.TAKEN_AT) < F.lit(before)) & (F.col(c.INGESTED_AT) < F.lit(before)))
    return old.where(~F.col(c.PATH).isin(list(planned)))


def carry_out(
    spark: SparkSession, warehouse: Warehouse, upkeep: Upkeep, keep: Keep, progress: Progress, now: datetime
) -> None:
    if upkeep.snapshots:
        with progress.step("thin out history") as step:
            step.rows = _thin(spark, warehouse, keep, now)
    with progress.step("remove landed files") as step:
        step.note = f"{_remove(upkeep.landed_files)} files"
    for table, found in _present(warehouse, Table):
        if table in BRONZE:  # the others are made anew by the next run
            with progress.step(f"compact {table.value}") as step:
                step.note = _compact(found)
        found.vacuum(VACUUM_HOURS, dry_run=False, full=True)


def _thin(spark: SparkSession, warehouse: Warehouse, keep: Keep, now: datetime) -> int:
    """The day that history is closed before is written first: nothing that lands meanwhile can be thinned by half."""
    warehouse.write([{c.CLOSED_BEFORE: _raw_from(keep, now), c.THINNED_AT: now}], Table.THINNED, "append")
    whole_days = datetime.combine(_hourly_from(keep, now), time(), UTC)
    warehouse.write(since(newest(warehouse.place), whole_days), Table.NEWEST, "overwrite")
    gone = superfluous(warehouse.read(spark, Table.SNAPSHOTS), keep, now).select(c.TAKEN_ON, c.SNAPSHOT_ID).toArrow()
    rows = [_delete(found, gone) for _, found in _present(warehouse, (*_HISTORY, Table.SNAPSHOTS))]
    return sum(rows[:-1])


def _delete(table: DeltaTable, gone: pa.Table) -> int:
    """Day by day, because a day is a folder of its own: no other day's files are read."""
    rows = 0
    for day in sorted(set(gone.column(c.TAKEN_ON).to_pylist())):
        of_day = gone.filter(pc.equal(gone.column(c.TAKEN_ON), pa.scalar(day)))
        same = f"kept.{c.TAKEN_ON} = DATE '{day.isoformat()}' AND kept.{c.SNAPSHOT_ID} = gone.{c.SNAPSHOT_ID}"
        merge = table.merge(of_day, same, source_alias="gone", target_alias="kept", writer_properties=_WRITTEN)
        done = merge.when_matched_delete().execute()
        rows += int(done["num_target_rows_deleted"])
    return rows


def _compact(table: DeltaTable) -> str:
    done = table.optimize.compact(writer_properties=_WRITTEN)
    return f"{done['numFilesRemoved']} files into {done['numFilesAdded']}"


def _present(warehouse: Warehouse, tables: Iterable[Table]) -> Iterator[tuple[Table, DeltaTable]]:
    opened = ((table, warehouse.opened(table)) for table in tables)
    return ((table, found) for table, found in opened if found is not None)


def still_landed(files: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Of files and their sizes those that are there: history remembers files that went long ago.

    Not each is asked for: the folder of each broker is listed once, with the folders of its days.
    """
    brokers: dict[str, list[tuple[str, str, int]]] = {}
    for path, size in files:
        folder, name = _in_folder_of_broker(path)
        brokers.setdefault(folder, []).append((name, path, size))
    found = []
    for folder, held in brokers.items():
        system, root = file_system(folder)
        listed = system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True))
        there = {each.path.removeprefix(root).lstrip("/") for each in listed if each.is_file}
        found += [(path, size) for name, path, size in held if name in there]
    return found


def _in_folder_of_broker(file: str) -> tuple[str, str]:
    """The folder above that of the day, and the name below it; for files that lie elsewhere, their own folder."""
    place, mark, options = file.partition("?") if is_uri(file) else (file, "", "")
    folder, _, name = place.rpartition("/")
    above, _, day = folder.rpartition("/")
    if DAY.fullmatch(day):
        folder, name = above, f"{day}/{name}"
    return f"{folder}{mark}{options}", unquote(name) if is_uri(file) else name


def _remove(paths: Sequence[str]) -> int:
    for place in paths:
        system, path = file_system(place)
        try:
            system.delete_file(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise FleetError(f"the landed file {place} cannot be removed: {error}") from error
    return len(paths)


def _raw_from(keep: Keep, now: datetime) -> date:
    return (now.astimezone(UTC) - timedelta(days=keep.raw_days)).date()


def _hourly_from(keep: Keep, now: datetime) -> date:
    return (now.astimezone(UTC) - timedelta(days=keep.hourly_days)).date()

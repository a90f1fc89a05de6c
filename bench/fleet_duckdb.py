"""The fleet's plan in SQL, for DuckDB. Timed is everything from the landed files to the rows of the plan; all that is
there before is the list of the files.

Each rule is a bound in the row of its log. The
oldest segments of a device are found as one would write it, by a window along each device; or, with ``is_coarse``, as
our kernel does it, by sums over coarse ages, after which only those of the age at which enough is found are sorted.
(Windows over all rows in the order of the files would spare the sort along each log, but DuckDB does not keep
that order through a join.)

Left out, because no made-up fleet has it: protected topics that differ between devices or are several expressions, and
topics that are not landed in the order of their names.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.fleet_landing import FILES
from bench.fleet_result import Trims
from brimline.decide.reclaim.rules import INTERNAL_TOPICS, REMOTE_LOG_METADATA
from brimline.model.reclaim import AN_HOUR_MS, CEILING_OFF, USE_RETENTION, Views
from brimline.model.scan import FolderKind

BUCKET_BITS = 22
"""A coarse age is 70 minutes."""
NEVER = -1
ALWAYS = (1 << 63) - 1
SO_FAR = "rows between unbounded preceding and current row"
NEVER_TRIMMED = ", ".join(f"'{name}'" for name in sorted({*INTERNAL_TOPICS, REMOTE_LOG_METADATA}))

VOLUMES = f"""
create or replace temp table volumes as
select file, file_row_number as volume,
    min(file_row_number) over (partition by file, volumes_device,
        case when volumes_failure is null then '' else volumes_log_dir end) as device,
    case when volumes_ceiling_percent < {CEILING_OFF} then greatest(volumes_total_bytes - volumes_usable_bytes, 0)
        - volumes_total_bytes * volumes_ceiling_percent // 100 else 0 end as over_bytes,
    coalesce(volumes_observed_at_ms, taken_at_ms) as now_ms,
    now_ms + coalesce(volumes_future_tolerance_ms, {AN_HOUR_MS}) as believed_until_ms,
    case when volumes_min_retention_ms > 0 then now_ms - volumes_min_retention_ms else {ALWAYS} end as old_until_ms,
    greatest(coalesce(volumes_min_retention_bytes, 0), 0) as min_retention_bytes,
    coalesce(volumes_max_bytes_per_cycle, {ALWAYS}) as max_bytes,
    coalesce(volumes_protected_topics, '') as protected
from read_parquet($landing) join files on file = file_index
where section = 'volumes'
"""

LOGS = f"""
create or replace temp table logs as
with log_dirs as (
    select log_dir.volume, device.* exclude (volume)
    from volumes as log_dir join volumes as device on log_dir.file = device.file and log_dir.device = device.volume
), topics as (
    select file_index as file, file_row_number as place, topics_topic as name,
        topics_is_known and topics_is_tiered as is_tiered,
        is_tiered and not topics_is_copy_disabled as is_copying,
        topics_is_known and topics_deletes and not topics_is_tiered and not topics_is_internal
            and name not in ({NEVER_TRIMMED}) and not regexp_full_match(name, $protected) as may_be_trimmed,
        topics_is_known and (topics_deletes or (is_copying and not topics_compacts)) as is_limited,
        case when not is_limited then -1
            when is_copying and topics_local_retention_ms <> {USE_RETENTION} then topics_local_retention_ms
            else topics_retention_ms end as retention_ms,
        case when not is_limited then -1
            when is_copying and topics_local_retention_bytes <> {USE_RETENTION} then topics_local_retention_bytes
            else topics_retention_bytes end as retention_bytes
    from read_parquet($landing)
    where section = 'topics'
), firsts as (
    -- Logs come after topics. A file without topics has nothing to take.
    select file, min(place) as first_topic, max(place) + 1 as first_log from topics group by file
)
select file_index as file, file_row_number - first_log as row, name as topic, logs_topic as topic_row,
    logs_partition as partition, (file_index::bigint << 32) | row as log,
    (file_index::bigint << 32) | device as device, over_bytes, max_bytes, now_ms, believed_until_ms, old_until_ms,
    case when logs_kind in ({FolderKind.CURRENT:d}, {FolderKind.FUTURE:d}, {FolderKind.METADATA_LOG:d})
        then logs_deleted_bytes
        when logs_kind = {FolderKind.DELETE:d} then logs_deleted_bytes + logs_foreign_bytes + logs_other_bytes
        else 0 end as leaving_bytes,
    logs_kind = {FolderKind.DELETE:d} as is_leaving,
    logs_kind = {FolderKind.CURRENT:d} and not logs_is_moving as is_visited,
    case when is_visited then logs_log_start_offset else {NEVER} end as start_until,
    case when not is_visited then {NEVER}
        when is_copying then least(logs_highest_remote_offset + 1, logs_high_watermark)
        else logs_high_watermark end as reach,
    case when logs_log_end_offset >= 0 and not coalesce(is_tiered, false) then logs_log_end_offset
        else {ALWAYS} end as active_end,
    case when retention_ms >= 0 then now_ms - retention_ms else {NEVER} end as expired_until_ms,
    case when retention_bytes >= 0 then retention_bytes else {ALWAYS} end as retention_bytes,
    min_retention_bytes,
    case when is_visited and may_be_trimmed and logs_views = {Views.AGREE:d} and logs_log_start_offset >= 0
        then logs_high_watermark else {NEVER} end as take_until
from read_parquet($landing) join firsts on firsts.file = file_index
    join log_dirs on log_dirs.file = file_index and volume = logs_volume
    left join topics on topics.file = file_index and place = first_topic + logs_topic and logs_topic >= 0
where section = 'logs'
"""

SEGMENTS = f"""
create or replace temp table leaving as
with dated as (
    select log, device, is_leaving, start_until, reach, active_end, expired_until_ms, retention_bytes,
        min_retention_bytes, take_until, old_until_ms, segments_base_offset as base_offset,
        segments_log_bytes as log_bytes, segments_allocated_bytes as allocated_bytes,
        case when segments_newest_timestamp_ms between 0 and believed_until_ms then segments_newest_timestamp_ms
            else greatest(0, least(now_ms, segments_modified_ns // 1000000)) end as own_age,
        case when segments_newest_timestamp_ms >= 0 then segments_newest_timestamp_ms
            else segments_modified_ns // 1000000 end as broker_ms
    from read_parquet($landing) join logs on file = file_index and row = segments_log
    where section = 'segments'
), along as (
    select *, lead(base_offset) over head as next_offset, max(own_age) over head as age,
        sum(log_bytes) over (head rows between unbounded preceding and unbounded following)
            - sum(log_bytes) over (head {SO_FAR}) as rest
    from dated
    window head as (partition by log order by base_offset)
), trimmed as materialized (
    select *,
        case when next_offset is null then log_bytes > 0 and greatest(active_end, base_offset) <= reach
            else next_offset <= reach end as is_within,
        coalesce(next_offset <= start_until, false) or (is_within and rest >= retention_bytes) as is_trimmed
    from along
), staying as (
    select log, min(base_offset) as first_staying
    from trimmed
    where not is_trimmed and not (is_within and broker_ms < expired_until_ms)
    group by log
)
select device, log, age, base_offset, next_offset, allocated_bytes,
    is_leaving or first_staying is null or base_offset < first_staying as is_going
from trimmed left join staying using (log)
where is_going or (next_offset <= take_until and age <= old_until_ms and rest >= min_retention_bytes)
"""

EXCESSES = """
create or replace temp table excesses as
with sums as (
    select device, sum(allocated_bytes) filter (where is_going) as going_bytes,
        sum(allocated_bytes) filter (where not is_going) as removable_bytes
    from leaving
    group by device
)
select device, any_value(file) as file, any_value(max_bytes) as max_bytes,
    sum(leaving_bytes) + coalesce(any_value(sums.going_bytes), 0) as going_bytes,
    coalesce(any_value(sums.removable_bytes), 0) as removable_bytes,
    any_value(over_bytes) - sum(leaving_bytes) - coalesce(any_value(sums.going_bytes), 0) as excess
from logs left join sums using (device)
group by device
"""

OLDEST = f"""
create or replace temp table taken as
with ordered as (
    -- The file's topics are in the order of their names.
    select log, age, next_offset, allocated_bytes, excess, excesses.max_bytes, sum(allocated_bytes) over (
        partition by leaving.device order by age, topic_row, partition, log, base_offset {SO_FAR}) as together
    from leaving join excesses using (device) join logs using (log)
    where not is_going
)
select log, age, next_offset, allocated_bytes
from ordered
where together - allocated_bytes < excess and together <= max_bytes
"""

OLDEST_BY_COARSE_AGE = f"""
create or replace temp table taken as
with buckets as (
    select device, age >> {BUCKET_BITS} as bucket, sum(allocated_bytes) as bytes
    from leaving
    where not is_going
    group by all
), summed as (
    select *, sum(bytes) over (partition by device order by bucket) - bytes as before from buckets
), cuts as materialized (
    select device, max(bucket) as cut, max(before) as before, any_value(excess) as excess,
        any_value(max_bytes) as max_bytes
    from summed join excesses using (device)
    where before < excess and before <= max_bytes
    group by device
), around as (
    -- The file's topics are in the order of their names.
    select log, age, next_offset, allocated_bytes, excess, cuts.max_bytes, before + sum(allocated_bytes) over (
        partition by leaving.device order by age, topic_row, partition, log, base_offset {SO_FAR}) as together
    from leaving join cuts using (device) join logs using (log)
    where not is_going and age >> {BUCKET_BITS} = cut
)
select log, age, next_offset, allocated_bytes
from around
where together - allocated_bytes < excess and together <= max_bytes
union all
select log, age, next_offset, allocated_bytes
from leaving join cuts using (device)
where not is_going and age >> {BUCKET_BITS} < cut
"""

TRIMS = """
with trims as (
    select log, max(next_offset) as new_start, count(*) as segments, sum(allocated_bytes)::bigint as bytes,
        min(age) as oldest, max(age) as newest
    from taken
    group by log
)
select file, topic, partition, new_start, segments, bytes, oldest, newest
from trims join logs using (log)
"""


class DuckPlanner:
    def __init__(self, folder: Path, *, is_coarse: bool = False) -> None:
        self._take = OLDEST_BY_COARSE_AGE if is_coarse else OLDEST
        files = pq.read_table(folder / FILES)
        self._landing = files.column("path").to_pylist()
        self._connection = duckdb.connect()
        # Otherwise each of the scans of a plan would read every footer again.
        self._connection.execute("set parquet_metadata_cache = true")
        self._connection.register("loaded", files)
        self._connection.execute("create table files as select file::ubigint as file, taken_at_ms from loaded")
        self._connection.unregister("loaded")

    def plan(self) -> Trims:
        for statement, parameters in self._steps():
            self._connection.execute(statement, parameters)
        rows: pa.Table = self._connection.sql(TRIMS).to_arrow_table()
        devices: pa.Table = self._connection.sql("from excesses").to_arrow_table()
        return Trims(rows=rows, devices=devices)

    def profile(self) -> str:
        self.plan()
        steps = [*self._steps(), (TRIMS, {})]
        self._connection.execute("set enable_profiling = 'query_tree'")
        told = [self._connection.execute(f"explain analyze {sql}", given).fetchall() for sql, given in steps]
        return "\n".join(str(row[-1]) for rows in told for row in rows)

    def _steps(self) -> Iterator[tuple[str, dict[str, object]]]:
        """An expression that is a constant is compiled once, one from a column for every row: so it is read first."""
        landing: dict[str, object] = {"landing": self._landing}
        yield VOLUMES, landing
        ((protected,),) = self._connection.execute("select distinct protected from volumes").fetchall()
        yield LOGS, {**landing, "protected": protected}
        yield SEGMENTS, landing
        yield EXCESSES, {}
        yield self._take, {}

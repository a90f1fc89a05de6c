"""The fleet's plan in SQL, for DuckDB, from the landed files: window functions along each log and along each device."""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from bench.fleet_landing import DEVICES, FILES, LANDING, LOGS
from bench.fleet_result import Trims
from brimline.model.reclaim import AN_HOUR_MS

PLAN = f"""
with dated as (
    select first_log + segments_log as log, now_ms, segments_base_offset as base_offset,
        segments_log_bytes as log_bytes, segments_allocated_bytes as allocated_bytes,
        case when segments_newest_timestamp_ms between 0 and now_ms + {AN_HOUR_MS} then segments_newest_timestamp_ms
            else greatest(0, least(now_ms, segments_modified_ns // 1000000)) end as age,
        case when segments_newest_timestamp_ms >= 0 then segments_newest_timestamp_ms
            else segments_modified_ns // 1000000 end as broker_ms
    from read_parquet($landing, filename = true) join files using (filename)
    where section = 'segments'
), along as (
    select log, now_ms, base_offset, allocated_bytes, broker_ms,
        max(age) over head as age,
        lead(base_offset) over head as next_offset,
        sum(log_bytes) over (partition by log order by base_offset
            rows between 1 following and unbounded following) as rest
    from dated
    window head as (partition by log order by base_offset)
), trimmed as (
    select along.*, device, topic, part, candidate, visited, high_watermark, reach, retention_ms, min_retention_ms,
        visited and (next_offset <= log_start_offset
            or (retention_bytes >= 0 and rest >= retention_bytes and next_offset <= reach)) as is_trimmed
    from along join logs using (log)
    where next_offset is not null
), leaving as (
    select *,
        is_trimmed or (visited and retention_ms >= 0 and next_offset <= reach
            and max(case when is_trimmed then -1 else broker_ms end) over (partition by log order by base_offset)
                < now_ms - retention_ms) as is_going
    from trimmed
), excess as (
    select device, any_value(over_bytes) - coalesce(sum(allocated_bytes) filter (where is_going), 0) as excess
    from leaving join devices using (device)
    group by device
), ordered as (
    select log, next_offset, age, allocated_bytes, excess,
        sum(allocated_bytes) over (partition by device order by age, topic, part, log, base_offset
            rows between unbounded preceding and current row) - allocated_bytes as before
    from leaving join excess using (device)
    where candidate and not is_going and next_offset <= high_watermark and age <= now_ms - min_retention_ms
)
select log, max(next_offset)::bigint as new_start, count(*)::bigint as segments, sum(allocated_bytes)::bigint as bytes,
    min(age)::bigint as oldest, max(age)::bigint as newest
from ordered
where before < excess
group by log
"""


class DuckPlanner:
    def __init__(self, folder: Path) -> None:
        self._landing = str(folder / LANDING / "**" / "*.parquet")
        self._connection = duckdb.connect()
        for name, file in (("logs", LOGS), ("devices", DEVICES), ("files", FILES)):
            self._connection.register("loaded", pq.read_table(folder / file))
            self._connection.execute(f"create table {name} as select * from loaded")
            self._connection.unregister("loaded")

    def plan(self) -> Trims:
        return Trims(**self._connection.execute(PLAN, {"landing": self._landing}).fetchnumpy())

    def profile(self) -> str:
        self._connection.execute("set enable_profiling = 'query_tree'")
        rows = self._connection.execute(f"explain analyze {PLAN}", {"landing": self._landing}).fetchall()
        return "\n".join(str(row[-1]) for row in rows)

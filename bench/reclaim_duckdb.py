"""The same plan in SQL, for DuckDB: window functions along each log and along each device."""

import duckdb

from bench.reclaim_columns import MIN_RETENTION_BYTES, MIN_RETENTION_MS, NOW_MS, Fleet
from bench.reclaim_result import Result, limits_of_logs
from brimline.model.reclaim import AN_HOUR_MS

PLAN = f"""
with dated as (
    select log, base_offset, log_bytes, allocated_bytes,
        case when newest_timestamp_ms between 0 and {NOW_MS + AN_HOUR_MS} then newest_timestamp_ms
            else greatest(0, least({NOW_MS}, modified_ns // 1000000)) end as age,
        case when newest_timestamp_ms >= 0 then newest_timestamp_ms else modified_ns // 1000000 end as broker_ms
    from segments
), along as (
    select log, base_offset, allocated_bytes, broker_ms,
        max(age) over head as age,
        lead(base_offset) over head as next_offset,
        sum(log_bytes) over (partition by log order by base_offset
            rows between 1 following and unbounded following) as rest
    from dated
    window head as (partition by log order by base_offset)
), trimmed as (
    select along.*, device, topic, part, candidate, high_watermark, retention_ms,
        next_offset <= log_start_offset
            or (retention_bytes >= 0 and rest >= retention_bytes and next_offset <= high_watermark) as is_trimmed
    from along join logs using (log)
    where next_offset is not null
), leaving as (
    select *,
        is_trimmed or (retention_ms >= 0 and next_offset <= high_watermark
            and max(case when is_trimmed then -1 else broker_ms end) over (partition by log order by base_offset)
                < {NOW_MS} - retention_ms) as is_going
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
    where candidate and not is_going and next_offset <= high_watermark
        and age <= {NOW_MS - MIN_RETENTION_MS} and rest >= {MIN_RETENTION_BYTES}
)
select log, max(next_offset)::bigint as new_start, count(*)::bigint as segments, sum(allocated_bytes)::bigint as bytes,
    min(age)::bigint as oldest, max(age)::bigint as newest
from ordered
where before < excess
group by log
order by log
"""


class DuckPlanner:
    """Reads the columns where they are."""

    def __init__(self, fleet: Fleet) -> None:
        self._connection = duckdb.connect()
        limits = limits_of_logs(fleet)
        self._connection.register("segments", {"log": fleet.log_of_segment, **fleet.segments})
        self._connection.register("logs", limits)
        over = fleet.over_bytes
        self._connection.register("devices", {"device": fleet.device_numbers, "over_bytes": over})

    def plan(self) -> Result:
        found = self._connection.execute(PLAN).fetchnumpy()
        return Result(**found)

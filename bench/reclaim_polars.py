"""The same plan for Polars. The rows stand log by log, so sums and maxima over whole columns do what windows along each
log would do more slowly.
"""

import polars as pl

from bench.reclaim_columns import MIN_RETENTION_BYTES, MIN_RETENTION_MS, NOW_MS, Fleet
from bench.reclaim_result import Result, limits_of_logs
from brimline.model.reclaim import AN_HOUR_MS

AGE_SPAN = 2**43


class PolarsPlanner:
    """Takes the columns over without a copy."""

    def __init__(self, fleet: Fleet) -> None:
        self._segments = pl.DataFrame({"log": fleet.log_of_segment, **fleet.segments}).lazy()
        self._logs = pl.DataFrame(limits_of_logs(fleet)).lazy()
        self._devices = pl.DataFrame({"device": fleet.device_numbers, "over_bytes": fleet.over_bytes}).lazy()

    def plan(self) -> Result:
        leaving = self._leaving()
        going = leaving.filter("is_going").group_by("device").agg(pl.col("allocated_bytes").sum().alias("going"))
        excess = self._devices.join(going, on="device", how="left").select(
            "device", excess=pl.col("over_bytes") - pl.col("going").fill_null(0)
        )
        taken = (
            leaving.filter(
                "candidate",
                ~pl.col("is_going"),
                pl.col("next_offset") <= pl.col("high_watermark"),
                pl.col("age") <= NOW_MS - MIN_RETENTION_MS,
                pl.col("rest") >= MIN_RETENTION_BYTES,
            )
            .select("device", "age", "topic", "part", "log", "base_offset", "next_offset", "allocated_bytes")
            .sort("device", "age", "topic", "part", "log", "base_offset")
            .with_columns(before=pl.col("allocated_bytes").cum_sum().over("device") - pl.col("allocated_bytes"))
            .join(excess, on="device")
            .filter(pl.col("before") < pl.col("excess"))
        )
        found = taken.group_by("log").agg(
            new_start=pl.col("next_offset").max(),
            segments=pl.len().cast(pl.Int64),
            bytes=pl.col("allocated_bytes").sum(),
            oldest=pl.col("age").min(),
            newest=pl.col("age").max(),
        )
        rows = found.sort("log").collect()
        return Result(**{name: rows[name].to_numpy() for name in rows.columns})

    def _leaving(self) -> pl.LazyFrame:
        newest, written = pl.col("newest_timestamp_ms"), pl.col("modified_ns") // 1_000_000
        is_last = pl.col("log") != pl.col("log").shift(-1)
        together = pl.col("log_bytes").cum_sum()
        along = self._segments.with_columns(
            age=pl.when(newest.is_between(0, NOW_MS + AN_HOUR_MS)).then(newest).otherwise(written.clip(0, NOW_MS)),
            broker_ms=pl.when(newest >= 0).then(newest).otherwise(written),
            next_offset=pl.when(~is_last).then(pl.col("base_offset").shift(-1)),
            together=together,
        ).select(
            "log",
            "base_offset",
            "next_offset",
            "allocated_bytes",
            "broker_ms",
            age=(pl.col("log") * AGE_SPAN + pl.col("age")).cum_max() % AGE_SPAN,
            rest=pl.col("together").last().over("log") - pl.col("together"),
        )
        below = pl.col("next_offset") <= pl.col("high_watermark")
        is_trimmed = (pl.col("next_offset") <= pl.col("log_start_offset")) | (
            (pl.col("retention_bytes") >= 0) & (pl.col("rest") >= pl.col("retention_bytes")) & below
        )
        left_ms = pl.when("is_trimmed").then(0).otherwise("broker_ms").clip(0, AGE_SPAN - 1)
        newest_left = (pl.col("log") * AGE_SPAN + left_ms).cum_max() % AGE_SPAN
        is_old = (pl.col("retention_ms") >= 0) & (newest_left < NOW_MS - pl.col("retention_ms")) & below
        return (
            along.join(self._logs, on="log", maintain_order="left")
            .filter(pl.col("next_offset").is_not_null())
            .with_columns(is_trimmed=is_trimmed)
            .with_columns(is_going=pl.col("is_trimmed") | is_old)
        )

"""The fleet's plan for Polars, from the landed files. The rows stand log by log, so sums and maxima over whole columns
do what windows along each log would do more slowly.
"""

from pathlib import Path

import polars as pl

from bench.fleet_landing import DEVICES, FILES, LOGS
from bench.fleet_result import Trims
from brimline.model.reclaim import AN_HOUR_MS

AGE_SPAN = 2**43
_SEGMENT = "segments_"


class PolarsPlanner:
    def __init__(self, folder: Path) -> None:
        self._files = pl.read_parquet(folder / FILES)
        self._logs = pl.read_parquet(folder / LOGS).lazy()
        self._devices = pl.read_parquet(folder / DEVICES).lazy()

    def plan(self) -> Trims:
        rows = self._trims().collect()
        return Trims(**{name: rows[name].to_numpy() for name in rows.columns})

    def _trims(self) -> pl.LazyFrame:
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
                pl.col("age") <= pl.col("now_ms") - pl.col("min_retention_ms"),
            )
            .select("device", "age", "topic", "part", "log", "base_offset", "next_offset", "allocated_bytes")
            .sort("device", "age", "topic", "part", "log", "base_offset")
            .with_columns(before=pl.col("allocated_bytes").cum_sum().over("device") - pl.col("allocated_bytes"))
            .join(excess, on="device")
            .filter(pl.col("before") < pl.col("excess"))
        )
        return taken.group_by("log").agg(
            new_start=pl.col("next_offset").max(),
            segments=pl.len().cast(pl.Int64),
            bytes=pl.col("allocated_bytes").sum(),
            oldest=pl.col("age").min(),
            newest=pl.col("age").max(),
        )

    def _segments(self) -> pl.LazyFrame:
        names = self._files["filename"].to_list()
        read = pl.scan_parquet(names, include_file_paths="filename").filter(pl.col("section") == "segments")
        columns = [
            pl.col(f"{_SEGMENT}{name}").alias(name)
            for name in ("base_offset", "log_bytes", "allocated_bytes", "newest_timestamp_ms", "modified_ns")
        ]
        return (
            read.select("filename", *columns, log=pl.col(f"{_SEGMENT}log").cast(pl.Int64))
            .join(self._files.lazy(), on="filename", maintain_order="left")
            .with_columns(log=pl.col("log") + pl.col("first_log"))
            .drop("filename", "first_log")
        )

    def _leaving(self) -> pl.LazyFrame:
        newest, written, now = pl.col("newest_timestamp_ms"), pl.col("modified_ns") // 1_000_000, pl.col("now_ms")
        is_last = pl.col("log") != pl.col("log").shift(-1)
        is_believed = (newest >= 0) & (newest <= now + AN_HOUR_MS)
        along = (
            self._segments()
            .with_columns(
                age=pl.when(is_believed).then(newest).otherwise(pl.min_horizontal(written, now).clip(0)),
                broker_ms=pl.when(newest >= 0).then(newest).otherwise(written),
                next_offset=pl.when(~is_last).then(pl.col("base_offset").shift(-1)),
                together=pl.col("log_bytes").cum_sum(),
            )
            .select(
                "log",
                "now_ms",
                "base_offset",
                "next_offset",
                "allocated_bytes",
                "broker_ms",
                age=(pl.col("log") * AGE_SPAN + pl.col("age")).cum_max() % AGE_SPAN,
                rest=pl.col("together").last().over("log") - pl.col("together"),
            )
        )
        within = pl.col("next_offset") <= pl.col("reach")
        by_size = (pl.col("retention_bytes") >= 0) & (pl.col("rest") >= pl.col("retention_bytes")) & within
        is_trimmed = pl.col("visited") & ((pl.col("next_offset") <= pl.col("log_start_offset")) | by_size)
        left_ms = pl.when("is_trimmed").then(0).otherwise("broker_ms").clip(0, AGE_SPAN - 1)
        newest_left = (pl.col("log") * AGE_SPAN + left_ms).cum_max() % AGE_SPAN
        is_old = (pl.col("retention_ms") >= 0) & (newest_left < pl.col("now_ms") - pl.col("retention_ms")) & within
        return (
            along.join(self._logs, on="log", maintain_order="left")
            .filter(pl.col("next_offset").is_not_null())
            .with_columns(is_trimmed=is_trimmed)
            .with_columns(is_going=pl.col("is_trimmed") | (pl.col("visited") & is_old))
        )

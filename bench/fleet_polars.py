"""The fleet's plan for Polars. Timed is everything from the landed files to the rows of the plan; all that is there
before is the list of the files.

Sections are read in the order of the files, and
segments stand log by log, so sums and maxima over whole columns do what windows along each log would do more slowly,
and what is known of a log is repeated for its segments without a join. Each rule is a bound in the row of its log. The
oldest segments of a device are found as one would write it, by a sort and a running sum; or, with ``is_coarse``, as our
kernel does it, by sums over coarse ages, after which only those of the age at which enough is found are sorted.

Left out, because no made-up fleet has it: protected topics that differ between devices or are several expressions, and
topics that are not landed in the order of their names.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bench.fleet_landing import FILES
from bench.fleet_result import Trims
from brimline.decide.reclaim.rules import INTERNAL_TOPICS, REMOTE_LOG_METADATA
from brimline.landing.schema import LOGS, SECTION_COLUMN, SEGMENTS, TOPICS, VOLUMES, column_in_file
from brimline.model.reclaim import AN_HOUR_MS, CEILING_OFF, USE_RETENTION, Views
from brimline.model.scan import FolderKind

AGE_SPAN, LOG_SPAN = 2**41, 2**22
"""Of a key: milliseconds until the year 2039, and four million logs."""
BUCKET_MS = 2**22
"""A coarse age is 70 minutes."""
NEVER = -1
ALWAYS = (1 << 63) - 1
NEVER_TRIMMED = sorted({*INTERNAL_TOPICS, REMOTE_LOG_METADATA})
EMPTIED_BY_BROKER = [int(kind) for kind in (FolderKind.CURRENT, FolderKind.FUTURE, FolderKind.METADATA_LOG)]

OF_VOLUMES = (
    *("log_dir", "device", "failure", "total_bytes", "usable_bytes", "ceiling_percent", "observed_at_ms"),
    *("future_tolerance_ms", "min_retention_ms", "min_retention_bytes", "max_bytes_per_cycle", "protected_topics"),
)
OF_TOPICS = (
    *("topic", "is_known", "deletes", "compacts", "is_tiered", "is_copy_disabled", "is_internal"),
    *("retention_ms", "retention_bytes", "local_retention_ms", "local_retention_bytes"),
)
OF_LOGS = (
    *("volume", "topic", "partition", "kind", "is_moving", "views", "segments", "log_start_offset", "high_watermark"),
    *("log_end_offset", "highest_remote_offset", "deleted_bytes", "foreign_bytes", "other_bytes"),
)
OF_SEGMENTS = ("base_offset", "log_bytes", "allocated_bytes", "newest_timestamp_ms", "modified_ns")
BOUNDS = (
    *("device", "rank", "now_ms", "believed_until_ms", "old_until_ms", "is_leaving", "start_until", "reach"),
    *("active_end", "expired_until_ms", "take_until"),
)


class PolarsPlanner:
    def __init__(self, folder: Path, *, is_coarse: bool = False) -> None:
        self._take = _oldest_by_coarse_age if is_coarse else _oldest
        self._files = pl.read_parquet(folder / FILES).select("file", "path", "taken_at_ms")

    def plan(self) -> Trims:
        volumes = _with_file(VOLUMES, OF_VOLUMES, self._files).collect()
        (protected,) = volumes["protected_topics"].fill_null("").unique()
        devices = _devices(volumes)
        topics, logs, segments = pl.collect_all(
            [
                _with_file(TOPICS, OF_TOPICS, self._files),
                _with_file(LOGS, OF_LOGS, self._files),
                _section(SEGMENTS, OF_SEGMENTS, self._files),
            ]
        )
        with_device = logs.join(
            devices, left_on=["file", "volume"], right_on=["file", "row"], how="left", maintain_order="left"
        )
        bounds = _bounds(with_device, _rules(topics, protected))
        leaving = _leaving(segments, bounds)
        excesses = _excesses(leaving, bounds)
        taken = self._take(leaving.filter(~pl.col("is_going")), excesses)
        return Trims(rows=_trims(taken, bounds).to_arrow(), devices=excesses.to_arrow())


def _section(name: str, columns: Sequence[str], files: pl.DataFrame, path: str | None = None) -> pl.LazyFrame:
    read = pl.scan_parquet(files["path"].to_list(), include_file_paths=path)
    renamed = [pl.col(column_in_file(name, column)).alias(column) for column in columns]
    return read.filter(pl.col(SECTION_COLUMN) == name).select(*renamed, *([path] if path else []))


def _with_file(name: str, columns: Sequence[str], files: pl.DataFrame) -> pl.LazyFrame:
    rows = _section(name, columns, files, path="path")
    return rows.join(files.lazy(), on="path", maintain_order="left").drop("path")


def _devices(volumes: pl.DataFrame) -> pl.DataFrame:
    """A row per log dir, with the facts of its device: those of the device's first log dir."""
    alone = pl.when(pl.col("failure").is_not_null()).then("log_dir").otherwise(pl.lit(""))
    used = (pl.col("total_bytes") - pl.col("usable_bytes")).clip(0)
    over = used - pl.col("total_bytes") * pl.col("ceiling_percent") // 100
    now, minimum = pl.coalesce("observed_at_ms", "taken_at_ms"), pl.col("min_retention_ms")
    facts = volumes.with_row_index("place").select(
        device=pl.col("place").min().over("file", "device", alone).cast(pl.Int64),
        over_bytes=pl.when(pl.col("ceiling_percent") < CEILING_OFF).then(over).otherwise(0),
        now_ms=now,
        believed_until_ms=now + pl.col("future_tolerance_ms").fill_null(AN_HOUR_MS),
        old_until_ms=pl.when(minimum > 0).then(now - minimum).otherwise(ALWAYS),
        min_retention_bytes=pl.col("min_retention_bytes").fill_null(0),
        max_bytes=pl.col("max_bytes_per_cycle").fill_null(ALWAYS),
    )
    places = volumes.select("file", row=pl.int_range(pl.len(), dtype=pl.Int32).over("file"))
    return pl.concat([places, facts[facts["device"]]], how="horizontal")


def _rules(topics: pl.DataFrame, protected: str) -> pl.DataFrame:
    is_known, name = pl.col("is_known"), pl.col("topic")
    is_tiered = is_known & pl.col("is_tiered")
    is_copying = is_tiered & ~pl.col("is_copy_disabled")
    is_limited = is_known & (pl.col("deletes") | (is_copying & ~pl.col("compacts")))
    is_kept = pl.col("is_internal") | name.is_in(NEVER_TRIMMED) | name.str.contains(f"^(?:{protected})$")

    def limit(unit: str) -> pl.Expr:
        local = pl.col(f"local_retention_{unit}")
        kept = pl.when(is_copying & (local != USE_RETENTION)).then(local).otherwise(f"retention_{unit}")
        return pl.when(is_limited).then(kept).otherwise(-1)

    return topics.select(
        "file",
        row=pl.int_range(pl.len(), dtype=pl.Int32).over("file"),
        name=name,
        is_tiered=is_tiered,
        is_copying=is_copying,
        may_be_trimmed=is_known & pl.col("deletes") & ~is_tiered & ~is_kept,
        retention_ms=limit("ms"),
        retention_bytes=limit("bytes"),
    )


def _bounds(logs: pl.DataFrame, rules: pl.DataFrame) -> pl.DataFrame:
    """What the rules say of every log, as what its segments are compared with."""
    kind, watermark, start = pl.col("kind"), pl.col("high_watermark"), pl.col("log_start_offset")
    is_visited = (kind == FolderKind.CURRENT) & ~pl.col("is_moving")
    uploaded = pl.min_horizontal(pl.col("highest_remote_offset") + 1, watermark)
    is_end_known = (pl.col("log_end_offset") >= 0) & ~pl.col("is_tiered").fill_null(value=False)
    is_candidate = is_visited & pl.col("may_be_trimmed") & (pl.col("views") == Views.AGREE) & (start >= 0)
    in_folder = pl.col("deleted_bytes") + pl.col("foreign_bytes") + pl.col("other_bytes")
    is_leaving = kind == FolderKind.DELETE
    with_rules = logs.join(
        rules, left_on=["file", "topic"], right_on=["file", "row"], how="left", maintain_order="left"
    )
    return with_rules.select(
        *("file", "name", "partition", "segments", "device", "over_bytes", "max_bytes", "now_ms", "believed_until_ms"),
        *("old_until_ms", "min_retention_bytes"),
        # The file's topics are in the order of their names.
        rank=pl.int_range(pl.len())
        .sort_by("file", "topic", "partition", maintain_order=True)
        .arg_sort()
        .cast(pl.Int64),
        is_leaving=is_leaving,
        leaving_bytes=pl.when(is_leaving)
        .then(in_folder)
        .when(kind.is_in(EMPTIED_BY_BROKER))
        .then("deleted_bytes")
        .otherwise(0),
        start_until=pl.when(is_visited).then(start).otherwise(NEVER),
        reach=pl.when(~is_visited).then(NEVER).when("is_copying").then(uploaded).otherwise(watermark),
        active_end=pl.when(is_end_known).then("log_end_offset").otherwise(ALWAYS),
        expired_until_ms=pl.when(pl.col("retention_ms") >= 0)
        .then(pl.col("now_ms") - pl.col("retention_ms"))
        .otherwise(NEVER),
        retention_bytes=pl.when(pl.col("retention_bytes") >= 0).then("retention_bytes").otherwise(ALWAYS),
        take_until=pl.when(is_candidate).then(watermark).otherwise(NEVER),
    )


def _leaving(segments: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    """What is going, and what may be taken."""
    together = segments["log_bytes"].cum_sum()
    end_bytes = pl.concat([pl.Series([0]), together])[logs["segments"].cum_sum()]
    bounds = logs.select(
        *BOUNDS,
        log=pl.int_range(pl.len()),
        bytes_until=end_bytes - pl.col("retention_bytes"),
        min_bytes_until=end_bytes - pl.col("min_retention_bytes"),
    )
    log_of_segment = logs.select(pl.int_range(pl.len()).repeat_by("segments").explode(empty_as_null=False)).to_series()
    rows = pl.concat([segments, bounds[log_of_segment]], how="horizontal").with_columns(together=together)
    newest, written, now = pl.col("newest_timestamp_ms"), pl.col("modified_ns") // 1_000_000, pl.col("now_ms")
    is_believed = newest.is_between(0, pl.col("believed_until_ms"))
    following, active_end = pl.col("next_offset"), pl.max_horizontal("active_end", "base_offset")
    ends_within = pl.when(following.is_null()).then((pl.col("log_bytes") > 0) & (active_end <= pl.col("reach")))
    is_beyond_bytes = pl.col("is_within") & (pl.col("together") <= pl.col("bytes_until"))
    left_ms = pl.when("is_trimmed").then(0).otherwise(pl.min_horizontal("broker_ms", now))
    is_expired = pl.col("is_within") & (_largest_so_far(left_ms) < pl.col("expired_until_ms"))
    is_old = (pl.col("age") <= pl.col("old_until_ms")) & (pl.col("together") <= pl.col("min_bytes_until"))
    return (
        rows.lazy()
        .with_columns(
            age=_largest_so_far(pl.when(is_believed).then(newest).otherwise(pl.min_horizontal(written, now).clip(0))),
            broker_ms=pl.when(newest >= 0).then(newest).otherwise(written.clip(0)),
            next_offset=pl.when(pl.col("log") == pl.col("log").shift(-1)).then(pl.col("base_offset").shift(-1)),
        )
        .with_columns(is_within=ends_within.otherwise(following <= pl.col("reach")))
        .with_columns(is_trimmed=(following <= pl.col("start_until")).fill_null(value=False) | is_beyond_bytes)
        .with_columns(is_going=pl.col("is_leaving") | pl.col("is_trimmed") | is_expired)
        .filter(pl.col("is_going") | ((following <= pl.col("take_until")) & is_old))
        .select("device", "log", "rank", "age", "next_offset", "allocated_bytes", "is_going")
        .collect()
    )


def _largest_so_far(ms: pl.Expr) -> pl.Expr:
    """Along each log."""
    return (pl.col("log") * AGE_SPAN + ms).cum_max() & (AGE_SPAN - 1)


def _excesses(leaving: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    """Of every device: what leaves it anyway, what could be taken, and what has to be."""
    size, is_going = pl.col("allocated_bytes"), pl.col("is_going")
    sums = leaving.group_by("device").agg(going=size.filter(is_going).sum(), removable=size.filter(~is_going).sum())
    over = logs.group_by("device").agg(pl.col("file", "over_bytes", "max_bytes").first(), pl.col("leaving_bytes").sum())
    going = pl.col("leaving_bytes") + pl.col("going").fill_null(0)
    return over.join(sums, on="device", how="left").select(
        *("device", "file", "max_bytes"),
        going_bytes=going,
        removable_bytes=pl.col("removable").fill_null(0),
        excess=pl.col("over_bytes") - going,
    )


def _oldest(candidates: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    size, together, excess = pl.col("allocated_bytes"), pl.col("together"), pl.col("excess")
    return (
        # Segments of one log are in order already.
        candidates.sort("device", pl.col("age") * LOG_SPAN + pl.col("rank"), maintain_order=True)
        .with_columns(together=size.cum_sum().over("device"))
        .join(devices, on="device", maintain_order="left")
        .filter(together - size < excess, together <= pl.col("max_bytes"))
    )


def _oldest_by_coarse_age(candidates: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    size, before, excess = pl.col("allocated_bytes"), pl.col("before"), pl.col("excess")
    bucket = pl.col("age") // BUCKET_MS
    cuts = (
        candidates.group_by("device", bucket.alias("cut"))
        .agg(bytes=size.sum())
        .sort("device", "cut")
        .with_columns(before=pl.col("bytes").cum_sum().over("device") - pl.col("bytes"))
        .join(devices, on="device")
        .filter(before < excess, before <= pl.col("max_bytes"))
        .group_by("device")
        .agg(pl.col("cut", "before").max(), pl.col("excess", "max_bytes").first())
    )
    near = candidates.join(cuts, on="device", maintain_order="left").filter(bucket <= pl.col("cut"))
    together = before + size.cum_sum().over("device")
    around = (
        near.filter(bucket == pl.col("cut"))
        # Segments of one log are in order already.
        .sort("device", pl.col("age") * LOG_SPAN + pl.col("rank"), maintain_order=True)
        .with_columns(together=together)
        .filter(pl.col("together") - size < excess, pl.col("together") <= pl.col("max_bytes"))
    )
    return pl.concat([near.filter(bucket < pl.col("cut")), around.drop("together")])


def _trims(taken: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    return (
        taken.group_by("log")
        .agg(
            new_start=pl.col("next_offset").max(),
            segments=pl.len(),
            bytes=pl.col("allocated_bytes").sum(),
            oldest=pl.col("age").min(),
            newest=pl.col("age").max(),
        )
        .join(logs.select("file", "partition", log=pl.int_range(pl.len()), topic="name"), on="log")
    )

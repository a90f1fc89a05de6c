"""When is each volume full? ``decide.forecast`` for a fleet: one row per device, from a month of its readings.

**Invariant.** A device is here because its broker's newest snapshot has it: a disk that was taken out is not forecast.
History counts only while the device was the same; a volume that was made larger is the same device with a new limit.
Full is where Produce is refused (KIP-1201): the nearer of the two limits, or the whole volume where both are off.

A reading an hour is enough for a rule about days, so history is reduced to that before it is moved, and each device's
readings reach the kernel as one row. The kernel is numpy and takes thousands of devices at once.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.decide.forecast import DAYS_LOOKED_BACK, Floats, Outlook, Readings, forecast
from brimline.fleet.jobs.disk_rules import share_of, used_bytes
from brimline.fleet.jobs.volume_pressure import with_limits
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.gold_schemas import FORECAST
from brimline.model.scan import Int64Column

DAYS_OF_HISTORY = DAYS_LOOKED_BACK + 1
_DEVICE = [c.CLUSTER_ID, c.BROKER_ID, c.DEVICE]
_HOUR, _READINGS, _AT_MS = "hour", "readings", "at_ms"
_UNKNOWN = -1
_A_DAY_US = 86_400_000_000
_AT = pa.timestamp("us", tz="UTC")


def forecast_volumes(volumes: DataFrame, history: DataFrame, now: datetime) -> DataFrame:
    """``volumes``: of the newest snapshot of each broker; ``history``: of the last ``DAYS_OF_HISTORY`` days."""
    rows = _devices(volumes, history).join(_readings(history), on=_DEVICE, how="left")
    now_ms = int(now.astimezone(UTC).timestamp() * 1000)
    return rows.mapInArrow(partial(_forecast_batches, now_ms), FORECAST)


def _devices(volumes: DataFrame, history: DataFrame) -> DataFrame:
    """A row per device: its first log dir's, since all log dirs of a device tell the same bytes."""
    rows = with_limits(volumes, volumes.unionByName(history)).withColumn(c.USED_BYTES, used_bytes())
    told = F.struct(c.TOTAL_BYTES, c.USED_BYTES, _limit_bytes().alias(c.LIMIT_BYTES), c.LIMITS_FROM)
    first = rows.groupBy(*_DEVICE).agg(
        F.min_by(told, F.col(c.LOG_DIR)).alias("told"),
        F.concat_ws(", ", F.array_sort(F.collect_set(c.LOG_DIR))).alias(c.LOG_DIRS_OF_DEVICE),
    )
    return first.select(*_DEVICE, c.LOG_DIRS_OF_DEVICE, "told.*")


def _limit_bytes() -> Column:
    """How many used bytes are full. Null for a volume of unknown size."""
    total = F.col(c.TOTAL_BYTES)
    by_percent, by_bytes = share_of(total, F.col(c.MAX_USED_PERCENT)), total - F.col(c.MIN_FREE_BYTES)
    return F.greatest(F.least(by_percent, by_bytes, total), F.when(total.isNotNull(), F.lit(0)))


def _readings(history: DataFrame) -> DataFrame:
    """The last reading of each device in every hour, all of a device in one row."""
    at_ms = F.unix_millis(c.TAKEN_AT)
    reading = F.struct(at_ms.alias(_AT_MS), F.coalesce(used_bytes(), F.lit(_UNKNOWN)).alias(c.USED_BYTES))
    hourly = history.groupBy(*_DEVICE, F.floor(at_ms / F.lit(3_600_000)).alias(_HOUR)).agg(F.max(reading).alias("last"))
    return hourly.groupBy(*_DEVICE).agg(F.collect_list("last").alias(_READINGS))


def _forecast_batches(now_ms: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield forecast_rows(batch, now_ms)


def forecast_rows(devices: pa.RecordBatch, now_ms: int) -> pa.RecordBatch:
    """Devices with their readings to rows of ``FORECAST``."""
    made = forecast(_columns(devices), now_ms)
    total, as_of = _numbers(devices, c.TOTAL_BYTES), pa.array(made.as_of_ms * 1000, mask=made.as_of_ms < 0)
    has_days = ~np.isnan(made.days_to_full)
    full_at = made.as_of_ms * 1000 + (np.nan_to_num(made.days_to_full) * _A_DAY_US).astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        error_points = made.back_test_error_bytes * 100.0 / np.where(total > 0, total, np.nan)
        used_percent = made.used_bytes * 100.0 / np.where(total > 0, total, np.nan)
    figures = {
        c.OUTLOOK: pa.array([Outlook(code).label for code in made.outlook.tolist()], type=pa.string()),
        c.DAYS_TO_FULL: _known(made.days_to_full),
        c.SOONEST_DAYS: _known(made.soonest_days),
        c.LATEST_DAYS: _known(made.latest_days),
        c.FULL_AT: pa.array(full_at, mask=~has_days).cast(_AT),
        c.USED_PERCENT: _known(used_percent),
        c.GROWTH_BYTES_PER_DAY: _known(made.bytes_per_day),
        c.BACK_TEST_ERROR_POINTS: _known(error_points),
        c.BACK_TESTS: pa.array(made.back_tests),
        c.DAYS_KNOWN: pa.array(made.days_known),
        c.AS_OF: as_of.cast(_AT),
    }
    columns = [figures.get(name) for name in FORECAST.names]
    arrays = [
        devices.column(name) if column is None else column for name, column in zip(FORECAST.names, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=FORECAST.names)


def _columns(devices: pa.RecordBatch) -> Readings:
    lists = devices.column(devices.schema.get_field_index(_READINGS))
    readings = lists.flatten()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return Readings(
        begin=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        at_ms=readings.field(_AT_MS).to_numpy(zero_copy_only=False),
        used_bytes=readings.field(c.USED_BYTES).to_numpy(zero_copy_only=False),
        limit_bytes=_numbers(devices, c.LIMIT_BYTES),
    )


def _numbers(devices: pa.RecordBatch, name: str) -> Int64Column:
    column = devices.column(devices.schema.get_field_index(name))
    return np.asarray(column.fill_null(_UNKNOWN).to_numpy(zero_copy_only=False), dtype=np.int64)


def _known(column: Floats) -> pa.Array:
    return pa.array(column, mask=np.isnan(column))

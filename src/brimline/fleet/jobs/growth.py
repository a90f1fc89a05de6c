"""How fast the volumes fill, by their history, so that no single event decides.

**The rule.** With more than a day of history: the median of the differences between readings 24 hours apart, over the
last seven days. The lag takes the rhythm of the day out, and the median what happened once (a topic deleted, a
partition moved here). With less: the median of the slopes between all pairs of the last 16 readings, which is what the
guard reports (``decide.fill_rate``).

History counts only as far back as the log dir has been on the same device, of the same size, and told by the same kind
of source: a disk that was exchanged did not shrink.

All readings of a log dir come together in one row, and Python looks at them: the rule is then the guard's own code.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from brimline.decide.fill_rate import READINGS_KEPT, UsableAt, fill_rate
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.gold_schemas import GROWTH
from brimline.model.quantities import Bytes

DAYS_OF_HISTORY = 7
FROM_DAYS, FROM_READINGS = "days", "readings"
_LOG_DIR = (c.CLUSTER_ID, c.BROKER_ID, c.LOG_DIR)
_READINGS, _AT_US = "readings", "at_us"
_SECONDS_A_DAY, _SECONDS_AN_HOUR = 86_400, 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A row of ``volumes``, as far as growth asks for it: of a log dir's volume. Bytes are ``None`` where it could not
    be read."""

    at_us: int
    source: str
    device: str | None
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    since_us: int
    """The first reading of what is one history with the last."""
    bytes_per_day: float | None
    whence: str | None


def growth(readings: Sequence[Reading]) -> Growth:
    """Of one log dir; the last reading is the newest. There is at least one."""
    alike = _of_one_volume(readings)
    known = [each for each in alike if each.total_bytes is not None and each.usable_bytes is not None]
    by_days = _by_days(known)
    rate = None if by_days is not None else _by_readings(known)
    return Growth(
        since_us=alike[0].at_us,
        bytes_per_day=by_days if by_days is not None else rate,
        whence=FROM_DAYS if by_days is not None else FROM_READINGS if rate is not None else None,
    )


def _of_one_volume(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Back from the newest, until the device or its size is another. An unreadable volume has no size."""
    newest, alike = readings[-1], []
    total = newest.total_bytes
    for each in reversed(readings):
        if each.source != newest.source:
            continue
        total = each.total_bytes if total is None else total
        if each.device != newest.device or each.total_bytes not in (None, total):
            break
        alike.append(each)
    return alike[::-1]


def _by_days(known: Sequence[Reading]) -> float | None:
    """The median growth over 24 hours, with the last reading of each hour."""
    used = {
        each.at_us // (_SECONDS_AN_HOUR * 1_000_000): (each.total_bytes or 0) - (each.usable_bytes or 0)
        for each in known
    }
    differences = [size - used[hour - 24] for hour, size in used.items() if hour - 24 in used]
    return float(median(differences)) if differences else None


def _by_readings(known: Sequence[Reading]) -> float | None:
    rate = fill_rate([UsableAt(each.at_us / 1e6, Bytes(each.usable_bytes or 0)) for each in known[-READINGS_KEPT:]])
    return None if rate is None else rate * _SECONDS_A_DAY


def growth_of_log_dirs(volumes: DataFrame) -> DataFrame:
    """Rows of ``volumes`` of the last days to one row per log dir (``GROWTH``)."""
    at_us = F.unix_micros(c.TAKEN_AT).alias(_AT_US)
    reading = F.struct(at_us, c.SOURCE, c.DEVICE, c.TOTAL_BYTES, c.USABLE_BYTES)
    histories = volumes.groupBy(*_LOG_DIR).agg(F.array_sort(F.collect_list(reading)).alias(_READINGS))
    return histories.mapInArrow(_growth_batches, GROWTH)


def _growth_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        histories = batch.column(batch.schema.get_field_index(_READINGS)).to_pylist()
        found = [growth([Reading(**each) for each in history]) for history in histories]
        yield pa.RecordBatch.from_arrays(
            [
                *(batch.column(batch.schema.get_field_index(name)) for name in _LOG_DIR),
                pa.array([each.since_us for each in found], type=pa.timestamp("us", tz="UTC")),
                pa.array([each.bytes_per_day for each in found], type=pa.float64()),
                pa.array([each.whence for each in found], type=pa.string()),
            ],
            names=[*_LOG_DIR, c.DEVICE_SINCE, c.GROWTH_BYTES_PER_DAY, c.GROWTH_FROM],
        )

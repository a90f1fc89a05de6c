"""A fleet, read from its warehouse as ``fleet show`` reads it: deltalake's own engine, and never a JVM."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from brimline.decide.forecast import outlook_words
from brimline.decide.reclaim.dry_run import DryRun, dry_run
from brimline.fleet.planner.broker_snapshot import BrokerSnapshot, read_broker_at
from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.session.errors import FleetError
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.manifest import newest_files
from brimline.fleet.tables.show import NoTable, TableLook, look_at, version_of
from brimline.landing.seal import BadSnapshot
from brimline.model import human_bytes, human_span, used_percent
from brimline.model.reclaim import CEILING_OFF
from brimline.pages.chart import Expectation, Reading, UseChart
from brimline.pages.disk_page import DiskQuery, DiskSeen, TopicOnDisk
from brimline.pages.volumes_page import ShownVolume
from brimline.web.pages import Fleet
from brimline.web.what_if import WhatIfs

_LOOK_AGAIN = 2.0
"""Seconds: whether a table has a new version is not asked more often."""
_SOON_DAYS = 7.0
_DAY = 86_400.0
_READINGS = 5000
_KEPT_SNAPSHOTS = 4
_Row = Mapping[str, Any]
_Key = tuple[str, int, str]
_GOLD = (Table.VOLUME_PRESSURE, Table.FORECAST)
_PRESSURE_COLUMNS = (
    c.CLUSTER_ID,
    c.BROKER_ID,
    c.LOG_DIR,
    c.DEVICE,
    c.STATE,
    c.USED_PERCENT,
    c.TOTAL_BYTES,
    c.USABLE_BYTES,
    c.BREACHES,
    c.FAILURE,
    c.MAX_USED_PERCENT,
    c.MIN_FREE_BYTES,
    c.CEILING_PERCENT,
    c.TAKEN_AT,
    c.IS_STALE,
)
_FORECAST_COLUMNS = (
    c.CLUSTER_ID,
    c.BROKER_ID,
    c.DEVICE,
    c.OUTLOOK,
    c.DAYS_TO_FULL,
    c.SOONEST_DAYS,
    c.LATEST_DAYS,
    c.GROWTH_BYTES_PER_DAY,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Known:
    """What two gold tables say, for as long as they are the same."""

    versions: tuple[int | None, ...]
    rows: Sequence[ShownVolume]
    by_key: Mapping[_Key, ShownVolume]
    forecasts: Mapping[_Key, _Row]


class FleetSource(Fleet):
    """``seconds`` is a clock that never jumps. May be asked from several threads."""

    def __init__(self, warehouse: str, seconds: Callable[[], float] = time.monotonic) -> None:
        self.warehouse = warehouse
        self._seconds = seconds
        self._kept: tuple[float, _Known] | None = None
        self._what_ifs = WhatIfs(warehouse, self._files)
        self._snapshot = lru_cache(_KEPT_SNAPSHOTS)(read_broker_at)

    def rows(self) -> Sequence[ShownVolume]:
        """The most urgent first."""
        return self._known().rows

    def places_of(self, topic: str) -> set[_Key]:
        found = self._table(Table.RETENTION_PRESSURE, (c.CLUSTER_ID, c.BROKER_ID, c.LOG_DIR), {c.TOPIC: topic})
        return {(row[c.CLUSTER_ID], row[c.BROKER_ID], row[c.LOG_DIR]) for row in found}

    def disk(self, query: DiskQuery) -> DiskSeen:
        """Raises ``FleetError`` for one that is not there, ``ValueError`` for a broker that is not a number."""
        known, key = self._known(), (query.cluster, int(query.broker), query.device)
        row = known.by_key.get(key)
        if row is None:
            raise FleetError(
                f"the warehouse has no device {query.device} of broker {query.broker} of cluster {query.cluster}"
            )
        ceiling = query.ceiling_for(row.ceiling)
        seen = DiskSeen(row=row, ceiling=ceiling, dry_run=self._dry_run(row, ceiling))
        if query.only_plan:
            return seen
        forecast = known.forecasts.get(key)
        chart = use_chart(self._readings(key), forecast, fence=row.fence, ceiling=row.ceiling)
        return replace(seen, chart=chart, topics=self._topics(row))

    def what_if(self, query: Mapping[str, str]) -> bytes:
        return self._what_ifs.answer(query)

    def close(self) -> None:
        self._what_ifs.close()

    def _files(self) -> Sequence[SnapshotFile]:
        return newest_files(self.warehouse)

    def _known(self) -> _Known:
        kept, now = self._kept, self._seconds()
        if kept is not None and now < kept[0] + _LOOK_AGAIN:
            return kept[1]
        versions = tuple(version_of(self.warehouse, table) for table in _GOLD)
        if kept is None or kept[1].versions != versions:
            forecasts = {_key(row): row for row in self._table(Table.FORECAST, _FORECAST_COLUMNS)}
            rows = _volumes(self._table(Table.VOLUME_PRESSURE, _PRESSURE_COLUMNS), forecasts)
            by_key = {(row.cluster, row.broker, row.device): row for row in rows}
            known = _Known(versions=versions, rows=rows, by_key=by_key, forecasts=forecasts)
        else:
            known = kept[1]
        self._kept = now, known
        return known

    def _table(
        self, table: Table, columns: Sequence[str], equal: Mapping[str, str | int] | None = None, **look: Any
    ) -> list[_Row]:
        """A table that was never written is empty."""
        try:
            shown = look_at(self.warehouse, table, TableLook(columns=columns, equal=equal or {}, **look))
        except NoTable:
            return []
        return [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]

    def _readings(self, key: _Key) -> list[Reading]:
        """Of every log dir of a device the same: each moment once, the oldest first."""
        where: dict[str, str | int] = {c.CLUSTER_ID: key[0], c.BROKER_ID: key[1], c.DEVICE: key[2]}
        columns = (c.TAKEN_AT, c.TOTAL_BYTES, c.USABLE_BYTES)
        found = self._table(Table.VOLUMES, columns, where, sort=((c.TAKEN_AT, True),), limit=_READINGS)
        return readings_of((row[c.TAKEN_AT], row[c.TOTAL_BYTES], row[c.USABLE_BYTES]) for row in found)

    def _topics(self, row: ShownVolume) -> list[TopicOnDisk]:
        where: dict[str, str | int] = {c.CLUSTER_ID: row.cluster, c.BROKER_ID: row.broker}
        columns = (c.TOPIC, c.LOG_DIR, c.SIZE_BYTES)
        sums: defaultdict[str, list[int]] = defaultdict(list)
        for each in self._table(Table.RETENTION_PRESSURE, columns, where):
            if each[c.LOG_DIR] in row.log_dirs:
                sums[each[c.TOPIC]].append(each[c.SIZE_BYTES] or 0)
        topics = (TopicOnDisk(topic=name, replicas=len(sizes), bytes=sum(sizes)) for name, sizes in sums.items())
        return sorted(topics, key=lambda each: (-each.bytes, each.topic))

    def _dry_run(self, row: ShownVolume, ceiling: int) -> DryRun | str:
        where: dict[str, str | int] = {c.CLUSTER_ID: row.cluster, c.BROKER_ID: row.broker}
        found = [
            (each[c.SEGMENTS_TAKEN_AT], each[c.SEGMENTS_PATH])
            for each in self._table(Table.NEWEST, (c.SEGMENTS_TAKEN_AT, c.SEGMENTS_PATH), where)
            if each[c.SEGMENTS_PATH] is not None
        ]
        if not found:
            return "no snapshot with segments of this broker was ingested: deletions unknown"
        taken_at, path = max(found)
        try:
            broker = self._snapshot(path)
            devices = [row_of for row_of in range(len(broker.tables.devices)) if _is_same(broker, row_of, row)]
            if not devices:
                return "the newest snapshot with segments lacks this disk"
            return dry_run(broker.tables, devices[0], ceiling, taken_at)
        except (BadSnapshot, ValueError) as error:
            return f"the snapshot {path} cannot be used: {error}"


def _is_same(broker: BrokerSnapshot, device: int, row: ShownVolume) -> bool:
    return bool(set(broker.log_dirs_of(device)) & set(row.log_dirs))


def readings_of(found: Iterable[tuple[Any, Any, Any]]) -> list[Reading]:
    """From moments, total and usable bytes, in any order; what could not be read is left out."""
    known = {at: used_percent(total, usable) for at, total, usable in found if total and usable is not None}
    return [Reading(at, percent) for at, percent in sorted(known.items())]


def use_chart(
    readings: Sequence[Reading], forecast: _Row | None, *, fence: float | None, ceiling: float | None = None
) -> UseChart | None:
    if not readings:
        return None
    days = None if forecast is None else forecast[c.DAYS_TO_FULL]
    expected = (
        None
        if forecast is None or days is None
        else Expectation(days=days, soonest=forecast[c.SOONEST_DAYS], latest=forecast[c.LATEST_DAYS])
    )
    return UseChart(readings=readings, fence=fence, ceiling=ceiling, expected=expected)


def _key(row: _Row) -> _Key:
    return row[c.CLUSTER_ID], row[c.BROKER_ID], row[c.DEVICE]


def _volumes(pressure: Sequence[_Row], forecasts: Mapping[_Key, _Row]) -> list[ShownVolume]:
    """A row for each device: its log dirs tell the same bytes. One that cannot be read stands alone."""
    devices: defaultdict[_Key, list[_Row]] = defaultdict(list)
    for row in pressure:
        devices[row[c.CLUSTER_ID], row[c.BROKER_ID], row[c.DEVICE] or row[c.LOG_DIR]].append(row)
    found = [_volume(key, rows, forecasts.get(key)) for key, rows in devices.items()]
    return sorted(found, key=lambda row: row.urgency)


def _volume(key: _Key, rows: Sequence[_Row], forecast: _Row | None) -> ShownVolume:
    cluster, broker, device = key
    row = rows[0]
    days = None if forecast is None else forecast[c.DAYS_TO_FULL]
    is_filling = row[c.STATE] == "ok" and days is not None and days < _SOON_DAYS
    total = row[c.TOTAL_BYTES]
    limits = (float(row[c.MAX_USED_PERCENT]), 100.0 * (1 - row[c.MIN_FREE_BYTES] / total)) if total else None
    return ShownVolume(
        cluster=cluster,
        broker=broker,
        device=device,
        log_dirs=tuple(sorted(each[c.LOG_DIR] for each in rows)),
        state="filling" if is_filling else row[c.STATE] if row[c.STATE] in ("ok", "full", "offline") else "unknown",
        why=_why(row, forecast),
        used_percent=row[c.USED_PERCENT],
        total_bytes=total,
        usable_bytes=row[c.USABLE_BYTES],
        days_to_full=days,
        ceiling=float(row[c.CEILING_PERCENT]) if row[c.CEILING_PERCENT] < CEILING_OFF else None,
        fence=None if limits is None else min(limits),
        href="disk?" + urlencode({"cluster": cluster, "broker": broker, "device": device}),
    )


def _why(row: _Row, forecast: _Row | None) -> str:
    parts = []
    if row[c.FAILURE]:
        parts.append(row[c.FAILURE])
    if row[c.BREACHES]:
        parts.append(f"over {row[c.BREACHES]}")
    if forecast is not None and forecast[c.DAYS_TO_FULL] is not None and forecast[c.GROWTH_BYTES_PER_DAY]:
        between = "" if row[c.STATE] == "full" else _between(forecast[c.SOONEST_DAYS], forecast[c.LATEST_DAYS])
        parts.append(f"+{human_bytes(int(forecast[c.GROWTH_BYTES_PER_DAY]))} a day{between}")
    elif forecast is not None:
        parts.append(outlook_words(forecast[c.OUTLOOK]))
    if row[c.IS_STALE]:
        parts.append(f"seen {row[c.TAKEN_AT]:%m-%d %H:%M}")
    return "; ".join(parts)


def _between(soonest: float | None, latest: float | None) -> str:
    """``, full in 5 to 27 days``."""
    if soonest is None:
        return ""
    first = human_span(soonest * _DAY)
    if latest is None:
        return f", full in {first} or never"
    last = human_span(latest * _DAY)
    number, _, unit = first.partition(" ")
    return f", full in {number if last.endswith(unit) else first} to {last}"

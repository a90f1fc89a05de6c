"""A fleet, read from its warehouse as ``fleet show`` reads it: deltalake's own engine, and never a JVM."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from brimline.fleet.planner.broker_snapshot import BrokerSnapshot, read_broker_at
from brimline.fleet.planner.rows import plan_rows
from brimline.fleet.session.errors import FleetError
from brimline.fleet.simulate.what_if import WhatIf
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.show import NoTable, TableLook, look_at
from brimline.landing.seal import BadSnapshot
from brimline.model import human_bytes, used_percent
from brimline.model.reclaim import CEILING_OFF
from brimline.pages.chart import Expectation, Reading, UseChart
from brimline.pages.disk_page import DiskSeen, DryRun, TopicOnDisk, TopicTaken
from brimline.pages.volumes_page import ShownVolume
from brimline.web.pages import Fleet

_KEPT_SECONDS = 30.0
"""Gold tables change when a run ends."""
_SOON_DAYS = 7.0
_TOPICS = 25
_READINGS = 5000
_DEFAULT_CEILING = 80
_Row = Mapping[str, Any]
_Key = tuple[str, int, str]


class FleetSource(Fleet):
    """``seconds`` is a clock that never jumps. May be asked from several threads."""

    def __init__(self, warehouse: str, seconds: Callable[[], float] = time.monotonic) -> None:
        self.warehouse = warehouse
        self._seconds = seconds
        self._kept: tuple[float, list[ShownVolume], dict[_Key, _Row]] | None = None

    def rows(self) -> list[ShownVolume]:
        return self._known()[0]

    def places_of(self, topic: str) -> set[_Key]:
        found = self._table(Table.RETENTION_PRESSURE, (c.CLUSTER_ID, c.BROKER_ID, c.LOG_DIR), {c.TOPIC: topic})
        return {(row[c.CLUSTER_ID], row[c.BROKER_ID], row[c.LOG_DIR]) for row in found}

    def disk(self, cluster: str, broker: int, device: str, ceiling: int | None) -> DiskSeen:
        """Raises ``FleetError`` for one that is not there."""
        rows, forecasts = self._known()
        row = next(
            (each for each in rows if (each.cluster, each.broker, each.device) == (cluster, broker, device)), None
        )
        if row is None:
            raise FleetError(f"the warehouse has no device {device} of broker {broker} of cluster {cluster}")
        wanted = ceiling if ceiling is not None else round(row.ceiling) if row.ceiling is not None else _DEFAULT_CEILING
        return DiskSeen(
            row=row,
            chart=self._chart(row, forecasts.get((cluster, broker, device))),
            topics=self._topics(row),
            dry_run=self._dry_run(row, wanted),
            ceiling=wanted,
        )

    def _known(self) -> tuple[list[ShownVolume], dict[_Key, _Row]]:
        kept, now = self._kept, self._seconds()
        if kept is None or now > kept[0] + _KEPT_SECONDS:
            forecasts = {
                (row[c.CLUSTER_ID], row[c.BROKER_ID], row[c.DEVICE]): row for row in self._table(Table.FORECAST)
            }
            kept = self._kept = (now, _volumes(self._table(Table.VOLUME_PRESSURE), forecasts), forecasts)
        return kept[1], kept[2]

    def _table(
        self, table: Table, columns: Sequence[str] = (), equal: Mapping[str, str | int] | None = None, **look: Any
    ) -> list[_Row]:
        """A table that was never written is empty."""
        try:
            shown = look_at(self.warehouse, table, TableLook(columns=columns, equal=equal or {}, **look))
        except NoTable:
            return []
        return [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]

    def _chart(self, row: ShownVolume, forecast: _Row | None) -> UseChart | None:
        assert row.broker is not None
        where: dict[str, str | int] = {c.CLUSTER_ID: row.cluster, c.BROKER_ID: row.broker, c.DEVICE: row.device}
        columns = (c.TAKEN_AT, c.TOTAL_BYTES, c.USABLE_BYTES)
        found = self._table(Table.VOLUMES, columns, where, sort=((c.TAKEN_AT, True),), limit=_READINGS)
        readings = [
            Reading(each[c.TAKEN_AT], used_percent(each[c.TOTAL_BYTES], each[c.USABLE_BYTES]))
            for each in reversed(found)
            if each[c.TOTAL_BYTES] and each[c.USABLE_BYTES] is not None
        ]
        if not readings:
            return None
        days = None if forecast is None else forecast[c.DAYS_TO_FULL]
        expected = (
            None
            if forecast is None or days is None
            else Expectation(days=days, soonest=forecast[c.SOONEST_DAYS], latest=forecast[c.LATEST_DAYS])
        )
        return UseChart(readings=readings, fence=row.fence, ceiling=row.ceiling, expected=expected)

    def _topics(self, row: ShownVolume) -> list[TopicOnDisk]:
        assert row.broker is not None
        where: dict[str, str | int] = {c.CLUSTER_ID: row.cluster, c.BROKER_ID: row.broker}
        sums: defaultdict[str, list[int]] = defaultdict(list)
        for each in self._table(Table.RETENTION_PRESSURE, (c.TOPIC, c.LOG_DIR, c.SIZE_BYTES), where):
            if each[c.LOG_DIR] in row.log_dirs:
                sums[each[c.TOPIC]].append(each[c.SIZE_BYTES] or 0)
        topics = (TopicOnDisk(topic=name, replicas=len(sizes), bytes=sum(sizes)) for name, sizes in sums.items())
        return sorted(topics, key=lambda each: (-each.bytes, each.topic))[:_TOPICS]

    def _dry_run(self, row: ShownVolume, ceiling: int) -> DryRun | str:
        assert row.broker is not None
        where: dict[str, str | int] = {c.CLUSTER_ID: row.cluster, c.BROKER_ID: row.broker}
        found = [
            (each[c.SEGMENTS_TAKEN_AT], each[c.SEGMENTS_PATH])
            for each in self._table(Table.NEWEST, (c.SEGMENTS_TAKEN_AT, c.SEGMENTS_PATH), where)
            if each[c.SEGMENTS_PATH] is not None
        ]
        if not found:
            return "no snapshot with segments of this broker was taken in: what would go is not known here"
        taken_at, path = max(found)
        try:
            return dry_run(read_broker_at(path), row.log_dirs, ceiling, taken_at)
        except (BadSnapshot, ValueError) as error:
            return f"the snapshot {path} cannot be used: {error}"


def dry_run(broker: BrokerSnapshot, log_dirs: Sequence[str], ceiling: int, taken_at: datetime) -> DryRun | str:
    """The guard's own planner, with another ceiling. Raises ``ValueError`` for tables that contradict each other."""
    changed = replace(broker, tables=WhatIf(ceiling_percent=ceiling).applied(broker.tables))
    rows = [row for row in plan_rows(changed).to_pylist() if set(row[c.DEVICE_LOG_DIRS] or ()) & set(log_dirs)]
    if not rows:
        return "its newest snapshot with segments does not have this disk"
    device = rows[0]
    topics: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        if row[c.TAKEN_SEGMENTS] is not None:
            topics[row[c.TOPIC]].append(row)
    losses = (_loss(topic, trims) for topic, trims in topics.items())
    return DryRun(
        ceiling=ceiling,
        taken_at=taken_at,
        outcome=device[c.DEVICE_OUTCOME],
        total_bytes=device[c.DEVICE_TOTAL_BYTES],
        used_bytes=device[c.DEVICE_USED_BYTES],
        going_bytes=device[c.DEVICE_GOING_BYTES] or 0,
        taken_bytes=device[c.DEVICE_TAKEN_BYTES] or 0,
        missing_bytes=device[c.DEVICE_MISSING_BYTES] or 0,
        topics=sorted(losses, key=lambda each: (-each.bytes, each.topic)),
    )


def _loss(topic: str, trims: Sequence[_Row]) -> TopicTaken:
    return TopicTaken(
        topic=topic,
        partitions=len(trims),
        segments=sum(each[c.TAKEN_SEGMENTS] for each in trims),
        bytes=sum(each[c.TAKEN_BYTES] for each in trims),
        oldest=min((each[c.OLDEST_AT] for each in trims if each[c.OLDEST_AT] is not None), default=None),
        newest=max((each[c.NEWEST_AT] for each in trims if each[c.NEWEST_AT] is not None), default=None),
    )


def _volumes(pressure: Sequence[_Row], forecasts: Mapping[_Key, _Row]) -> list[ShownVolume]:
    """A row for each device: its log dirs tell the same bytes. One that cannot be read stands alone."""
    devices: defaultdict[_Key, list[_Row]] = defaultdict(list)
    for row in pressure:
        devices[row[c.CLUSTER_ID], row[c.BROKER_ID], row[c.DEVICE] or row[c.LOG_DIR]].append(row)
    return [_volume(key, rows, forecasts.get(key)) for key, rows in devices.items()]


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
        state="filling" if is_filling else row[c.STATE] if row[c.STATE] in ("ok", "full") else "unknown",
        why=_why(row, forecast),
        used_percent=row[c.USED_PERCENT],
        total_bytes=total,
        usable_bytes=row[c.USABLE_BYTES],
        days_to_full=days,
        ceiling=float(row[c.CEILING_PERCENT]) if row[c.CEILING_PERCENT] < CEILING_OFF else None,
        fence=None if limits is None else min(limits),
        href="/disk?" + urlencode({"cluster": cluster, "broker": broker, "device": device}),
    )


def _why(row: _Row, forecast: _Row | None) -> str:
    parts = []
    if row[c.FAILURE]:
        parts.append(row[c.FAILURE])
    if row[c.BREACHES]:
        parts.append(f"over {row[c.BREACHES]}")
    if forecast is not None and forecast[c.DAYS_TO_FULL] is not None and forecast[c.GROWTH_BYTES_PER_DAY]:
        grows = f"grows {human_bytes(int(forecast[c.GROWTH_BYTES_PER_DAY]))} a day"
        soonest, latest = forecast[c.SOONEST_DAYS], forecast[c.LATEST_DAYS]
        latest_text = "never" if latest is None else f"{latest:.1f} days"
        parts.append(
            grows
            if soonest is None
            else f"{grows}; full after {soonest:.1f} days at the soonest, {latest_text} at the latest"
        )
    elif forecast is not None:
        parts.append(forecast[c.OUTLOOK])
    if row[c.IS_STALE]:
        parts.append(f"last seen {row[c.TAKEN_AT]:%Y-%m-%d %H:%M} UTC")
    return "; ".join(parts)

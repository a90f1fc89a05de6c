"""Rows of a reclaim plan in the words of the scenarios, whoever made them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from brimline.decide.reclaim.plan import plan
from brimline.model.reclaim import ReclaimTables
from tests.decide.reclaim.test_scenarios import figures_of, trims_of

PlanRow: TypeAlias = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def assert_is_plan_of(tables: ReclaimTables, rows: Sequence[PlanRow]) -> None:
    """The kernel's own plan: every trim and every figure of a device."""
    planned = plan(tables)
    assert trims_in(rows) == named_trims(tables, trims_of(planned))
    assert {row["device"] for row in rows} == {device.name for device in tables.devices}
    for device, expected in zip(tables.devices, planned.devices, strict=True):
        assert figures_in(rows, device.name) == figures_of(expected)


def named_trims(tables: ReclaimTables, trims: Iterable[Mapping[str, Any]]) -> list[PlanRow]:
    """With the names that a table has instead of the row of the log."""
    return sorted(({"place": _place(tables, trim["log"])} | dict(trim, log=None) for trim in trims), key=str)


def trims_in(rows: Iterable[PlanRow]) -> list[PlanRow]:
    trims = (
        {
            "place": (row["device"], row["log_dir"], row["topic"], row["partition"]),
            "log": None,
            "fromOffset": row["from_offset"],
            "newLogStartOffset": row["new_log_start_offset"],
            "segments": row["taken_segments"],
            "bytes": row["taken_bytes"],
            "oldestMs": _milliseconds(row["oldest_at"]),
            "newestMs": _milliseconds(row["newest_at"]),
        }
        for row in rows
        if row["taken_segments"] is not None
    )
    return sorted(trims, key=str)


def figures_in(rows: Iterable[PlanRow], device: str) -> PlanRow:
    """Of a device: the same in all its rows."""
    (figures,) = {
        (
            row["device_outcome"],
            row["device_used_bytes"],
            row["device_limit_bytes"],
            row["device_going_bytes"],
            row["device_excess_bytes"],
            row["device_removable_bytes"],
            row["device_taken_bytes"],
            row["device_taken_segments"],
            row["device_local_retention_bytes"],
        )
        for row in rows
        if row["device"] == device
    }
    return dict(zip(_FIGURES, figures, strict=True))


_FIGURES = (
    "outcome",
    "usedBytes",
    "limitBytes",
    "goingBytes",
    "excessBytes",
    "removableBytes",
    "takenBytes",
    "takenSegments",
    "localRetentionBytes",
)


def _place(tables: ReclaimTables, log: int) -> tuple[str, str, str, int]:
    device = tables.devices[int(tables.logs.device[log])].name
    topic = tables.topics[int(tables.logs.topic[log])].name
    return device, f"/{device}", topic, int(tables.logs.partition[log])


def _milliseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)

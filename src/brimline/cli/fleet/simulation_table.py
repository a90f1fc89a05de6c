"""A simulation for people: what was asked, what every topic would lose, and which disks would not hold."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.text import Text

from brimline.cli.shared.columns import Column, column_lines
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging, room_on
from brimline.fleet.simulate.simulate import SimulatedDevice, Simulation, TopicOutcome
from brimline.fleet.simulate.what_if import RetentionRule, WhatIf
from brimline.model import counted, human_bytes, human_count, human_percent, human_span, used_percent
from brimline.model.reclaim import CEILING_OFF

_INDENT = 2
_SHOWN_DEVICES = 20
_DAY_MS = 86_400_000


def write_simulation_table(found: Simulation, out: TextIO, *, top: int | None) -> None:
    """``top`` topics, or all of them with ``None``."""
    console = console_on(out)
    glyphs = glyphs_for(out)
    for line in simulation_lines(found, glyphs, room_on(console), top):
        print_hanging(console, line, _INDENT)


def simulation_lines(found: Simulation, glyphs: Glyphs, room: int, top: int | None) -> Iterator[Text]:
    yield Text.assemble(("What if", "bold"), "  ", _asked(found.what_if))
    yield Text(f"  {counted(found.brokers, 'broker')}, {counted(len(found.devices), 'volume')}", "dim")
    yield Text()
    yield from _sum_lines(found)
    yield Text()
    yield from _topic_lines(found, glyphs, room, top)
    yield from _device_lines(found, glyphs)


def _asked(what_if: WhatIf) -> str:
    parts = [
        "" if what_if.ceiling_percent is None else _off_at_100("a ceiling of", what_if.ceiling_percent, "no ceiling"),
        ""
        if what_if.max_used_percent is None
        else _off_at_100("Produce refused above", what_if.max_used_percent, "no limit of used percent"),
        *(f"retention of {printable(rule.pattern.pattern)}: {_limits(rule)}" for rule in what_if.retention),
    ]
    asked = ", ".join(part for part in parts if part) or "everything stays as it is set"
    return f"{asked}; for {counted(what_if.days, 'day')}"


def _off_at_100(what: str, percent: int, off: str) -> str:
    return off if percent >= CEILING_OFF else f"{what} {percent} %"


def _limits(rule: RetentionRule) -> str:
    size, span = rule.retention_bytes, rule.retention_ms
    parts = [
        "" if size is None else human_bytes(size) if size >= 0 else "any size",
        "" if span is None else human_span(span / 1000) if span >= 0 else "for ever",
    ]
    return " and ".join(part for part in parts if part) or "as it is"


def _sum_lines(found: Simulation) -> Iterator[Text]:
    by_retention = sum(device.by_retention_bytes for device in found.devices)
    by_ceiling = sum(device.by_ceiling_bytes for device in found.devices)
    refused = sum(device.refused_bytes for device in found.devices)
    today = sum(topic.by_ceiling_today_bytes for topic in found.topics)
    yield Text(f"  retention deletes  {human_bytes(by_retention)}")
    at_once = f", {human_bytes(today)} of it at once" if today else ""
    whose = ", each broker by its own plan" if by_ceiling else ""
    yield Text(f"  ceilings delete    {human_bytes(by_ceiling)}{whose}{at_once}", "yellow" if by_ceiling else "")
    if found.freed_today_bytes:
        yield Text(f"  freed at once      {human_bytes(found.freed_today_bytes)}, on all replicas of what they delete")
    yield Text(f"  Produce refused    {human_bytes(refused)}", "red" if refused else "")


def _topic_lines(found: Simulation, glyphs: Glyphs, room: int, top: int | None) -> Iterator[Text]:
    touched = [each for each in found.topics if each.by_ceiling_bytes or each.refused_bytes or each.by_retention_bytes]
    shown = touched if top is None else touched[:top]
    if shown:
        yield from column_lines(_columns(found, shown), glyphs, room)
    if len(shown) < len(touched):
        yield Text(f"  {glyphs.ellipsis} and {counted(len(touched) - len(shown), 'more topic')}: --all", "dim")
    if len(touched) < len(found.topics):
        yield Text(f"  {counted(len(found.topics) - len(touched), 'topic')} would lose nothing", "dim")
    yield Text()


def _columns(found: Simulation, topics: Sequence[TopicOutcome]) -> list[Column]:
    clusters = Column("cluster", [printable(topic.cluster_id) for topic in topics], is_name=True)
    has_clusters = len({topic.cluster_id for topic in found.topics}) > 1
    return [
        *([clusters] if has_clusters else []),
        Column("topic", [printable(topic.topic) for topic in topics], is_name=True),
        Column("replicas", [human_count(topic.replicas) for topic in topics], is_spare=True),
        Column("now", [human_bytes(topic.bytes) for topic in topics]),
        Column("a day", [human_bytes(topic.bytes_a_day) for topic in topics], is_spare=True),
        Column("by retention", [_size(topic.by_retention_bytes) for topic in topics]),
        *(column for column in _by_limits(topics) if set(column.cells) != {"-"}),
        Column("oldest now", [_age(found.now_ms, topic.oldest_ms) for topic in topics], is_spare=True),
        Column("then", [_age_then(found, topic) for topic in topics], is_spare=True),
    ]


def _by_limits(topics: Sequence[TopicOutcome]) -> list[Column]:
    """Those in which something stands are shown."""
    return [
        Column("by ceiling", [_size(topic.by_ceiling_bytes) for topic in topics]),
        Column("from", [_day(topic.ceiling_on_day) for topic in topics], is_left=True, is_spare=True),
        Column("refused", [_size(topic.refused_bytes) for topic in topics]),
        Column("from", [_day(topic.refused_on_day) for topic in topics], is_left=True, is_spare=True),
    ]


def _device_lines(found: Simulation, glyphs: Glyphs) -> Iterator[Text]:
    troubled = [each for each in found.devices if (each.full_on_day, each.ceiling_missed_on_day) != (None, None)]
    troubled.sort(key=_soonest)
    for device in troubled[:_SHOWN_DEVICES]:
        yield Text(f"  {glyphs.cross} {_trouble(device)}", "red" if device.full_on_day is not None else "yellow")
    if len(troubled) > _SHOWN_DEVICES:
        rest = len(troubled) - _SHOWN_DEVICES
        yield Text(f"  {glyphs.ellipsis} and {counted(rest, 'more volume')}: --output json", "dim")
    unknown = sum(device.used_bytes is None for device in found.devices)
    if unknown:
        yield Text(f"  {counted(unknown, 'volume')} of unknown size: neither ceiling nor fence was simulated", "yellow")
    if not troubled:
        yield Text("  no volume would refuse Produce, and every ceiling would be held", "green")


def _soonest(device: SimulatedDevice) -> tuple[int, int]:
    days = [day for day in (device.full_on_day, device.ceiling_missed_on_day) if day is not None]
    return min(days), -device.refused_bytes


def _trouble(device: SimulatedDevice) -> str:
    parts = []
    if device.full_on_day is not None:
        refused = f", {human_bytes(device.refused_bytes)} in all" if device.refused_bytes else ""
        parts.append(f"refuses Produce from {_day(device.full_on_day)} on{refused}")
    if device.ceiling_missed_on_day is not None:
        parts.append(
            f"cannot hold its ceiling of {device.ceiling_percent} % from {_day(device.ceiling_missed_on_day)} on"
        )
    place = f"{device.cluster_id}, broker {device.broker_id}, {device.log_dirs}"
    used = f"{_used(device, device.used_bytes)}, then {_used(device, device.used_bytes_at_end)}"
    return f"{printable(place)}: {'; '.join(parts)} ({used})"


def _used(device: SimulatedDevice, used: int | None) -> str:
    if used is None or device.total_bytes is None:
        return "unknown"
    return f"{human_percent(used_percent(device.total_bytes, device.total_bytes - used))} used"


def _end(found: Simulation) -> int | None:
    return None if found.now_ms is None else found.now_ms + found.what_if.days * _DAY_MS


def _age(now_ms: int | None, made_ms: int | None) -> str:
    return "-" if now_ms is None or made_ms is None else human_span(max(now_ms - made_ms, 0) / 1000)


def _age_then(found: Simulation, topic: TopicOutcome) -> str:
    """Within a day: what came in a step is as old as its end, and went with it."""
    end, made = _end(found), topic.oldest_ms_at_end
    if not found.what_if.days or end is None or made is None or end - made < _DAY_MS:
        return _age(end, made)
    return f"{_age(end - _DAY_MS, made)} to {_age(end, made)}"


def _day(day: int | None) -> str:
    return "-" if day is None else "today" if day == 0 else f"day {day}"


def _size(size: int) -> str:
    return human_bytes(size) if size else "-"

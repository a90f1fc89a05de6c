"""A simulation for people: what was asked, what every topic would lose, and which disks would not hold."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.text import Text

from brimline.cli.shared.columns import Column, column_lines
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging, room_on
from brimline.fleet.simulate.simulate import Simulation, TopicOutcome
from brimline.fleet.simulate.words import age_at, age_then, asked_for, day_name, trouble, troubled
from brimline.model import counted, human_bytes, human_count

_INDENT = 2
_SHOWN_DEVICES = 20


def write_simulation_table(found: Simulation, out: TextIO, *, top: int | None) -> None:
    """``top`` topics, or all of them with ``None``."""
    console = console_on(out)
    glyphs = glyphs_for(out)
    for line in simulation_lines(found, glyphs, room_on(console), top):
        print_hanging(console, line, _INDENT)


def simulation_lines(found: Simulation, glyphs: Glyphs, room: int, top: int | None) -> Iterator[Text]:
    yield Text.assemble(("What if", "bold"), "  ", printable(asked_for(found.what_if)))
    yield Text(f"  {counted(found.brokers, 'broker')}, {counted(len(found.devices), 'volume')}", "dim")
    yield Text()
    yield from _sum_lines(found)
    yield Text()
    yield from _topic_lines(found, glyphs, room, top)
    yield from _device_lines(found, glyphs)


def _sum_lines(found: Simulation) -> Iterator[Text]:
    by_retention = sum(device.by_retention_bytes for device in found.devices)
    by_ceiling = sum(device.by_ceiling_bytes for device in found.devices)
    refused = sum(device.refused_bytes for device in found.devices)
    today = sum(topic.by_ceiling_today_bytes for topic in found.topics)
    yield Text(f"  retention deletes  {human_bytes(by_retention)}")
    at_once = f", {human_bytes(today)} of it today" if today else ""
    whose = ", each broker by its own plan" if by_ceiling else ""
    yield Text(f"  ceilings delete    {human_bytes(by_ceiling)}{whose}{at_once}", "yellow" if by_ceiling else "")
    if found.freed_today_bytes:
        yield Text(f"  freed today        {human_bytes(found.freed_today_bytes)}, on all replicas of what they delete")
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
        Column("oldest now (est.)", [age_at(found.now_ms, topic.oldest_ms) for topic in topics], is_spare=True),
        Column("then (est.)", [age_then(found, topic) for topic in topics], is_spare=True),
    ]


def _by_limits(topics: Sequence[TopicOutcome]) -> list[Column]:
    """Those in which something stands are shown."""
    return [
        Column("by ceiling", [_size(topic.by_ceiling_bytes) for topic in topics]),
        Column("from", [day_name(topic.ceiling_on_day) for topic in topics], is_left=True, is_spare=True),
        Column("refused", [_size(topic.refused_bytes) for topic in topics]),
        Column("from", [day_name(topic.refused_on_day) for topic in topics], is_left=True, is_spare=True),
    ]


def _device_lines(found: Simulation, glyphs: Glyphs) -> Iterator[Text]:
    devices = troubled(found)
    for device in devices[:_SHOWN_DEVICES]:
        style = "red" if device.full_on_day is not None else "yellow"
        yield Text(f"  {glyphs.cross} {printable(trouble(device))}", style)
    if len(devices) > _SHOWN_DEVICES:
        rest = len(devices) - _SHOWN_DEVICES
        yield Text(f"  {glyphs.ellipsis} and {counted(rest, 'more volume')}: --output json", "dim")
    unknown = sum(device.used_bytes is None for device in found.devices)
    if unknown:
        yield Text(f"  {counted(unknown, 'volume')} of unknown size: not simulated", "yellow")
    if not devices:
        yield Text("  no Produce refused, every ceiling held", "green")


def _size(size: int) -> str:
    return human_bytes(size) if size else "-"

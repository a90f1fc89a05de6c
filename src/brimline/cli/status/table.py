"""A guard's state for people: the disks, each with its bar and its verdict, the gateway, the fullest partitions."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TextIO

from rich.text import Text

from brimline.cli.log_dirs.table import level_style
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging, room_on
from brimline.cli.status.table_parts import (
    cordon_lines,
    follower_lines,
    gateway_lines,
    interception_lines,
    notice_lines,
    reclaim_lines,
)
from brimline.documents.guard_state import (
    BallastDocument,
    GuardState,
    MovesDocument,
    PercentagesDocument,
    TierSizesDocument,
    TopicSizeDocument,
    VolumeDocument,
)
from brimline.documents.troubles import troubles
from brimline.model import Percent, counted, human_bytes, human_count, human_percent, human_span

_BAR = 24
_LISTED = 50
"""A guard lists no more topics: with so many, what is not listed may be Kafka's all the same."""
_WIDE = 110
"""From here on a volume fits on one line."""
_TOPICS = 3
"""Of each volume: the first line of an answer, which ``brimline topics`` has."""
_INDENT = 10
_STYLES = {"ok": "bold green", "full": "bold red", "offline": "bold red", "unknown": "bold magenta"}


def write_guard_table(state: GuardState, out: TextIO) -> None:
    console = console_on(out)
    glyphs = glyphs_for(out)
    for line in guard_lines(state, glyphs, room_on(console)):
        print_hanging(console, line, _INDENT)


def guard_lines(state: GuardState, glyphs: Glyphs, room: int = _WIDE) -> Iterator[Text]:
    """In a narrow ``room`` a volume takes a line more."""
    yield from _head(state, glyphs)
    for volume in state.volumes:
        yield from _volume_lines(volume, glyphs, room, refuses=_refuses(state))
        yield from _topic_lines(volume, state)
    for notice in state.notices:
        yield from notice_lines(notice)
    for ballast in state.ballast.volumes if state.ballast else ():
        yield Text.assemble("  ", _ballast_word(ballast), printable(ballast.does))
    if state.moves is not None:
        yield from _move_lines(state.moves)
    if state.cordon is not None:
        yield from cordon_lines(state.cordon)
    if state.followers is not None:
        yield from follower_lines(state.followers)
    yield Text()
    if state.reclaim is not None:
        yield from reclaim_lines(state.reclaim, glyphs)
        yield Text()
    if state.interception is not None:
        yield from interception_lines(state.interception)
    if state.gateway is not None:
        yield from gateway_lines(
            state.gateway,
            state.observed_at,
            glyphs,
            is_in_path=state.interception is None,
            is_broker_down=state.broker.is_down,
        )
        yield Text()
    yield from _retention_lines("Retention used (local logs)", state.retention.plain)
    yield from _retention_lines("Retention used (tiered partitions led here)", state.retention.tiered)
    yield from _tier_lines(state.retention.sizes)


def _head(state: GuardState, glyphs: Glyphs) -> Iterator[Text]:
    found = troubles(state)
    words = [(printable(str(each)), "bold red" if each.is_grave else "bold yellow") for each in found]
    verdict = Text(f" {glyphs.dot} ").join(Text(*each) for each in words or [("every volume has room", "bold green")])
    yield Text.assemble((f"Broker {state.broker.id}", "bold"), "  ", verdict)
    parts = (str(state.limits), state.guard.mode, f"guard {state.guard.version}")
    yield Text(f"  {f' {glyphs.dot} '.join(parts)}", "dim")
    if state.broker.failure is not None:
        yield Text(f"  {glyphs.cross} {printable(state.broker.failure.message)}", "red")
    elif not state.broker.connected:
        yield Text(f"  {glyphs.cross} the broker has not answered yet", "yellow")
    yield Text()


def _refuses(state: GuardState) -> bool:
    """Whether somebody is there to refuse what the guard has refused."""
    is_up = state.gateway is None or state.gateway.state is not None
    return is_up and (state.interception is None or state.interception.failure is None)


def _volume_lines(volume: VolumeDocument, glyphs: Glyphs, room: int, *, refuses: bool) -> Iterator[Text]:
    verdict = (f"{volume.state.upper():<8}", _STYLES.get(volume.state, "bold"))
    if volume.used_percent is None:
        yield Text.assemble("  ", verdict, printable(volume.failure.message if volume.failure else "not known"))
    else:
        full, rest = glyphs.bar(volume.used_percent / 100, _BAR)
        style = level_style(Percent(volume.used_percent)) if volume.state != "full" else "red"
        yield Text.assemble(
            "  ",
            verdict,
            (full, style),
            (rest, "dim"),
            "  ",
            (f"{human_percent(volume.used_percent):>7}", f"bold {style}"),
            f"  {human_bytes(volume.usable_bytes)} usable of {human_bytes(volume.total_bytes)}",
            f"  {_outlook(volume)}" if room >= _WIDE else "",
        )
        if room < _WIDE and _outlook(volume):
            yield Text(f"          {_outlook(volume)}")
    for log_dir in volume.log_dirs:
        yield Text(f"          {printable(log_dir)}", "dim")
    for act in volume.would_do:
        here = act.replace(f" to {', '.join(volume.log_dirs)}", "")
        is_empty_promise = not refuses and "observe mode" not in act
        yield Text(
            f"          {printable(here if not is_empty_promise else 'writes are NOT refused: see below')}", "yellow"
        )


def _topic_lines(volume: VolumeDocument, state: GuardState) -> Iterator[Text]:
    """What fills it; and where that is the question, how to see more."""
    shown = _largest(each for each in state.topics if each.log_dir in volume.log_dirs)
    used = (volume.total_bytes or 0) - (volume.usable_bytes or 0)
    foreign = used - sum(each.bytes for each in shown)
    if volume.state == "full" and 0 < len(state.topics) < _LISTED and foreign > used // 2:
        yield Text(f"          {human_bytes(foreign)} are not in Kafka's logs: look for other files on it", "yellow")
    if not shown:
        return
    largest = ", ".join(f"{each.topic} {_size(each)}" for each in shown[:_TOPICS])
    yield Text(f"          largest: {printable(largest)}", "dim")
    if volume.state == "full":
        command = f"brimline topics --config {shlex.quote(state.guard.config)}"
        yield Text(f"          why they do not shrink: {printable(command)}", "cyan")


def _largest(topics: Iterable[TopicSizeDocument]) -> list[TopicSizeDocument]:
    """Each topic once, though it may be in several log dirs of a volume."""
    found: dict[str, TopicSizeDocument] = {}
    for each in topics:
        there = found.get(each.topic)
        if there is not None:
            growths = (there.growth_bytes_per_hour, each.growth_bytes_per_hour)
            growth = None if None in growths else sum(filter(None, growths))
            each = replace(each, bytes=there.bytes + each.bytes, growth_bytes_per_hour=growth)
        found[each.topic] = each
    return sorted(found.values(), key=lambda each: -each.bytes)


def _size(topic: TopicSizeDocument) -> str:
    growth = topic.growth_bytes_per_hour
    if not growth:
        return human_bytes(topic.bytes)
    return f"{human_bytes(topic.bytes)} ({'+' * (growth > 0)}{human_bytes(growth)}/h)"


def _ballast_word(ballast: BallastDocument) -> tuple[str, str]:
    return ("BALLAST ", "bold green" if ballast.in_place else "bold yellow")


def _move_lines(moves: MovesDocument) -> Iterator[Text]:
    word, style = ("PAUSED", "bold yellow") if moves.paused else ("MOVING", "bold red")
    yield Text.assemble("  ", (f"{word:<8}", style), printable(moves.does))
    if moves.what_to_do is not None:
        yield Text(f"          {printable(moves.what_to_do)}", "cyan")


def _outlook(volume: VolumeDocument) -> str:
    if volume.state == "full":
        return volume.why_full
    if volume.state == "offline" or volume.fill_rate_bytes_per_second is None:
        return ""
    if volume.seconds_to_limit is None:
        return "not filling" if volume.fill_rate_bytes_per_second <= 0 else "no limit"
    return f"limit in {human_span(volume.seconds_to_limit)} at {human_bytes(int(volume.fill_rate_bytes_per_second))}/s"


def _tier_lines(sizes: TierSizesDocument | None) -> Iterator[Text]:
    if sizes is None or not (sizes.known or sizes.unknown):
        return
    unknown = f", {human_count(len(sizes.unknown))} unknown" if sizes.unknown else ""
    only_local, remote = human_bytes(sizes.only_local_bytes), human_bytes(sizes.remote_bytes)
    yield Text.assemble(
        ("Only on this disk (tiered replicas)", "bold"),
        f"  {only_local} of {counted(sizes.known, 'replica')}{unknown}; {remote} remote",
    )
    yield Text()


def _retention_lines(title: str, retention: PercentagesDocument | None) -> Iterator[Text]:
    if retention is None:
        return
    partitions = f"{counted(retention.partitions, 'partition')}, {human_count(retention.over_100)} over 100 %"
    unknown = f", {human_count(len(retention.unknown))} unknown" if retention.unknown else ""
    yield Text.assemble((title, "bold"), f"  {partitions}{unknown}")
    for highest in retention.highest:
        if highest.percent > 0:
            style = "yellow" if highest.percent > 100 else ""
            yield Text(f"  {highest.percent:>6} %  {printable(highest.topic)}-{highest.partition}", style)
    yield Text()

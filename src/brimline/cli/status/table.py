"""A guard's state for people: the disks, each with its bar and its verdict, the gateway, the fullest partitions."""

from collections.abc import Iterator
from typing import TextIO

from rich.text import Text

from brimline.cli.log_dirs.table import level_style
from brimline.cli.shared.glyphs import Glyphs, glyphs_for, printable
from brimline.cli.shared.output import console_on, print_hanging
from brimline.cli.status.table_parts import cordon_lines, follower_lines, gateway_lines, reclaim_lines
from brimline.documents.guard_state import (
    BallastDocument,
    GuardState,
    MovesDocument,
    PercentagesDocument,
    TierSizesDocument,
    VolumeDocument,
)
from brimline.model import Percent, human_bytes, human_count, human_percent, human_span

_BAR = 24
_INDENT = 10
_STYLES = {"ok": "bold green", "full": "bold red", "unknown": "bold magenta"}


def write_guard_table(state: GuardState, out: TextIO) -> None:
    console = console_on(out)
    glyphs = glyphs_for(out)
    for line in guard_lines(state, glyphs):
        print_hanging(console, line, _INDENT)


def guard_lines(state: GuardState, glyphs: Glyphs) -> Iterator[Text]:
    yield from _head(state, glyphs)
    for volume in state.volumes:
        yield from _volume_lines(volume, glyphs)
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
    if state.gateway is not None:
        yield from gateway_lines(state.gateway, state.observed_at, glyphs)
        yield Text()
    yield from _retention_lines("Retention used (local logs)", state.retention.plain)
    yield from _retention_lines("Retention used (tiered partitions led here)", state.retention.tiered)
    yield from _tier_lines(state.retention.sizes)


def _head(state: GuardState, glyphs: Glyphs) -> Iterator[Text]:
    full = sum(volume.state == "full" for volume in state.volumes)
    unknown = sum(volume.state == "unknown" for volume in state.volumes)
    if full or unknown:
        parts = [f"{full} full" if full else "", f"{unknown} unknown" if unknown else ""]
        verdict = (" and ".join(part for part in parts if part), "bold red")
    else:
        verdict = ("every volume has room", "bold green")
    yield Text.assemble((f"Broker {state.broker.id}", "bold"), "  ", verdict)
    limits = (
        f"full above {state.limits.max_used_percent} % used or below {human_bytes(state.limits.min_free_bytes)} usable"
    )
    yield Text(f"  {limits}  {glyphs.dot}  {state.guard.enforcement}  {glyphs.dot}  guard {state.guard.version}", "dim")
    if state.broker.failure is not None:
        yield Text(f"  {glyphs.cross} {printable(state.broker.failure.message)}", "red")
    elif not state.broker.connected:
        yield Text(f"  {glyphs.cross} the broker has not answered yet", "yellow")
    yield Text()


def _volume_lines(volume: VolumeDocument, glyphs: Glyphs) -> Iterator[Text]:
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
            f"  {_outlook(volume)}",
        )
    for log_dir in volume.log_dirs:
        yield Text(f"          {printable(log_dir)}", "dim")
    for act in volume.would_do:
        yield Text(f"          {printable(act)}", "yellow")


def _ballast_word(ballast: BallastDocument) -> tuple[str, str]:
    return ("BALLAST ", "bold green" if ballast.in_place else "bold yellow")


def _move_lines(moves: MovesDocument) -> Iterator[Text]:
    word, style = ("PAUSED", "bold yellow") if moves.paused else ("MOVING", "bold red")
    yield Text.assemble("  ", (f"{word:<8}", style), printable(moves.does))
    if moves.what_to_do is not None:
        yield Text(f"          {printable(moves.what_to_do)}", "cyan")


def _outlook(volume: VolumeDocument) -> str:
    if volume.state == "full":
        return "over " + " and ".join(volume.breaches) if volume.breaches else "waits for the release margin"
    if volume.fill_rate_bytes_per_second is None:
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
        f"  {only_local} of {human_count(sizes.known)} replicas{unknown}; {remote} remote",
    )
    yield Text()


def _retention_lines(title: str, retention: PercentagesDocument | None) -> Iterator[Text]:
    if retention is None:
        return
    counted = f"{human_count(retention.partitions)} partitions, {human_count(retention.over_100)} over 100 %"
    unknown = f", {human_count(len(retention.unknown))} unknown" if retention.unknown else ""
    yield Text.assemble((title, "bold"), f"  {counted}{unknown}")
    for highest in retention.highest:
        if highest.percent > 0:
            style = "yellow" if highest.percent > 100 else ""
            yield Text(f"  {highest.percent:>6} %  {printable(highest.topic)}-{highest.partition}", style)
    yield Text()

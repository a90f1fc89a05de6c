"""The reclaim of a running guard for people: of every device what is done about its ceiling."""

from collections.abc import Iterator

from rich.text import Text

from brimline.cli.glyphs import Glyphs, printable
from brimline.cli.reclaim_shown import ShownDevice, ShownReclaim
from brimline.model import human_bytes, human_count

_INDENT = " " * 10
_CALM = ("under-ceiling", "off")


def reclaim_lines(reclaim: ShownReclaim, glyphs: Glyphs) -> Iterator[Text]:
    does = "deletes the oldest segments" if reclaim.mode == "apply" else "says what it would delete"
    paused = [("  ", ""), ("PAUSED", "bold yellow")] if reclaim.paused_by is not None else []
    yield Text.assemble(("Reclaim", "bold"), f"  ceiling of {reclaim.ceiling_percent} %  {glyphs.dot}  {does}", *paused)
    for device in reclaim.devices:
        yield from _device_lines(device)


def _device_lines(device: ShownDevice) -> Iterator[Text]:
    yield Text.assemble(f"  {printable(', '.join(device.log_dirs))}  ", (device.state, _style(device)))
    yield Text(f"{_INDENT}{printable(device.sentence)}", "" if device.state in _CALM else "yellow")
    if device.floor is not None:
        yield Text(f"{_INDENT}{printable(device.floor)}", "red")
    if device.last_cycle is not None:
        freed = f"{human_bytes(device.freed_bytes)} in {human_count(device.freed_segments)} segments"
        yield Text(
            f"{_INDENT}came back since its start: {freed}; last cycle {printable(device.last_cycle)} (brimline ledger)",
            "dim",
        )


def _style(device: ShownDevice) -> str:
    if device.is_troubled:
        return "bold red"
    return "bold green" if device.state in _CALM else "bold yellow"

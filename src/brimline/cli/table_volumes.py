"""A broker's volumes: how full each one is, and which log dirs lie on it."""

from collections.abc import Iterator

from rich.text import Text

from brimline.cli.glyphs import Glyphs, printable, wrapped
from brimline.model import (
    BrokerLogDirs,
    LogDirDescription,
    Percent,
    Volume,
    human_bytes,
    human_count,
    human_percent,
    volumes_of,
)
from brimline.model.kafka_errors import KAFKA_STORAGE_ERROR

_WIDEST_BAR = 40
_NARROWEST_BAR = 5
_WIDEST_PATH = 40  # that a column is made for; a longer path moves only its own numbers
_NARROWEST_PATH = 8
_BESIDE_THE_BAR = 56  # indent, percentage and the three sizes at their longest, and a column to spare
_WARN_AT, _ALARM_AT = Percent(80.0), Percent(90.0)


def level_style(percent: Percent) -> str:
    return "green" if percent < _WARN_AT else "yellow" if percent < _ALARM_AT else "red"


def volume_lines(answer: BrokerLogDirs, glyphs: Glyphs, room: int) -> Iterator[Text]:
    bar_width = min(max(room - _BESIDE_THE_BAR, _NARROWEST_BAR), _WIDEST_BAR)
    held = _held(answer)
    path_width = min(max((len(path) for path in answer.log_dirs), default=0), _WIDEST_PATH)
    for volume in volumes_of(answer.log_dirs.values()):
        yield from _volume_lines(volume, glyphs, bar_width, room)
        shared = len(volume.log_dirs) > 1
        for position, log_dir in enumerate(volume.log_dirs, start=1):
            branch = glyphs.last_branch if position == len(volume.log_dirs) else glyphs.branch
            mark = f"{branch} " if shared else "  "
            yield _log_dir_line(log_dir, mark, held[log_dir.path], glyphs, path_width, room)
        if shared:
            yield Text(f"    {len(volume.log_dirs)} log dirs share this volume; it is counted once", "dim")


def _held(answer: BrokerLogDirs) -> dict[str, str]:
    """What each log dir holds, the numbers of one broker aligned; empty where the broker could not look."""
    readable = [log_dir for log_dir in answer.log_dirs.values() if log_dir.error is None]
    counts = {log_dir.path: human_count(len(log_dir.replicas)) for log_dir in readable}
    sizes = {log_dir.path: human_bytes(log_dir.replica_bytes) for log_dir in readable}
    count_width = max((len(count) for count in counts.values()), default=0)
    size_width = max((len(size) for size in sizes.values()), default=0)
    return dict.fromkeys(answer.log_dirs, "") | {
        path: f"{count:>{count_width}} {'replica ' if count == '1' else 'replicas'}  {sizes[path]:>{size_width}}"
        for path, count in counts.items()
    }


def _volume_lines(volume: Volume, glyphs: Glyphs, bar_width: int, room: int) -> Iterator[Text]:
    percent = volume.used_percent
    if percent is None:
        error = volume.log_dirs[0].error
        why = "" if error is not None else ": the broker does not say (needs Kafka 3.3)"
        yield from (Text(line, "dim") for line in wrapped("  ", f"volume of unknown size{why}", room))
        return
    full, rest = glyphs.bar(percent / 100, bar_width)
    style = level_style(percent)
    yield Text.assemble(
        "  ",
        (full, style),
        (rest, "dim"),
        "  ",
        (f"{human_percent(percent):>7}", f"bold {style}"),
        f"  {human_bytes(volume.used_bytes)} used of {human_bytes(volume.total_bytes)}, ",
        (f"{human_bytes(volume.usable_bytes)} usable", "bold"),
    )


def _log_dir_line(
    log_dir: LogDirDescription, branch: str, held: str, glyphs: Glyphs, path_width: int, room: int
) -> Text:
    beside = [(f"  {held}", "")] if held else []
    if log_dir.error is not None:
        offline = "offline: " if log_dir.error.code == KAFKA_STORAGE_ERROR else ""
        beside.append((f"  {glyphs.cross} {offline}{log_dir.error}", "red"))
    if log_dir.is_cordoned:
        beside.append(("  cordoned", "yellow"))
    left = room - 2 - len(branch) - sum(len(text) for text, _ in beside)
    path = glyphs.without_beginning(printable(log_dir.path), max(left, _NARROWEST_PATH))
    return Text.assemble("  ", (branch, "dim"), path.ljust(min(path_width, left)), *beside)

"""Numbers that mean something, and the only place that writes one for people.

A bare ``int`` that means bytes next to one that means an offset is a bug waiting, so each has a nominal type.
Sizes are read and written in the units of the operator's other tools: ``MB`` is a million bytes, ``MiB`` is
2**20, and a lone ``M`` is 2**20 as in ``du`` and ``df``.
"""

import re
from enum import IntEnum
from typing import NewType

Bytes = NewType("Bytes", int)
Percent = NewType("Percent", float)
Offset = NewType("Offset", int)
BrokerId = NewType("BrokerId", int)


class Labelled(IntEnum):
    """The label is the stable name in files and on the wire, the number is not."""

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtpe", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtpe", start=1)},
    **{prefix: 1024**power for power, prefix in enumerate("kmgtpe", start=1)},
}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SIZE = re.compile(r"(\d{1,40}(?:\.\d{1,40})?)\s*([a-z]*)", re.IGNORECASE)


def parse_bytes(text: str) -> Bytes:
    """``"256MB"`` → 256000000, ``"1.5GiB"`` → 1610612736, ``"64M"`` → 67108864."""
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a size: write bytes, or a number with a unit such as 256MB or 1GiB")
    return Bytes(int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit)


def human_bytes(size: Bytes | int | None) -> str:
    """Three significant digits in binary units: 1538476 → ``1.47 MiB``. Unknown is ``-``, never 0."""
    if size is None:
        return "-"
    if abs(size) < 1024:
        return f"{size} B"
    scaled = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        scaled /= 1024
        if abs(scaled) < 999.5 or unit == "EiB":
            break
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0  # what is rounded up has a digit more
    return f"{scaled:.{digits}f} {unit}"


def used_percent(total: Bytes | int, usable: Bytes | int) -> Percent:
    """Share of a volume that is not usable. A volume of no bytes has nothing left: 100.

    Odd file systems report more usable bytes than there are in all; then nothing is used.
    """
    return Percent(100.0 if total <= 0 else max(total - usable, 0) * 100.0 / total)


def human_percent(percent: Percent | float | None) -> str:
    """One decimal, cut and not rounded, so that 99.96 never reads as 100.0 %."""
    return "-" if percent is None else f"{int(percent * 10) / 10:.1f} %"


def human_span(seconds: float) -> str:
    """A length of time in the one unit that tells most: 7000 → ``117 min``."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"


def human_count(count: int) -> str:
    """A number of things: 12345 → ``12,345``."""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 segment``, ``12,345 segments``."""
    return f"{human_count(count)} {noun if count == 1 else plural or f'{noun}s'}"

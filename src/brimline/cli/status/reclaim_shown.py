"""The reclaim in a guard's state, read into the shape that a table needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDevice:
    log_dirs: tuple[str, ...]
    state: str
    is_troubled: bool
    sentence: str
    floor: str | None
    """What makes its ceiling impossible, if it is."""
    last_cycle: str | None
    freed_bytes: int
    freed_segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReclaim:
    ceiling_percent: int
    mode: str
    paused_by: str | None
    devices: tuple[ShownDevice, ...]

    @property
    def is_healthy(self) -> bool:
        return self.paused_by is None and not any(device.is_troubled for device in self.devices)


def shown_reclaim(reclaim: Mapping[str, Any] | None) -> ShownReclaim | None:
    """``None`` without a ceiling, and of a guard that does not know of one."""
    if reclaim is None:
        return None
    paused = reclaim["paused"]
    return ShownReclaim(
        ceiling_percent=reclaim["ceilingPercent"],
        mode=reclaim["mode"],
        paused_by=None if paused is None else paused["by"],
        devices=tuple(_device(device) for device in reclaim["devices"]),
    )


def _device(device: Mapping[str, Any]) -> ShownDevice:
    floor, last, total = device["floor"], device["lastCycle"], device["sinceStart"]
    return ShownDevice(
        log_dirs=tuple(device["logDirs"]),
        state=device["state"],
        is_troubled=device["troubled"],
        sentence=device["does"],
        floor=floor["sentence"] if floor is not None and floor["impossible"] else None,
        last_cycle=None if last is None else last["cycle"],
        freed_bytes=total["freedBytes"],
        freed_segments=total["freedSegments"],
    )

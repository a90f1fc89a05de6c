"""What of a guard's state asks for attention, the worst first: what ``brimline status`` leads with, and ends by.

A disk that fills is one as soon as it would be full within the hour, unless a ceiling holds it: reclaim deletes, and
use is nearer to the ceiling than to the limit; then the rate between two of its cycles means little. One that has a
minute left is one in any case. The alert KafkaDiskFullWithinTheHour goes by the same rule.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from brimline.documents.guard_state import GuardState, VolumeDocument
from brimline.model import human_span

_SOON = 3600.0
_AT_ONCE = 60.0
_HOLDING = ("under-ceiling", "trimming", "waiting-for-space")
"""States of reclaim in which a ceiling is held (``guard.reclaim.report.Doing``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """``is_grave``: something does not work now. ``what`` may be empty."""

    word: str
    what: str = ""
    is_grave: bool = True

    def __str__(self) -> str:
        return f"{self.word}: {self.what}" if self.what else self.word


def troubles(state: GuardState) -> list[Trouble]:
    """None: nothing here asks for anybody's attention."""
    said = (Trouble(word=each.headline) for each in state.notices if each.headline)
    return [*_of_broker(state), *said, *_of_disks(state), *_of_the_rest(state)]


def _of_broker(state: GuardState) -> Iterator[Trouble]:
    if state.broker.failure is not None:
        yield Trouble(word="DOWN" if state.broker.is_down else "NO ANSWER")
    if state.gateway is not None and state.gateway.state is None:
        yield Trouble(word="GATEWAY DOWN")
    if state.interception is not None and state.interception.failure is not None:
        yield Trouble(word="NO INTERCEPTION", what="writes to a full disk are not refused")
    if state.guard.dead_tasks:
        yield Trouble(word="TASK DEAD", what=", ".join(state.guard.dead_tasks))


def _of_disks(state: GuardState) -> Iterator[Trouble]:
    for word in ("full", "unknown"):
        found = [path for volume in state.volumes if volume.state == word for path in volume.log_dirs]
        if found:
            yield Trouble(word=word.upper(), what=", ".join(found))
    for volume in sorted(state.volumes, key=lambda each: each.seconds_to_limit or 0.0):
        if volume.state == "ok" and volume.seconds_to_limit is not None and _fills(volume, state):
            paths, span = ", ".join(volume.log_dirs), human_span(volume.seconds_to_limit)
            yield Trouble(word="FILLING", what=f"{paths} full in {span}", is_grave=volume.seconds_to_limit < _AT_ONCE)


def _fills(volume: VolumeDocument, state: GuardState) -> bool:
    seconds = volume.seconds_to_limit
    return seconds is not None and seconds < (_AT_ONCE if _is_held(volume, state) else _SOON)


def _is_held(volume: VolumeDocument, state: GuardState) -> bool:
    reclaim, total, usable = state.reclaim, volume.total_bytes, volume.usable_bytes
    if reclaim is None or total is None or usable is None or volume.bytes_to_limit is None:
        return False
    is_holding = any(each.device == volume.device and each.state in _HOLDING for each in reclaim.devices)
    above_ceiling = total - usable - total * reclaim.ceiling_percent // 100
    return is_holding and abs(above_ceiling) < volume.bytes_to_limit


def _of_the_rest(state: GuardState) -> Iterator[Trouble]:
    full = {path for volume in state.volumes if volume.state in ("full", "offline") for path in volume.log_dirs}
    if state.gateway is not None and state.gateway.state is not None:
        fenced = dict.fromkeys(fence.target for fence in state.gateway.state.fences if fence.log_dir not in full)
        if fenced:
            yield Trouble(word="FENCED", what=", ".join(fenced))
    if state.followers is not None and state.followers.full:
        yield Trouble(word="NO ROOM", what=", ".join(f"broker {each.broker}" for each in state.followers.full))
    if state.reclaim is not None:
        troubled = [path for device in state.reclaim.devices if device.troubled for path in device.log_dirs]
        if troubled:
            yield Trouble(word="CEILING NOT HELD", what=", ".join(troubled))
        if state.reclaim.paused is not None:
            yield Trouble(word="RECLAIM PAUSED", is_grave=False)

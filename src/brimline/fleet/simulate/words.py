"""A simulation in words, for a terminal and for a page: what was asked, what would go wrong, how old the rest is."""

from brimline.fleet.simulate.simulate import SimulatedDevice, Simulation, TopicOutcome
from brimline.fleet.simulate.what_if import RetentionRule, WhatIf
from brimline.model import counted, human_bytes, human_percent, human_span, used_percent
from brimline.model.reclaim import CEILING_OFF

_DAY_MS = 86_400_000


def asked_for(what_if: WhatIf) -> str:
    parts = [
        "" if what_if.ceiling_percent is None else _off_at_100("a ceiling of", what_if.ceiling_percent, "no ceiling"),
        ""
        if what_if.max_used_percent is None
        else _off_at_100("Produce refused above", what_if.max_used_percent, "no limit of used percent"),
        *(f"retention of {rule.pattern.pattern}: {_limits(rule)}" for rule in what_if.retention),
    ]
    asked = ", ".join(part for part in parts if part) or "all limits unchanged"
    return f"{asked}; for {counted(what_if.days, 'day')}"


def unmatched(found: Simulation) -> list[str]:
    """Patterns for retention that match no topic: misspelt, most likely. Where no broker is known, none is."""
    patterns = [rule.pattern for rule in found.what_if.retention] if found.brokers else []
    names = {topic.topic for topic in found.topics}
    return [pattern.pattern for pattern in patterns if not any(map(pattern.fullmatch, names))]


def _off_at_100(what: str, percent: int, off: str) -> str:
    return off if percent >= CEILING_OFF else f"{what} {percent} %"


def _limits(rule: RetentionRule) -> str:
    size, span = rule.retention_bytes, rule.retention_ms
    parts = [
        "" if size is None else human_bytes(size) if size >= 0 else "any size",
        "" if span is None else human_span(span / 1000) if span >= 0 else "for ever",
    ]
    return " and ".join(part for part in parts if part) or "as it is"


def troubled(found: Simulation) -> list[SimulatedDevice]:
    """Those that would refuse Produce, or could not hold their ceiling; the soonest first."""
    each = [device for device in found.devices if (device.full_on_day, device.ceiling_missed_on_day) != (None, None)]
    return sorted(each, key=_soonest)


def _soonest(device: SimulatedDevice) -> tuple[int, int]:
    days = [day for day in (device.full_on_day, device.ceiling_missed_on_day) if day is not None]
    return min(days), -device.refused_bytes


def trouble(device: SimulatedDevice) -> str:
    parts = []
    if device.full_on_day is not None:
        refused = f", {human_bytes(device.refused_bytes)} in all" if device.refused_bytes else ""
        parts.append(f"refuses Produce from {day_name(device.full_on_day)} on{refused}")
    if device.ceiling_missed_on_day is not None:
        parts.append(
            f"cannot hold its ceiling of {device.ceiling_percent} % from {day_name(device.ceiling_missed_on_day)} on"
        )
    place = f"{device.cluster_id}, broker {device.broker_id}, {device.log_dirs}"
    used = f"{_used(device, device.used_bytes)} used now, {_used(device, device.used_bytes_at_end)} at the end"
    return f"{place}: {'; '.join(parts)} ({used})"


def _used(device: SimulatedDevice, used: int | None) -> str:
    if used is None or device.total_bytes is None:
        return "unknown"
    return human_percent(used_percent(device.total_bytes, device.total_bytes - used))


def _end(found: Simulation) -> int | None:
    return None if found.now_ms is None else found.now_ms + found.what_if.days * _DAY_MS


def age_at(now_ms: int | None, made_ms: int | None) -> str:
    return "-" if now_ms is None or made_ms is None else human_span(max(now_ms - made_ms, 0) / 1000)


def age_then(found: Simulation, topic: TopicOutcome) -> str:
    """Within a day: what came in a step is as old as its end, and went with it."""
    end, made = _end(found), topic.oldest_ms_at_end
    if not found.what_if.days or end is None or made is None:
        return age_at(end, made)
    if end - made < _DAY_MS:  # only the last step is left
        return f"under {human_span(_DAY_MS / 1000)}"
    return f"{age_at(end - _DAY_MS, made)} to {age_at(end, made)}"


def day_name(day: int | None) -> str:
    return "-" if day is None else "today" if day == 0 else f"day {day}"

"""When a cycle waits although something would go: after a change that may be a mistake.

**Invariant.** Nothing is deleted because of a change that nobody has looked at, if it would delete much and the disk
can wait. Two kinds of change:

- *of the settings*: they are not those by which the device was reclaimed last, and by them more than
  ``settings_percent`` of it would go. A typo (8 for 80) is such a change; so is a first ceiling on a full disk.
- *of the device*: files that are not Kafka's have grown by more than ``foreign_percent`` of it since the last look.
  What somebody has just copied there may be gone in an hour; what is trimmed for it is gone for good.

A hold ends when its reason does, when a person confirms it (``brimline reclaim --apply``), when it has stood unchanged
for so long, or when the device reaches its fence. Then what is seen is remembered, as the measure of the next change.
"""

from dataclasses import dataclass
from enum import Enum

from brimline.model import human_bytes, human_span
from brimline.model.reclaim import DeviceFacts
from brimline.model.reclaim_plan import DevicePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRules:
    """Percent of the device; ``None``: no such hold. ``seconds``: how long an unchanged one stands."""

    settings_percent: int | None = None
    foreign_percent: int | None = None
    seconds: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a device was reclaimed by last: the settings, as a text, and how much of it was not Kafka's."""

    settings: str | None = None
    foreign_bytes: int | None = None


class HoldKind(Enum):
    SETTINGS = "settings"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """``since`` and ``seconds`` are of the clock that never jumps. ``settings``: those that it stands for."""

    kind: HoldKind
    settings: str | None
    since: float
    why: str

    def sentence(self, rules: HoldRules, seconds: float) -> str:
        left = human_span(max(self.since + rules.seconds - seconds, 0.0))
        return f"held: {self.why}; brimline reclaim --apply confirms it, else it resumes in {left} or at the fence"


def next_hold(
    before: Hold | None,
    seen: Seen,
    now: Seen,
    facts: DeviceFacts,
    plan: DevicePlan,
    rules: HoldRules,
    seconds: float,
) -> Hold | None:
    """``None``: the cycle may begin, and ``now`` is to be remembered."""
    if facts.total_bytes is None or facts.used_bytes is None or facts.used_bytes > (facts.fence_bytes or 0):
        return None
    found = _of_settings(seen, now, facts.total_bytes, plan, rules) or _of_foreign(seen, now, facts.total_bytes, rules)
    if found is None:
        return None
    kind, why = found
    if before is None or (before.kind, before.settings) != (kind, now.settings):
        return Hold(kind=kind, settings=now.settings, since=seconds, why=why)
    return None if seconds - before.since >= rules.seconds else before


def _of_settings(seen: Seen, now: Seen, total: int, plan: DevicePlan, rules: HoldRules) -> tuple[HoldKind, str] | None:
    percent = rules.settings_percent
    if percent is None or seen.settings == now.settings or plan.wanted_bytes * 100 <= total * percent:
        return None
    which = "they are the first here" if seen.settings is None else f"they were {seen.settings}"
    return HoldKind.SETTINGS, (
        f"with the new settings ({now.settings}; {which}) {human_bytes(plan.wanted_bytes)} would be deleted, more "
        f"than {percent} % of the volume (brimline.reclaim.hold.percent)"
    )


def _of_foreign(seen: Seen, now: Seen, total: int, rules: HoldRules) -> tuple[HoldKind, str] | None:
    percent = rules.foreign_percent
    if percent is None or seen.foreign_bytes is None or now.foreign_bytes is None:
        return None
    grown = now.foreign_bytes - seen.foreign_bytes
    if grown * 100 <= total * percent:
        return None
    return HoldKind.FOREIGN, (
        f"files that are not Kafka's have grown by {human_bytes(grown)}, more than {percent} % of the volume "
        "(brimline.reclaim.foreign.jump.percent): find them before records are deleted for them"
    )

"""What reclaim goes by, from the properties file, and where the limits that a plan was made under are other ones.

The brakes of the file count, whatever a plan says: they are what must stay. A ceiling by hand is the plan's own, and a
lower one deletes more than the file would. So whoever carries such a plan out says its ceiling once more: a file that
came from elsewhere does not decide that alone.
"""

import math
from dataclasses import dataclass, field

from brimline.act.plan_file import CeilingFrom, FiledPlan
from brimline.act.trims.rules import TrimPace
from brimline.decide.reclaim.bounds import ReclaimDelays
from brimline.decide.reclaim.holding import HoldRules
from brimline.model import BadInput, Bytes
from brimline.model.reclaim import CEILING_OFF, ReclaimPolicy
from brimline.settings import keys
from brimline.settings.config import GuardConfig

JITTER = 0.25
"""The share of the interval within which guards that are due together begin, each when chance has it."""
_LARGEST_BATCH = 256 << 20
_BATCHES_PER_VOLUME = 25
_BETWEEN_BATCHES = 0.25
_LOOKS_APART = 2.0
"""So many times as long as a look takes is waited between two of them: a large broker is not kept busy by it."""
_PATIENCE = 120.0
_SOONEST_LOOK, _LATEST_LOOK = 0.5, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimSettings:
    """``is_applied``: what is planned is done, and not only said. Times in seconds."""

    policy: ReclaimPolicy
    is_applied: bool
    interval: float
    retention_check: float
    delete_delay: float
    hold: HoldRules = field(default_factory=HoldRules)

    @classmethod
    def of(cls, config: GuardConfig) -> "ReclaimSettings":
        return cls(
            policy=config.reclaim_policy,
            is_applied=config.text(keys.RECLAIM_MODE) == keys.APPLY,
            interval=config.seconds(keys.RECLAIM_INTERVAL),
            retention_check=config.broker.retention_check_interval,
            delete_delay=config.broker.segment_delete_delay,
            hold=HoldRules(
                settings_percent=_percent(config.number(keys.RECLAIM_HOLD_PERCENT)),
                foreign_percent=_percent(config.number(keys.RECLAIM_FOREIGN_PERCENT)),
                seconds=config.seconds(keys.RECLAIM_HOLD_MS),
            ),
        )

    @property
    def is_off(self) -> bool:
        return self.policy.ceiling_percent >= CEILING_OFF

    def delays(self, total_bytes: Bytes, look_took: float, bytes_per_second: float) -> ReclaimDelays:
        """Of a device of that size that is written to at that rate."""
        pace, jitter = self.pace(total_bytes, look_took), self.interval * JITTER
        in_a_cycle = max(bytes_per_second, 0.0) * (self.interval + jitter)
        batches = math.ceil(in_a_cycle / pace.bytes_per_batch) if pace.bytes_per_batch else 0
        return ReclaimDelays(
            cycle=self.interval,
            jitter=jitter,
            survey=look_took,
            trims=batches * (pace.between_batches + look_took),
            retention_check=self.retention_check,
            delete_delay=self.delete_delay,
        )

    @property
    def text(self) -> str:
        """What decides how much goes, for whoever compares it with what was before."""
        return settings_text(self.policy)

    def pace(self, total_bytes: Bytes, look_took: float = 0.0) -> TrimPace:
        """Up to 1 GiB a second, or 16 % of a small volume: before every batch it is looked if it is needed."""
        until_gone = self.retention_check + self.delete_delay
        return TrimPace(
            space_patience=2 * until_gone + _PATIENCE,
            bytes_per_batch=Bytes(min(_LARGEST_BATCH, total_bytes // _BATCHES_PER_VOLUME)),
            between_batches=max(_BETWEEN_BATCHES, _LOOKS_APART * look_took),
            between_looks=min(max(until_gone / 4, _SOONEST_LOOK), _LATEST_LOOK),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A property, its value in the plan and in the broker's file, and which of the two counts."""

    key: str
    in_plan: str
    in_file: str
    plan_counts: bool

    @property
    def counts(self) -> str:
        return "plan" if self.plan_counts else "properties"

    @property
    def sentence(self) -> str:
        counts = "the plan counts" if self.plan_counts else "the properties count"
        return f"{self.key} is {self.in_plan} in the plan and {self.in_file} in the properties; {counts}"


def differences(plan: FiledPlan, own: ReclaimPolicy) -> tuple[Difference, ...]:
    """``own`` is the policy of the properties file."""
    mine, theirs = _values(own), _values(plan.policy)
    return tuple(
        Difference(
            key=key,
            in_plan=theirs[key],
            in_file=mine[key],
            plan_counts=key == keys.RETENTION_PERCENT.name and plan.ceiling_from is CeilingFrom.HAND,
        )
        for key in mine
        if mine[key] != theirs[key]
    )


def refuse_unsaid_ceiling(plan: FiledPlan, said: int | None, own: ReclaimPolicy, *, is_applied: bool) -> None:
    """``said``: on the command line. Raises ``BadInput``."""
    ceiling, is_by_hand = plan.policy.ceiling_percent, plan.ceiling_from is CeilingFrom.HAND
    if said is not None and not (is_by_hand and said == ceiling):
        whose = "its own ceiling" if is_by_hand else "the ceiling of the properties"
        raise BadInput(f"the plan is for {whose}, which was {ceiling} % when it was made, and not for {said} %")
    if is_applied and said is None and is_by_hand and ceiling not in (own.ceiling_percent, CEILING_OFF):
        raise BadInput(
            f"the plan has a ceiling of its own, {ceiling} %, where the properties have {own.ceiling_percent} %: "
            f"nothing was deleted; look at it without --apply, then repeat it: --apply --plan FILE --ceiling {ceiling}"
        )


def settings_text(policy: ReclaimPolicy) -> str:
    """ceiling 80 %, min.retention.ms 86400000, protected compacted,forever"""
    flags = {"compacted": policy.spares_compacted, "forever": policy.spares_for_ever}
    flags |= {"transactions": policy.spares_transactions, "none-for-foreign-files": policy.only_curable}
    named = ",".join([*(name for name, is_set in flags.items() if is_set), *policy.protected_topics])
    return (
        f"ceiling {policy.ceiling_percent} %, min.retention.ms {policy.min_retention_ms}, min.retention.bytes "
        f"{policy.min_retention_bytes}, protected {named or 'nothing'}"
    )


def _percent(number: int) -> int | None:
    return None if number < 0 else number


def _values(policy: ReclaimPolicy) -> dict[str, str]:
    """As they stand in a properties file."""
    most = policy.max_bytes_per_cycle
    return {
        keys.RETENTION_PERCENT.name: str(policy.ceiling_percent),
        keys.RECLAIM_MIN_RETENTION_MS.name: str(policy.min_retention_ms),
        keys.RECLAIM_MIN_RETENTION_BYTES.name: str(policy.min_retention_bytes),
        keys.RECLAIM_MAX_BYTES.name: "-1" if most is None else str(most),
        keys.RECLAIM_PROTECTED.name: ",".join(policy.protected_topics) or "empty",
    }

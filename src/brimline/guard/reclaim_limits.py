"""Where the limits that a plan was made under are not those of the broker's properties file.

The brakes of the file count, whatever a plan says: they are what must stay. A ceiling by hand is the plan's own, and a
lower one deletes more than the file would. So whoever carries such a plan out says its ceiling once more: a file that
came from elsewhere does not decide that alone.
"""

from dataclasses import dataclass

from brimline.act.plan_file import CeilingFrom, FiledPlan
from brimline.guard import keys
from brimline.model import BadInput
from brimline.model.reclaim import CEILING_OFF, ReclaimPolicy


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

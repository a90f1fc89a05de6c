"""A survey with the plan that follows from it: what a reclaim of the moment would take."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

from brimline.decide.reclaim import plan as reclaim
from brimline.decide.reclaim.bounds import BelievedTime, begins_at
from brimline.decide.reclaim.floor import Floor, floor_of
from brimline.decide.reclaim.tables import BrokerTables
from brimline.disks.task import Look
from brimline.guard.broker_client import BrokerClient
from brimline.guard.clock_memory import ClockMemory
from brimline.guard.reclaim.hanging import Hanging, HangingWatch, TransactionsClient
from brimline.guard.reclaim.inherited import InheritedBrakes
from brimline.guard.survey import BrokerSurveyor, Survey, SurveyClient, milliseconds
from brimline.model import Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.model.reclaim import ReclaimPolicy
from brimline.model.reclaim_plan import DevicePlan, ReclaimPlan, ReclaimReason
from brimline.model.scan import FolderKind
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.observe.volumes import look_at
from brimline.service.clock import Clock
from brimline.settings.config import GuardConfig

_MOST_WATCHED = 20_000
"""So many log starts are read before a batch. Who holds more has others' trims counted with the next plan."""
_OTHERS_KNOW_MORE_MS = 60_000
"""So far ahead of us a task of another device filed the time: it was told that the clock is right."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReclaimSurvey(Survey):
    """Rows of ``plan.devices`` are the same devices, too. ``brakes``: sentences about those that others left here."""

    plan: ReclaimPlan
    brakes: tuple[str, ...] = ()
    hanging: tuple[Hanging, ...] = ()

    def device_plan(self, device: str) -> DevicePlan:
        return self.plan.devices[self.device_row(device)]

    def floor(self, row: int) -> Floor | None:
        """Named by its log dirs, for people; ``None`` when the device's space is not known."""
        found = floor_of(self.tables.tables, self.plan, row, self.ballast_bytes[row])
        return (
            None if found is None else replace(found, device=f"the volume of {', '.join(self.volumes[row].log_dirs)}")
        )


class ReclaimClient(SurveyClient, TransactionsClient, Protocol):
    """What a plan asks of the cluster."""

    def with_plain_topics(self, facts: ReplicaFacts) -> ReplicaFacts: ...

    def second_clock_ms(self) -> int | None: ...


class Surveyor(BrokerSurveyor):
    def __init__(
        self,
        client: ReclaimClient,
        clock: Clock,
        look: Look = look_at,
        inherited: InheritedBrakes | None = None,
        memory: ClockMemory | None = None,
    ) -> None:
        super().__init__(client, clock, look)
        self._inherited = inherited
        self._hanging = HangingWatch(client)
        self._reclaim_client = client
        self._memory = memory
        self._has_begun = False
        self.policy: ReclaimPolicy | None = None
        """What the last plan was made by."""

    @classmethod
    def of(cls, config: GuardConfig, client: BrokerClient, clock: Clock, *, writes: bool) -> "Surveyor":
        """With what the state dir remembers. ``writes``: else nothing is filed there, as for a dry run."""
        inherited = InheritedBrakes(config, client, clock, writes=writes)
        memory = ClockMemory(config.state_dir, config.node_id, writes=writes)
        return cls(client, clock, inherited=inherited, memory=memory)

    def survey(self, policy: ReclaimPolicy, log_dirs: Iterable[str]) -> ReclaimSurvey:
        """``inspect`` and the plan. Raises ``ObservationFailed`` also for files that no plan can be made of, and
        ``NotRecorded`` where brakes of others cannot be filed."""
        self.policy = policy if self._inherited is None else self._inherited.policy(policy)
        brakes = () if self._inherited is None else self._inherited.sentences(policy)
        if self._memory is not None:
            self._follow_clock(self._memory)
        found = self._with_plan(self.inspect(self.policy, log_dirs), brakes)
        if self._memory is not None:
            self._memory.write(self._believed.steady_ms)
        return replace(found, hanging=self._hanging.look(found, found.plan))

    def _follow_clock(self, memory: ClockMemory) -> None:
        now_ms, seconds = milliseconds(self._clock.now()), self._clock.seconds()
        steady_ms, expected_ms = self._believed.after(now_ms, seconds, None).steady_ms, memory.expected_ms()
        if not self._has_begun:
            steady_ms = begins_at(steady_ms, expected_ms, self._reclaim_client.second_clock_ms())
            self._has_begun = True
        elif memory.is_filed and not memory.path.exists():  # a person says that the clock is right
            steady_ms = now_ms
        elif expected_ms is not None and expected_ms > steady_ms + _OTHERS_KNOW_MORE_MS:
            steady_ms = min(expected_ms, now_ms)
        else:
            return
        self._believed = BelievedTime(steady_ms=steady_ms, seconds=seconds)

    def _facts(self, partitions: Collection[TopicPartition]) -> ReplicaFacts:
        return self._reclaim_client.with_plain_topics(super()._facts(partitions))

    def again(self, before: ReclaimSurvey) -> ReclaimSurvey:
        policy = before.tables.tables.devices[0].policy
        return self._with_plan(self.inspect_again(policy, before, _watched(before)), before.brakes)

    def _with_plan(self, survey: Survey, brakes: tuple[str, ...]) -> ReclaimSurvey:
        known = {each.name: getattr(survey, each.name) for each in fields(survey)}
        return ReclaimSurvey(**known, plan=_planned(survey.tables), brakes=brakes)


def _planned(tables: BrokerTables) -> ReclaimPlan:
    """Files that no broker writes, such as a segment twice, are a reason to leave everything alone, not to die of."""
    try:
        return reclaim.plan(tables.tables)
    except ValueError as error:
        message = f"no plan can be made for {', '.join(tables.log_dirs)}: {error}"
        raise ObservationFailed(Failure(kind=FailureKind.UNREADABLE, message=message)) from error


def _watched(before: ReclaimSurvey) -> Sequence[TopicPartition]:
    """The logs that anybody may have trimmed: those of the plan, then all others that could have been in it."""
    tables, plan = before.tables.tables, before.plan
    planned = plan.trimmed_logs.tolist()
    candidates = (plan.logs.standing == ReclaimReason.CANDIDATE) & (tables.logs.kind == FolderKind.CURRENT)
    rows = dict.fromkeys([*planned, *candidates.nonzero()[0].tolist()])
    found = [partition for row in rows if (partition := tables.topic_partition(row)) is not None]
    return found[: max(_MOST_WATCHED, len(planned))]

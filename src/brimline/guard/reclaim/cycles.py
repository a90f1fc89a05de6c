"""The cycles of one device that are under way: one that sends, and older ones that are only watched.

**Invariant.** Only the newest plan, made by this process, sends anything. A cycle that is older, or that an earlier
guard left behind, is watched until its files are gone or it is given up; what it has not sent is not sent any more, but
decided anew. So nothing is deleted because it once was needed, or once was allowed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from brimline.act.ledger.entries import CycleId, Plan, PlannedTrim
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import CycleRecord
from brimline.act.trims.rules import Left, TrimPace
from brimline.act.trims.trims import TrimExecutor, TrimmedCluster
from brimline.documents.guard_state import SinceStart
from brimline.guard.reclaim.report import CycleFigures, figures_of
from brimline.guard.reclaim.words import ReclaimNews

LEFT_BEHIND = "its planner has ended; what is still needed is planned again"
SUPERSEDED = "replaced by a newer plan"

FilesLeft = Callable[[Sequence[PlannedTrim]], Sequence[Left]]


class ReclaimCycles:
    """For one thread. ``objection``: why the newest plan should send nothing more, asked before each of its batches."""

    def __init__(
        self,
        ledger: Ledger,
        cluster: TrimmedCluster,
        files_left: FilesLeft,
        seconds: Callable[[], float],
        objection: Callable[[], str | None],
        news: ReclaimNews,
    ) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._files_left = files_left
        self._seconds = seconds
        self._objection = objection
        self._news = news
        self._under_way: list[TrimExecutor] = []
        self._ours: set[CycleId] = set()
        self._newest: CycleId | None = None
        self.last: CycleFigures | None = None
        self.totals = SinceStart()

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def figures(self) -> tuple[CycleFigures, ...]:
        return tuple(figures_of(each.cycle) for each in self._under_way)

    @property
    def is_sending(self) -> bool:
        return any(each.unsent for each in self.figures)

    def left_behind(self, log_dirs: Sequence[str]) -> list[CycleRecord]:
        """Cycles on record in any of these log dirs that nobody here looks after."""
        known = {each.cycle.plan.cycle for each in self._under_way}
        return [
            record
            for cycle, record in self._ledger.state.cycles.items()
            if cycle not in known and set(record.plan.log_dirs) & set(log_dirs)
        ]

    def adopt(self, record: CycleRecord, pace: TrimPace) -> None:
        self._add(record.plan.cycle, pace)
        self._news.adopted(figures_of(record))

    def begin(self, plan: Plan, pace: TrimPace) -> None:
        """Its plan is on record before anything is sent; raises ``NotRecorded``."""
        self._ledger.append(plan)
        self._ours.add(plan.cycle)
        self._newest = plan.cycle
        self._add(plan.cycle, pace)
        planned = figures_of(self._ledger.state.cycles[plan.cycle])
        self.totals = replace(
            self.totals,
            cycles=self.totals.cycles + 1,
            planned_bytes=self.totals.planned_bytes + planned.planned_bytes,
            planned_segments=self.totals.planned_segments + planned.planned_segments,
        )

    def step(self) -> Iterator[float]:
        """How many seconds later each of them wants to be seen to at the latest."""
        for each in tuple(self._under_way):
            wait = each.step()
            if wait is None:
                self._under_way.remove(each)
                self._ended(figures_of(each.cycle))
            else:
                yield wait

    def retire(self) -> None:
        """No plan that was made so far sends anything more; what was sent is watched."""
        self._newest = None

    def forget(self) -> None:
        """They are on record: whoever comes next goes on with them."""
        self._under_way.clear()
        self._ours.clear()
        self._newest = None

    def _add(self, cycle: CycleId, pace: TrimPace) -> None:
        executor = TrimExecutor(
            self._ledger, cycle, self._cluster, self._files_left, self._seconds, pace, self._why_not
        )
        self._under_way.append(executor)

    def _why_not(self, plan: Plan) -> str | None:
        if plan.cycle == self._newest:
            return self._objection()
        return SUPERSEDED if plan.cycle in self._ours else LEFT_BEHIND

    def _ended(self, figures: CycleFigures) -> None:
        self._ours.discard(figures.cycle)
        self.last = figures
        self.totals = replace(
            self.totals,
            trims_done=self.totals.trims_done + figures.done,
            trims_abandoned=self.totals.trims_abandoned + figures.abandoned,
            trims_withdrawn=self.totals.trims_withdrawn + figures.withdrawn,
            freed_bytes=self.totals.freed_bytes + figures.freed_bytes,
            freed_segments=self.totals.freed_segments + figures.freed_segments,
        )
        self._news.ended(figures)

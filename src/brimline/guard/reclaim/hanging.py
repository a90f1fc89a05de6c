"""Transactions that have been open for longer than they may be, and what they keep.

**Invariant.** None is named that began later than that. Its coordinator says when it began; where no coordinator knows
it, it is at least as old as the time since it was first seen here, and as the last write to the file that it begins in.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from brimline.guard.survey import Survey
from brimline.model import Bytes, ObservationFailed, TopicPartition
from brimline.model.reclaim import HANGING_MS
from brimline.model.reclaim_plan import ReclaimPlan
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.observe.cluster.transactions import Started

_NS_PER_MS = 1_000_000


class TransactionsClient(Protocol):
    def open_transactions(self, facts: ReplicaFacts, partitions: Collection[TopicPartition]) -> Started: ...


@dataclass(frozen=True, slots=True)
class Hanging:
    """``is_known``: to its coordinator, so that its producer can still end it. ``row``: its device's."""

    partition: TopicPartition
    offset: int
    bytes: Bytes
    open_ms: int
    is_known: bool
    row: int


class HangingWatch:
    """For one thread. Nobody is asked while no closed segment is blocked."""

    def __init__(self, client: TransactionsClient) -> None:
        self._client = client
        self._seen: dict[TopicPartition, tuple[int, float]] = {}
        """Its offset, and when it was first seen, on the clock that never jumps."""

    def look(self, survey: Survey, plan: ReclaimPlan) -> tuple[Hanging, ...]:
        """Those that keep most come first."""
        tables, blocked = survey.tables.tables, plan.logs.blocked_bytes
        rows = {tables.topic_partition(row): row for row in blocked.nonzero()[0].tolist()}
        logs = {partition: row for partition, row in rows.items() if partition is not None}
        offsets = {partition: int(tables.logs.last_stable_offset[row]) for partition, row in logs.items()}
        self._seen = {
            partition: seen
            if (seen := self._seen.get(partition)) is not None and seen[0] == offset
            else (offset, survey.seconds)
            for partition, offset in offsets.items()
        }
        if not logs:
            return ()
        try:
            started = self._client.open_transactions(survey.facts, logs)
        except ObservationFailed:
            started = dict.fromkeys(logs)
        found = []
        for partition, row in logs.items():
            if partition not in started:
                continue
            begun, device = started[partition], int(tables.logs.device[row])
            now_ms = tables.devices[device].now_ms
            begin, end = tables.logs.segments_begin[row : row + 2].tolist()
            at = begin + int(tables.segments.base_offset[begin:end].searchsorted(offsets[partition], "right")) - 1
            written_ms = int(tables.segments.modified_ns[max(at, begin)]) // _NS_PER_MS
            here_ms = round((survey.seconds - self._seen[partition][1]) * 1000)
            open_ms = max(here_ms, now_ms - written_ms) if begun is None else now_ms - begun
            size, is_known = Bytes(int(blocked[row])), begun is not None
            if open_ms >= HANGING_MS:
                found.append(Hanging(partition, offsets[partition], size, open_ms, is_known, device))
        return tuple(sorted(found, key=lambda each: -each.bytes))

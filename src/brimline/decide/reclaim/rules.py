"""What no reclaim touches, and what Kafka takes by itself.

Which topics are never trimmed, and which limits ordinary retention holds their logs to.

**Invariant.** A topic of which it is not known that it may be trimmed is not trimmed. Protected is, for the first of
these reasons that applies:

1. an internal topic of Kafka, by name or by the broker's word (the broker refuses to trim it);
2. ``__remote_log_metadata``, which the broker would let be trimmed, and with it the way to everything uploaded;
3. a compacted topic without ``delete`` (refused by the broker, too), and by ``spares_compacted`` one with it;
4. a tiered topic: a trim raises the start of the whole log and destroys what is in the remote store;
5. a topic with an empty ``cleanup.policy``: whoever sets that wants nothing deleted;
6. by ``spares_for_ever`` a topic that sets ``retention.ms=-1`` itself, and no limit of bytes;
7. what the operator protects by a pattern;
8. a topic whose configuration is not known.

What leaves a log without us: Kafka's own rules, applied one pass ahead.

**Invariant.** The segments named here are those that the broker's next retention pass removes, given the facts: a run
from the log's head. Three rules, each going on where the one before stopped, and each stopping at the first segment
that it does not remove:

1. **log start**: the next segment begins at or below the log start, whoever moved it there;
2. **retention.bytes**: what is left without the segment is still at least so much (sizes as Kafka counts them);
3. **retention.ms**: the segment's largest timestamp, or the time of its last write if it has none, is more than so long
   ago. A timestamp in the future is believed here, since the broker does.

No rule removes a segment that ends above the high watermark, or, of a tiered topic, above what is uploaded. Rules 2 and
3 hold for topics with ``delete`` in their ``cleanup.policy`` and for tiered ones that upload. They may reach the active
segment, for which the broker then begins a new one; from outside that is foreseen only where the log's end is known,
for topics that are not tiered.

A replica that is being moved to another log dir is left out by the broker's passes until the move has ended, so nothing
of it is going. Where a fact is not known, nothing is expected to go. Whether the two views of a log agree does not
matter: they often differ because a pass has just been there, and what it marked is going indeed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from operator import lt

import numpy as np

from brimline.decide.reclaim.device import DeviceColumns
from brimline.decide.reclaim.kernel import Each
from brimline.model.reclaim import USE_RETENTION, CleanupRules, ReclaimPolicy, RuleColumns, TopicFacts, TopicTable
from brimline.model.reclaim_plan import ReclaimReason
from brimline.model.scan import BoolColumn, FolderKind, Int64Column, UInt8Column

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
REMOTE_LOG_METADATA = "__remote_log_metadata"
_MOST_NAMES = 100_000
"""Whose matches are remembered."""
_BY_NAME = INTERNAL_TOPICS | {REMOTE_LOG_METADATA}


class TopicColumns:
    """The topics as columns, with one row more at the end for "no topic", which -1 finds."""

    def __init__(self, topics: Sequence[TopicFacts]) -> None:
        table = TopicTable.of(topics)
        self._names, self._rules = table.names, table.rules
        self._by_policy: dict[tuple[object, ...], UInt8Column] = {}
        self.name_rank = _ranks(self._names, table.lengths)
        milliseconds, size = _retention(self._rules)
        self.retention_ms: Int64Column = np.append(milliseconds, -1)
        self.retention_bytes: Int64Column = np.append(size, -1)
        self.is_tiered: BoolColumn = np.append(self._rules.is_known & self._rules.is_tiered, np.False_)
        self.is_copying: BoolColumn = np.append(_is_copying(self._rules), np.False_)

    def protection(self, policy: ReclaimPolicy) -> UInt8Column:
        """Why a topic is never trimmed, or ``CANDIDATE``."""
        key = (policy.protected_topics, policy.spares_compacted, policy.spares_for_ever)
        if key not in self._by_policy:
            codes = np.append(_of_rules(self._rules, policy), np.uint8(ReclaimReason.TOPIC_UNKNOWN))
            _protect_by_name(codes, self._names)
            self._protect_by_pattern(codes, policy.protected_topics)
            self._by_policy[key] = codes
        return self._by_policy[key]

    def _protect_by_pattern(self, codes: UInt8Column, patterns: tuple[str, ...]) -> None:
        yields = (codes == ReclaimReason.CANDIDATE) | (codes == ReclaimReason.TOPIC_UNKNOWN)
        yields[-1] = False  # no topic has no name
        rows = np.flatnonzero(yields)
        names = [self._names[row] for row in rows.tolist()]
        for matches in map(_matches, patterns):
            is_protected = np.array([matches[name] for name in names], dtype=np.bool_)
            codes[rows[is_protected]] = ReclaimReason.PROTECTED_TOPIC


class _Matches(dict[str, bool]):
    """Whether a name as a whole matches; found once, since the brokers of a cluster share their topics."""

    def __init__(self, pattern: str) -> None:
        self._expression = re.compile(pattern)

    def __missing__(self, name: str) -> bool:
        if len(self) >= _MOST_NAMES:
            self.clear()
        found = self[name] = self._expression.fullmatch(name) is not None
        return found


_matches = lru_cache(maxsize=16)(_Matches)


def _protect_by_name(codes: UInt8Column, names: Sequence[str]) -> None:
    """Kafka's own topics are known by their names, whatever else is known."""
    for row in [row for row, name in enumerate(names) if name in _BY_NAME]:
        if names[row] in INTERNAL_TOPICS:
            codes[row] = ReclaimReason.INTERNAL_TOPIC
        elif codes[row] != ReclaimReason.INTERNAL_TOPIC:
            codes[row] = ReclaimReason.REMOTE_LOG_METADATA


def _of_rules(rules: RuleColumns, policy: ReclaimPolicy) -> UInt8Column:
    codes = np.full(len(rules.is_known), ReclaimReason.CANDIDATE, dtype=np.uint8)
    # The strongest comes last.
    codes[rules.is_for_ever & policy.spares_for_ever] = ReclaimReason.FOR_EVER
    codes[~rules.deletes] = ReclaimReason.NO_CLEANUP_POLICY
    codes[rules.is_tiered] = ReclaimReason.TIERED
    codes[rules.compacts & policy.spares_compacted] = ReclaimReason.COMPACTED
    codes[rules.compacts & ~rules.deletes] = ReclaimReason.COMPACT_ONLY
    codes[rules.is_internal] = ReclaimReason.INTERNAL_TOPIC
    codes[~rules.is_known] = ReclaimReason.TOPIC_UNKNOWN
    return codes


@lru_cache(maxsize=4096)  # thousands of partitions have a handful of rules
def effective_retention(rules: CleanupRules) -> tuple[int, int]:
    """Milliseconds and bytes that ordinary retention holds a local log to; -1 for no limit."""
    milliseconds, size = _retention(RuleColumns.of([rules]))
    return int(milliseconds[0]), int(size[0])


def _retention(rules: RuleColumns) -> tuple[Int64Column, Int64Column]:
    """A tiered topic whose uploads go on is held to ``local.retention.*``, even with an empty ``cleanup.policy``."""
    is_copying = _is_copying(rules)
    is_limited = rules.is_known & (rules.deletes | (is_copying & ~rules.compacts))

    def limit(whole: Int64Column, local: Int64Column) -> Int64Column:
        kept = np.where(is_copying & (local != USE_RETENTION), local, whole)
        return np.where(is_limited, np.maximum(kept, -1), -1)

    return (
        limit(rules.retention_ms, rules.local_retention_ms),
        limit(rules.retention_bytes, rules.local_retention_bytes),
    )


def _is_copying(rules: RuleColumns) -> BoolColumn:
    return rules.is_known & rules.is_tiered & ~rules.is_copy_disabled


def _ranks(names: Sequence[str], lengths: Sequence[int]) -> Int64Column:
    """Each name's place among those of its broker: no two brokers share a device, and only there it is compared."""
    ends = [0, *accumulate(lengths)]
    parts = [_ranks_of_broker(names[begin:end]) for begin, end in pairwise(ends)]
    return np.concatenate([*parts, [-1]])


def _ranks_of_broker(names: Sequence[str]) -> Int64Column:
    """Among all different names; topic names are ASCII, so any language sorts them alike."""
    if all(map(lt, names, islice(names, 1, None))):  # nearly always: so the scan has them
        return np.arange(len(names), dtype=np.int64)
    place = {name: position for position, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], dtype=np.int64)


_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingRuns:
    """Of every log: up to which of its segments each rule removes."""

    log_start: Int64Column
    retention_bytes: Int64Column
    retention_ms: Int64Column

    @property
    def until(self) -> Int64Column:
        return self.retention_ms


def going_runs(columns: DeviceColumns, topics: TopicColumns, *, reaches_all: bool = False) -> GoingRuns:
    """``reaches_all``: as if every segment were replicated and uploaded, to tell what only waits for that."""
    logs = columns.logs
    is_visited = (logs.kind == FolderKind.CURRENT) & ~logs.is_moving
    by_log_start = np.where(is_visited, columns.ends_up_to(logs.log_start_offset), 0)
    reach = columns.count if reaches_all else _reach(columns, topics)
    most = np.maximum(np.where(is_visited, reach, 0), by_log_start)
    by_bytes = np.clip(_beyond_bytes(columns, topics.retention_bytes[logs.topic]), by_log_start, most)
    by_ms = np.clip(_beyond_ms(columns, topics.retention_ms[logs.topic], by_bytes), by_bytes, most)
    return GoingRuns(log_start=by_log_start, retention_bytes=by_bytes, retention_ms=by_ms)


def beyond_bytes(columns: DeviceColumns, kept: Each) -> Int64Column:
    """How many segments may leave each log's head so that at least ``kept`` bytes of it are left."""
    sums = columns.log_bytes_before
    return np.asarray(np.searchsorted(sums, sums[columns.end] - kept, side="right") - 1 - columns.begin, dtype=np.int64)


def _reach(columns: DeviceColumns, topics: TopicColumns) -> Int64Column:
    """How many segments of each log retention could remove at most."""
    logs = columns.logs
    reach = columns.below_high_watermark
    is_copying = topics.is_copying[logs.topic]
    if is_copying.any():
        reach = np.where(is_copying, np.minimum(reach, columns.uploaded), reach)
    return np.where(_active_may_go(columns) & ~topics.is_tiered[logs.topic], columns.count, reach)


def _active_may_go(columns: DeviceColumns) -> BoolColumn:
    """Everything in the log is replicated, and something is in its active segment: an empty one is left alone."""
    logs, sums = columns.logs, columns.log_bytes_before
    if not len(columns.segments) or (logs.log_end_offset < 0).all():
        return np.zeros(len(logs), dtype=np.bool_)
    active = columns.begin + columns.closed
    last = np.minimum(active, len(columns.segments) - 1)  # a log without segments may stand at the very end
    end_of_log = np.maximum(logs.log_end_offset, columns.segments.base_offset[last])
    is_replicated = (logs.log_end_offset >= 0) & (logs.high_watermark >= end_of_log)
    return np.asarray(is_replicated & (sums[columns.end] > sums[active]), dtype=np.bool_)


def _beyond_bytes(columns: DeviceColumns, retention: Int64Column) -> Int64Column:
    return np.where(retention >= 0, beyond_bytes(columns, retention), 0)


def _beyond_ms(columns: DeviceColumns, retention: Int64Column, after: Int64Column) -> Int64Column:
    """Numbers of the first segments from ``after`` on that are not old enough to go."""
    is_limited = retention >= 0
    if not is_limited.any():
        return after
    segments = columns.segments
    timestamp = segments.newest_timestamp_ms
    without = np.flatnonzero(timestamp < 0)
    if len(without):
        timestamp = timestamp.copy()
        timestamp[without] = segments.modified_ns[without] // _NS_PER_MS
    too_young = np.where(is_limited, columns.now_ms - retention, np.iinfo(np.int64).min)
    staying = np.flatnonzero(timestamp >= too_young[columns.log_of_segment])
    first = np.searchsorted(staying, columns.begin + after)
    return np.append(staying, len(timestamp))[first] - columns.begin

"""Which topics are never trimmed, and which limits ordinary retention holds their logs to.

**Invariant.** A topic of which it is not known that it may be trimmed is not trimmed. Protected is, for the first of
these reasons that applies:

1. an internal topic of Kafka, by name or by the broker's word (the broker refuses to trim it);
2. ``__remote_log_metadata``, which the broker would let be trimmed, and with it the way to everything uploaded;
3. a compacted topic without ``delete`` (refused by the broker, too);
4. a tiered topic: a trim raises the start of the whole log and destroys what is in the remote store;
5. a topic with an empty ``cleanup.policy``: whoever sets that wants nothing deleted;
6. what the operator protects by a pattern;
7. a topic whose configuration is not known.
"""

import re
from collections.abc import Sequence

import numpy as np

from brimline.model.reclaim import USE_RETENTION, CleanupRules, TopicFacts, TopicTable
from brimline.model.reclaim_plan import ReclaimReason
from brimline.model.scan import BoolColumn, Int64Column, UInt8Column

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
REMOTE_LOG_METADATA = "__remote_log_metadata"
_NOT_KNOWN = CleanupRules(deletes=False)


class TopicColumns:
    """The topics as columns, with one row more at the end for "no topic", which -1 finds."""

    def __init__(self, topics: Sequence[TopicFacts]) -> None:
        table = TopicTable.of(topics)
        self._names = table.names
        # Thousands of topics share a handful of rules: each is looked at once.
        rules = [*table.rules, None]
        shared = {id(each): each for each in rules}
        places = {key: place for place, key in enumerate(shared)}
        row = np.fromiter((places[id(each)] for each in rules), dtype=np.int64, count=len(rules))
        known = [each or _NOT_KNOWN for each in shared.values()]
        limits = np.array([effective_retention(each) for each in known], dtype=np.int64)
        self._protection = _protection(np.array([*map(_of_rules, shared.values())], dtype=np.uint8)[row], self._names)
        self._by_patterns: dict[tuple[str, ...], UInt8Column] = {(): self._protection}
        self.name_rank = _ranks(self._names)
        self.retention_ms: Int64Column = limits[:, 0][row]
        self.retention_bytes: Int64Column = limits[:, 1][row]
        self.is_tiered: BoolColumn = np.array([each.is_tiered for each in known], dtype=np.bool_)[row]
        self.is_copying: BoolColumn = np.array([_is_copying(each) for each in known], dtype=np.bool_)[row]

    def protection(self, patterns: tuple[str, ...]) -> UInt8Column:
        """Why a topic is never trimmed, or ``CANDIDATE``."""
        if patterns not in self._by_patterns:
            expressions = [re.compile(pattern) for pattern in patterns]
            codes = self._protection.copy()
            yields = (codes == ReclaimReason.CANDIDATE) | (codes == ReclaimReason.TOPIC_UNKNOWN)
            yields[-1] = False  # no topic has no name
            rows = np.flatnonzero(yields)
            names = [self._names[row] for row in rows.tolist()]
            for expression in expressions:
                matches = np.fromiter((expression.fullmatch(name) is not None for name in names), np.bool_, len(names))
                codes[rows[matches]] = ReclaimReason.PROTECTED_TOPIC
            self._by_patterns[patterns] = codes
        return self._by_patterns[patterns]


def _protection(of_rules: UInt8Column, names: Sequence[str]) -> UInt8Column:
    """Without the operator's patterns. Kafka's own topics are known by their names, whatever else is known."""
    codes = of_rules.copy()
    for row, name in enumerate(names):
        if name in INTERNAL_TOPICS:
            codes[row] = ReclaimReason.INTERNAL_TOPIC
        elif name == REMOTE_LOG_METADATA and codes[row] != ReclaimReason.INTERNAL_TOPIC:
            codes[row] = ReclaimReason.REMOTE_LOG_METADATA
    return codes


def _of_rules(rules: CleanupRules | None) -> ReclaimReason:
    if rules is None:
        return ReclaimReason.TOPIC_UNKNOWN
    if rules.is_internal:
        return ReclaimReason.INTERNAL_TOPIC
    if rules.compacts and not rules.deletes:
        return ReclaimReason.COMPACT_ONLY
    if rules.is_tiered:
        return ReclaimReason.TIERED
    return ReclaimReason.CANDIDATE if rules.deletes else ReclaimReason.NO_CLEANUP_POLICY


def effective_retention(rules: CleanupRules) -> tuple[int, int]:
    """Milliseconds and bytes that ordinary retention holds a local log to; -1 for no limit.

    A tiered topic whose uploads go on is held to ``local.retention.*``, even with an empty ``cleanup.policy``.
    """
    is_copying = _is_copying(rules)
    if not rules.deletes and (rules.compacts or not is_copying):
        return -1, -1
    milliseconds, size = rules.retention_ms, rules.retention_bytes
    if is_copying:
        if rules.local_retention_ms != USE_RETENTION:
            milliseconds = rules.local_retention_ms
        if rules.local_retention_bytes != USE_RETENTION:
            size = rules.local_retention_bytes
    return max(milliseconds, -1), max(size, -1)


def _is_copying(rules: CleanupRules) -> bool:
    return rules.is_tiered and not rules.is_copy_disabled


def _ranks(names: Sequence[str]) -> Int64Column:
    """Each name's place among all different names; topic names are ASCII, so any language sorts them alike."""
    place = {name: position for position, name in enumerate(sorted(set(names)))}
    return np.array([*(place[name] for name in names), -1], dtype=np.int64)

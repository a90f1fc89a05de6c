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

from brimline.model.reclaim import USE_RETENTION, CleanupRules, TopicFacts
from brimline.model.reclaim_plan import ReclaimReason
from brimline.model.scan import BoolColumn, Int64Column, UInt8Column

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
REMOTE_LOG_METADATA = "__remote_log_metadata"
_NOT_KNOWN = CleanupRules(deletes=False)


class TopicColumns:
    """The topics as columns, with one row more at the end for "no topic", which -1 finds."""

    def __init__(self, topics: Sequence[TopicFacts]) -> None:
        self._names = [topic.name for topic in topics]
        rules = [*(topic.rules or _NOT_KNOWN for topic in topics), _NOT_KNOWN]
        limits = [effective_retention(each) for each in rules]
        self._protection = np.array([*map(protection, topics), ReclaimReason.TOPIC_UNKNOWN], dtype=np.uint8)
        self._by_patterns: dict[tuple[str, ...], UInt8Column] = {(): self._protection}
        self.name_rank = _ranks(self._names)
        self.retention_ms: Int64Column = np.array([limit[0] for limit in limits], dtype=np.int64)
        self.retention_bytes: Int64Column = np.array([limit[1] for limit in limits], dtype=np.int64)
        self.is_tiered: BoolColumn = np.array([each.is_tiered for each in rules], dtype=np.bool_)
        self.is_copying: BoolColumn = np.array([_is_copying(each) for each in rules], dtype=np.bool_)

    def protection(self, patterns: tuple[str, ...]) -> UInt8Column:
        """Why a topic is never trimmed, or ``CANDIDATE``."""
        if patterns not in self._by_patterns:
            expressions = [re.compile(pattern) for pattern in patterns]
            codes = self._protection.copy()
            yields = (codes == ReclaimReason.CANDIDATE) | (codes == ReclaimReason.TOPIC_UNKNOWN)
            yields[-1] = False  # no topic has no name
            for row in np.flatnonzero(yields).tolist():
                name = self._names[row]
                if any(expression.fullmatch(name) for expression in expressions):
                    codes[row] = ReclaimReason.PROTECTED_TOPIC
            self._by_patterns[patterns] = codes
        return self._by_patterns[patterns]


def protection(topic: TopicFacts) -> ReclaimReason:
    """Without the operator's patterns."""
    rules = topic.rules
    if topic.name in INTERNAL_TOPICS or (rules is not None and rules.is_internal):
        return ReclaimReason.INTERNAL_TOPIC
    if topic.name == REMOTE_LOG_METADATA:
        return ReclaimReason.REMOTE_LOG_METADATA
    if rules is None:
        return ReclaimReason.TOPIC_UNKNOWN
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

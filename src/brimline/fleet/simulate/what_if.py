"""What a simulation is asked: other limits than the fleet has, and for how many days."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from brimline.model.quantities import parse_bytes
from brimline.model.reclaim import CleanupRules, ReclaimTables, TopicFacts

_SPAN = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d)")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER = re.compile(r"-1|\d{1,19}")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """Retention of all topics whose whole name matches; ``None`` leaves that limit as it is, -1 is no limit."""

    pattern: re.Pattern[str]
    retention_bytes: int | None = None
    retention_ms: int | None = None

    def applied(self, rules: CleanupRules) -> CleanupRules:
        size = rules.retention_bytes if self.retention_bytes is None else self.retention_bytes
        milliseconds = rules.retention_ms if self.retention_ms is None else self.retention_ms
        return replace(rules, retention_bytes=size, retention_ms=milliseconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """``None``: as every broker has it."""

    ceiling_percent: int | None = None
    max_used_percent: int | None = None
    retention: tuple[RetentionRule, ...] = ()
    days: int = 7

    def applied(self, tables: ReclaimTables) -> ReclaimTables:
        """The tables as they would be under these rules."""
        topics = tuple(self._topic(topic) for topic in tables.topics)
        if self.ceiling_percent is None:
            return replace(tables, topics=topics)
        devices = tuple(
            replace(device, policy=replace(device.policy, ceiling_percent=self.ceiling_percent))
            for device in tables.devices
        )
        return replace(tables, topics=topics, devices=devices)

    def _topic(self, topic: TopicFacts) -> TopicFacts:
        """The last rule that matches counts. Of a topic whose configuration is not known nothing can be changed."""
        rules = [rule for rule in self.retention if rule.pattern.fullmatch(topic.name)]
        if not rules or topic.rules is None:
            return topic
        return replace(topic, rules=rules[-1].applied(topic.rules))


def parse_retention(text: str) -> RetentionRule:
    """``orders.*=50GB``, ``orders.*=7d``, ``orders.*=50GB|7d``, or bytes and milliseconds: ``orders.*=-1|86400000``.

    Raises ``ValueError`` with a sentence.
    """
    pattern, found, limits = text.rpartition("=")
    if not found or not pattern:
        raise ValueError(f"{text!r} is not a pattern with a limit such as 'orders.*=50GB' or 'orders.*=7d'")
    try:
        names = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a pattern for names of topics: {error}") from None
    size, bar, span = limits.partition("|")
    if bar:
        return RetentionRule(pattern=names, retention_bytes=_limit(size, _size), retention_ms=_limit(span, _span))
    if _NUMBER.fullmatch(limits.strip()):
        raise ValueError(f"{limits} of what? Write a unit, as in {pattern}=50GB or {pattern}=7d, or bytes|milliseconds")
    if _SPAN.fullmatch(limits.strip()):
        return RetentionRule(pattern=names, retention_ms=_span(limits))
    return RetentionRule(pattern=names, retention_bytes=_size(limits))


def _limit(text: str, with_unit: Callable[[str], int]) -> int | None:
    """Nothing is ``None``; a number without a unit counts bytes or milliseconds."""
    if not text.strip():
        return None
    return min(int(text), _LARGEST) if _NUMBER.fullmatch(text.strip()) else with_unit(text)


def _size(text: str) -> int:
    return min(parse_bytes(text), _LARGEST)


def _span(text: str) -> int:
    span = _SPAN.fullmatch(text.strip())
    if span is None:
        raise ValueError(f"{text!r} is not a length of time such as 7d or 12h")
    return int(span[1]) * _MS[span[2]]

"""What a simulation is asked: other limits than the fleet has, and for how many days."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from brimline.model.quantities import parse_bytes
from brimline.model.reclaim import ReclaimTables, TopicTable

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """``None``: as every broker has it."""

    ceiling_percent: int | None = None
    max_used_percent: int | None = None
    retention: tuple[RetentionRule, ...] = ()
    days: int = 7

    def applied(self, tables: ReclaimTables) -> ReclaimTables:
        """The tables as they would be under these rules."""
        topics = self._topics(TopicTable.of(tables.topics)) if self.retention else tables.topics
        if self.ceiling_percent is None:
            return replace(tables, topics=topics)
        devices = tuple(
            replace(device, policy=replace(device.policy, ceiling_percent=self.ceiling_percent))
            for device in tables.devices
        )
        return replace(tables, topics=topics, devices=devices)

    def _topics(self, topics: TopicTable) -> TopicTable:
        """The last rule that matches counts, and of it what it says. What is not known stays so."""
        milliseconds, size = topics.rules.retention_ms.copy(), topics.rules.retention_bytes.copy()
        for row, name in enumerate(topics.names):
            rule = next((each for each in reversed(self.retention) if each.pattern.fullmatch(name)), None)
            if rule is not None and rule.retention_ms is not None:
                milliseconds[row] = rule.retention_ms
            if rule is not None and rule.retention_bytes is not None:
                size[row] = rule.retention_bytes
        return TopicTable(topics.names, replace(topics.rules, retention_ms=milliseconds, retention_bytes=size))


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
    return retention_rule(names, limits)


def retention_rule(names: re.Pattern[str], limits: str) -> RetentionRule:
    """Raises ``ValueError`` with a sentence."""
    size, bar, span = limits.partition("|")
    if bar:
        return RetentionRule(pattern=names, retention_bytes=_limit(size, _size), retention_ms=_limit(span, _span))
    if _NUMBER.fullmatch(limits.strip()):
        pattern = names.pattern
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

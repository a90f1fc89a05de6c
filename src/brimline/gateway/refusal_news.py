"""Which clients are refused, for the log and the timeline: a line when it begins, one when it is over.

A spell of refusals is over when there was none for a minute. Within a spell a client is named once for each topic: at
once in the first lines of a spell, then in one line a minute, however many clients there are.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brimline.gateway.counters import RefusalCount, RefusedPartition
from brimline.model import counted, human_bytes, human_span
from brimline.service.log_lines import say

APART = 60.0
"""Seconds without a refusal that end a spell; and between two lines of one."""
_NAMED = 3
_AT_ONCE = 10
"""Lines of a spell that do not wait: a client that comes later is told of when it comes, not after the fence."""
_Rows = Mapping[RefusedPartition, tuple[int, int]]


@dataclass(slots=True)
class _Spell:
    begun: float
    before: _Rows
    last: float
    next_line: float
    named: set[tuple[str, str]] = field(default_factory=set)
    lines: int = 0


class RefusalNews:
    def __init__(self, *, enforces: bool) -> None:
        self._were = "were refused" if enforces else "would have been refused"
        self._is = "is refused" if enforces else "would be refused"
        self._seen = 0
        self._calm: _Rows = {}
        self._spell: _Spell | None = None

    def look(self, count: RefusalCount, seconds: float) -> None:
        """Every second or so, by the thread that counts."""
        total = count.batches
        if total != self._seen:
            self._seen = total
            if self._spell is None:
                self._spell = _Spell(seconds, self._calm, seconds, seconds)
            self._spell.last = seconds
        spell = self._spell
        if spell is None:
            return
        if seconds >= spell.next_line:
            self._name_new_ones(spell, count.rows, seconds)
        if seconds >= spell.last + APART:
            self._over(spell, count.rows)
            self._calm, self._spell = dict(count.rows), None

    def _name_new_ones(self, spell: _Spell, rows: _Rows, seconds: float) -> None:
        who = {(each.client, each.topic) for each, figures in rows.items() if figures != spell.before.get(each)}
        new = sorted(who - spell.named)
        if not new:
            return
        spell.named |= who
        spell.lines += 1
        spell.next_line = seconds + APART if spell.lines >= _AT_ONCE else seconds
        names = _some([f"{client} for topic {topic}" for client, topic in new])
        say(logging.WARNING, "clients-refused", f"Produce {self._is}: {names}", clients=len({name for name, _ in new}))

    def _over(self, spell: _Spell, rows: _Rows) -> None:
        grown: Counter[tuple[str, str]] = Counter()
        batches = size = 0
        for each, (count, total) in rows.items():
            count_before, total_before = spell.before.get(each, (0, 0))
            grown[each.client, each.topic] += count - count_before
            batches, size = batches + count - count_before, size + total - total_before
        most = _some([f"{client} for topic {topic}" for (client, topic), more in grown.most_common() if more])
        say(
            logging.INFO,
            "refusals-over",
            f"refusals ended: {counted(batches, 'batch', 'batches')} ({human_bytes(size)}) {self._were} within "
            f"{human_span(spell.last - spell.begun)}, of {most}",
            batches=batches,
            bytes=size,
        )


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    return f"{', '.join(listed[:_NAMED])}{more}"

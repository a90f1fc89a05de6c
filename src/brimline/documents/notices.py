"""What a feature of the guard has to say, said once: log, timeline, ``/v1/state``, ``status`` and page are loops.

A notice holds for as long as its feature lists it. That it appears, changes its weight or goes is an event of the log
and of the timeline; nobody writes a sentence for that. ``key`` tells it from others of its feature.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum


class Weight(Enum):
    """PROBLEM: a part of the work cannot be done. WARNING: it can, but not what was probably meant. NOTE and FINE are
    for the reader's peace of mind.
    """

    FINE = "fine"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"

    @property
    def level(self) -> int:
        return _LEVELS[self]


_LEVELS = {
    Weight.FINE: logging.DEBUG,
    Weight.NOTE: logging.INFO,
    Weight.WARNING: logging.WARNING,
    Weight.PROBLEM: logging.ERROR,
}
EVENT_PREFIX = "notice-"
"""What the log calls it: ``notice-held`` for the word HELD, ``notice-over`` when it goes."""
OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """``word`` heads its line (ten letters at most), ``text`` is one sentence without its full stop, ``cure`` the way
    out. ``headline``: what ``status`` leads with, if this asks for somebody at once."""

    feature: str
    key: str
    weight: Weight
    word: str
    text: str
    cure: str = ""
    headline: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        return f"{self.text}; {self.cure}" if self.cure else self.text


Say = Callable[[int, str, str], None]
"""Level, event, sentence."""


class NoticeLog:
    """Says what appeared, what changed its weight and what went. A text that only has other figures is not news."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._before: dict[tuple[str, str], Notice] = {}

    def tell(self, notices: Iterable[Notice]) -> None:
        now = {(each.feature, each.key): each for each in notices}
        for name, notice in now.items():
            before = self._before.get(name)
            if before is None or (before.weight, before.word) != (notice.weight, notice.word):
                self._say(notice.weight.level, EVENT_PREFIX + notice.word.lower(), notice.sentence)
        for name, gone in self._before.items():
            if name not in now and gone.weight is not Weight.FINE:
                self._say(logging.INFO, EVENT_PREFIX + OVER, f"over: {gone.text}")
        self._before = now

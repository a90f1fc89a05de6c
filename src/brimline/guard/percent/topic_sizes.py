"""Which topics fill the log dirs, and how fast each grows: from what the broker tells for the percentages anyway.

**Bounded.** A log dir shows its largest topics, and all others as one, ``OTHERS``: so the figures of a log dir add up,
and a broker with thousands of topics has no more series than one with a few dozen. Growth is what a topic takes more
than at most an hour ago; it is net, so retention counts against it, and one that shrinks has a negative one.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from brimline.model import Bytes
from brimline.model.log_dirs import LogDirDescription

MOST_TOPICS = 50
"""Of each log dir."""
OTHERS = "(others)"
"""No topic can have this name."""
_AN_HOUR = 3600.0

Sizes = Mapping[tuple[str, str], int]
"""By log dir and topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSize:
    """``growth``: bytes an hour; ``None`` until there are two looks."""

    log_dir: str
    topic: str
    bytes: Bytes
    growth: float | None


def largest_in(log_dirs: Collection[str], topics: Iterable[TopicSize]) -> list[tuple[str, Bytes]]:
    """Of all these log dirs together, the largest first, without ``OTHERS``."""
    sizes: Counter[str] = Counter()
    for each in topics:
        if each.log_dir in log_dirs and each.topic != OTHERS:
            sizes[each.topic] += each.bytes
    return [(topic, Bytes(size)) for topic, size in sizes.most_common()]


class TopicHistory:
    """The sizes of the last hour. For one thread."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Sizes]] = deque()

    def look(self, log_dirs: Iterable[LogDirDescription], seconds: float) -> tuple[TopicSize, ...]:
        """The largest first, log dir by log dir."""
        sizes = _sizes(log_dirs)
        while len(self._looks) > 1 and self._looks[1][0] <= seconds - _AN_HOUR:
            self._looks.popleft()
        self._looks.append((seconds, sizes))
        then, before = self._looks[0]
        hours = (seconds - then) / _AN_HOUR
        return tuple(
            TopicSize(
                log_dir=log_dir,
                topic=topic,
                bytes=Bytes(size),
                growth=(size - _before(before, log_dir, topic, sizes)) / hours if hours > 0 else None,
            )
            for (log_dir, topic), size in sizes.items()
        )


def _before(before: Sizes, log_dir: str, topic: str, now: Sizes) -> int:
    """Of ``OTHERS``: what is not shown by its name now, whatever it was then."""
    if topic != OTHERS:
        return before.get((log_dir, topic), 0)
    unnamed = {place for place in before if place[0] == log_dir and place not in now} | {(log_dir, OTHERS)}
    return sum(before.get(place, 0) for place in unnamed)


def _sizes(log_dirs: Iterable[LogDirDescription]) -> Sizes:
    found: dict[tuple[str, str], int] = {}
    for log_dir in log_dirs:
        replicas = log_dir.replicas
        # Sums as floats are exact below 8 PiB.
        sums = np.bincount(replicas.topic, weights=replicas.size, minlength=len(replicas.topic_names)).astype(np.int64)
        order = np.argsort(-sums, kind="stable").tolist()
        named = [row for row in order[:MOST_TOPICS] if sums[row] > 0]
        found |= {(log_dir.path, replicas.topic_names[row]): int(sums[row]) for row in named}
        others = int(sums.sum()) - int(sums[named].sum())
        if others:
            found[log_dir.path, OTHERS] = others
    return found

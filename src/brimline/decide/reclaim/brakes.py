"""The brakes that are about records, of one guard beside those of another: a trim is a partition's, on every broker.

**Invariant.** Others can only add: nothing goes by a merged policy that the own one keeps. The ceiling, the limits of a
cycle and what is done on a full disk stay the own ones, for they are about a disk and not about records.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from brimline.model.reclaim import ReclaimPolicy

_LARGEST = 2**63 - 1
_MOST_REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Brakes:
    """Those of ``ReclaimPolicy`` that are about records. ``ValueError`` where one makes no sense: others wrote it."""

    min_retention_ms: int = 0
    min_retention_bytes: int = 0
    protected_topics: tuple[str, ...] = ()
    spares_compacted: bool = False
    spares_for_ever: bool = False
    spares_transactions: bool = False

    def __post_init__(self) -> None:
        if not all(0 <= each <= _LARGEST for each in (self.min_retention_ms, self.min_retention_bytes)):
            raise ValueError("a minimum retention that is not a time or size")
        for pattern in self.protected_topics:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"{pattern!r:.80} is not a regular expression") from error

    def lacks(self, other: "Brakes") -> list[str]:
        """What ``other`` keeps and these do not, as a properties file would say it."""
        merged = strictest(ReclaimPolicy(**{each.name: getattr(self, each.name) for each in fields(self)}), [other])
        return [
            f"brimline.reclaim.{_key(each.name)}={_shown(getattr(merged, each.name))}"
            for each in fields(self)
            if getattr(merged, each.name) != getattr(self, each.name)
        ]

    @classmethod
    def of(cls, policy: ReclaimPolicy) -> "Brakes":
        return cls(**{each.name: getattr(policy, each.name) for each in fields(cls)})


def _key(name: str) -> str:
    return name.replace("spares", "protect").replace("for_ever", "forever").replace("_", ".")


def _shown(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value).lower()


def is_quick(pattern: str) -> bool:
    """Whether no name can keep whoever matches it busy: no repeated group, no look around or back, and few repeats.

    For what others wrote: one that is not quick stops a whole process, and for ever.
    """
    plain = re.sub(r"\[[^]]*]", "x", re.sub(r"\\\D", "x", pattern)).replace("(?:", "(")
    looks = re.search(r"\\|\)[*+?{]|\(\?", plain)
    return looks is None and len(re.findall("[*+{]", plain)) <= _MOST_REPEATS


def strictest(own: ReclaimPolicy, others: Iterable[Brakes]) -> ReclaimPolicy:
    every = [Brakes.of(own), *others]
    added = sorted({pattern for each in every for pattern in each.protected_topics} - set(own.protected_topics))
    return replace(
        own,
        min_retention_ms=max(each.min_retention_ms for each in every),
        min_retention_bytes=max(each.min_retention_bytes for each in every),
        protected_topics=(*own.protected_topics, *added),
        spares_compacted=any(each.spares_compacted for each in every),
        spares_for_ever=any(each.spares_for_ever for each in every),
        spares_transactions=any(each.spares_transactions for each in every),
    )

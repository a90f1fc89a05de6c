"""The strictest of several guards' brakes."""

import pytest

from brimline.decide.reclaim.brakes import Brakes, strictest
from brimline.model.reclaim import ReclaimPolicy

OWN = ReclaimPolicy(
    ceiling_percent=70,
    min_retention_ms=1000,
    min_retention_bytes=50,
    protected_topics=("b", "a"),
    spares_compacted=True,
)


def test_the_largest_minimum_counts_and_everything_that_anybody_protects() -> None:
    others = [
        Brakes(min_retention_ms=500, min_retention_bytes=90, protected_topics=("c", "a")),
        Brakes(min_retention_ms=2000, protected_topics=("0",), spares_for_ever=True, spares_transactions=True),
    ]

    assert strictest(OWN, others) == ReclaimPolicy(
        ceiling_percent=70,
        min_retention_ms=2000,
        min_retention_bytes=90,
        protected_topics=("b", "a", "0", "c"),
        spares_compacted=True,
        spares_for_ever=True,
        spares_transactions=True,
    )


def test_others_only_add() -> None:
    assert strictest(OWN, [Brakes()]) == OWN


@pytest.mark.parametrize(
    "wrong", [{"min_retention_ms": -1}, {"min_retention_bytes": 2**63}, {"protected_topics": ("(",)}]
)
def test_brakes_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Brakes(**wrong)  # type: ignore[arg-type]


def test_what_another_keeps_beyond_is_told_as_a_properties_file_says_it() -> None:
    own = Brakes(min_retention_ms=1000, protected_topics=("a",), spares_compacted=True)
    other = Brakes(min_retention_ms=2000, protected_topics=("a", "b.*"), spares_for_ever=True)

    assert own.lacks(other) == [
        "brimline.reclaim.min.retention.ms=2000",
        "brimline.reclaim.protected.topics=a,b.*",
        "brimline.reclaim.protect.forever=true",
    ]
    assert other.lacks(own) == ["brimline.reclaim.protect.compacted=true"]

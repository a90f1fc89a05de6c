"""What an unset key of reclaim means under each policy, and that the document says the same."""

from pathlib import Path

import pytest

from brimline.model.reclaim import ReclaimPolicy
from brimline.settings import keys
from tests.guard.files import config, problems

KIPS = Path(__file__).parents[2] / "docs" / "kips.md"
RULED = [key for key in keys.KEYS if key.kip_61 is not None]


def test_careful_is_the_default() -> None:
    read = config()

    assert read.text(keys.RECLAIM_POLICY) == "careful"
    assert [read.settings[key.name].value for key in RULED] == [key.default for key in RULED]
    assert all(key.default != key.kip_61 for key in RULED)


def test_kip_61_restores_the_letter_for_every_rule_at_once() -> None:
    read = config("brimline.reclaim.policy=kip-61\n")

    assert [read.settings[key.name].value for key in RULED] == [key.kip_61 for key in RULED]
    assert read.reclaim_policy == LETTER


LETTER = ReclaimPolicy(max_used_percent=99, min_free_bytes=1 << 30, yields_at_reserve=True)
"""There is nothing in it that could yield."""


@pytest.mark.parametrize("policy", ["careful", "kip-61"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_rule_that_is_set_alone_counts_under_either_policy(policy: str, order: int) -> None:
    lines = [f"brimline.reclaim.policy={policy}\n", "brimline.reclaim.protect.compacted=false\n"]
    read = config("".join(lines[::order]))

    assert read.reclaim_policy.spares_compacted is False
    assert read.reclaim_policy.spares_for_ever is (policy == "careful")


def test_another_policy_is_refused_once() -> None:
    (problem,) = problems("brimline.reclaim.policy=bold\n")

    assert "brimline.reclaim.policy" in problem
    assert "allowed: careful, kip-61" in problem


def test_the_document_has_both_policies_in_one_table() -> None:
    head = ["| key | `careful` (default) | `kip-61` |", "|---|---|---|"]
    rows = [
        f"| `{key.name}` | {keys.shown_value(key.default)} | {keys.shown_value(key.default_under('kip-61'))} |"
        for key in RULED
    ]

    assert "\n".join([*head, *rows, ""]) in KIPS.read_text()

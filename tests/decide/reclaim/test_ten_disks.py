"""The table of ten disks in docs/reclaim.md: what goes of each and what stays, now and by the rule before."""

import re
from pathlib import Path

from brimline.decide.reclaim.plan import plan
from tests.decide.reclaim.reference import reference_plan
from tests.decide.reclaim.scenarios import tables_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "reclaim.md"
FENCE, NOW_MS, DAY_MS = 95, 10 * 86_400_000, 86_400_000


def rows() -> list[list[int]]:
    """Used, fresh, foreign, ceiling; what went before, what goes, what stays."""
    table = DOCUMENT.read_text().partition("| used | fresh | foreign | ceiling |")[2].partition("\n\n")[0]
    return [list(map(int, re.findall(r"\d+", line))) for line in table.splitlines()[2:]]


def goes(used: int, fresh: int, foreign: int, ceiling: int) -> tuple[int, int]:
    """By the planner, and by the slow reference. Segments of a percent each; the last fresh one is active."""
    old = used - fresh - foreign
    ages = [9 * DAY_MS] * old + [DAY_MS // 2] * fresh
    segments = [
        {"baseOffset": number, "bytes": 10, "timestampMs": NOW_MS - age + number} for number, age in enumerate(ages)
    ]
    device = {
        "name": "sda",
        "totalBytes": 1000,
        "usableBytes": 1000 - 10 * used,
        "nowMs": NOW_MS,
        "ceilingPercent": ceiling,
        "minRetentionMs": DAY_MS,
        "maxUsedPercent": FENCE,
        "onlyCurable": True,
    }
    log = {"device": "sda", "topic": "a", "partition": 0, "segments": segments}
    tables = tables_of({"devices": [device], "topics": [{"name": "a"}], "logs": [log]})
    return plan(tables).devices[0].taken_bytes // 10, reference_plan(tables).devices[0].taken // 10


def went(used: int, fresh: int, foreign: int, ceiling: int) -> int:
    """What was not removable counted as not curable, whoever's it was."""
    is_curable = fresh + foreign <= ceiling
    return max(used - (ceiling if is_curable else FENCE), 0)


def test_the_table_says_what_the_planner_does() -> None:
    found = rows()

    assert len(found) == 10
    for used, fresh, foreign, ceiling, before, now, stays in found:
        disk = used, fresh, foreign, ceiling
        assert (before, now, stays) == (went(*disk), goes(*disk)[0], used - now), disk
        assert goes(*disk) == (now, now), disk

"""What is said of a ceiling before it matters: impossible, too late, not allowed, and what the first cycle would do."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from brimline.decide.disk_state import DiskState
from brimline.decide.reclaim.plan import plan
from brimline.decide.reclaim.tables import BrokerTables
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.guard.reclaim.findings import (
    changed_defaults,
    explain_ceiling,
    explain_rights,
    explain_survey,
)
from brimline.guard.reclaim.hanging import Hanging
from brimline.guard.reclaim.survey import ReclaimSurvey
from brimline.model import BrokerId, BrokerLogDirs, Bytes, TopicPartition
from brimline.model.reclaim import ReclaimPolicy
from brimline.observe.cluster.replica_facts import ReplicaFacts
from brimline.observe.volumes import VolumeReading
from brimline.settings import keys
from brimline.settings.config import GuardConfig
from tests.decide.reclaim.scenarios import tables_of
from tests.guard.files import config

MIB = 1 << 20
MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_MS = 3_600_000
NOW_MS = 100 * HOUR_MS
NO_FENCE = "disk.max.used.percent=100\ndisk.min.free.bytes=0\n"
CEILING_ALONE = "log.retention.disk.usage.percent=80\n"
BARE_CEILING = f"{CEILING_ALONE}brimline.reclaim.policy=kip-61\n"
CEILING = f"{BARE_CEILING}brimline.reclaim.min.retention.bytes=1\n"
"""With a brake, so that nobody is warned of having none."""
APPLY, PLAN = "brimline.reclaim.mode=apply\n", "brimline.reclaim.mode=plan\n"


def volume(total: int = 1000 * MIB, usable: int = 100 * MIB) -> VolumeReading:
    return VolumeReading(
        device="8:1",
        log_dirs=("/data/a",),
        total_bytes=Bytes(total),
        usable_bytes=Bytes(usable),
        reserved_bytes=Bytes(0),
        observed_at=MADE_AT,
        seconds=0.0,
    )


def disks(settings: GuardConfig) -> DiskReport:
    status = VolumeStatus(
        reading=volume(),
        fullness=DiskState.OK,
        breaches=(),
        bytes_to_limit=None,
        fill_rate=None,
        seconds_left=None,
        next_look=60.0,
    )
    return DiskReport(volumes=(status,), limits=settings.limits)


def log(topic: str, *megabytes: int, newest_hour: int = 99, **more: object) -> dict[str, Any]:
    """Segments an hour apart; the last one is active."""
    return {
        "device": "8:1",
        "topic": topic,
        "partition": 0,
        "segments": [
            {
                "baseOffset": 10 * row,
                "bytes": size * MIB,
                "timestampMs": (newest_hour - len(megabytes) + 1 + row) * HOUR_MS,
            }
            for row, size in enumerate(megabytes)
        ],
        **more,
    }


def survey(settings: GuardConfig, *logs: dict[str, Any], usable: int = 100 * MIB) -> ReclaimSurvey:
    policy: ReclaimPolicy = settings.reclaim_policy
    device = {
        "name": "8:1",
        "totalBytes": 1000 * MIB,
        "usableBytes": usable,
        "nowMs": NOW_MS,
        "ceilingPercent": policy.ceiling_percent,
        "minRetentionMs": policy.min_retention_ms,
        "maxBytesPerCycle": policy.max_bytes_per_cycle,
        "protectedTopics": policy.protected_topics,
        "sparesTransactions": policy.spares_transactions,
    }
    topics = [{"name": name} for name in dict.fromkeys(each["topic"] for each in logs)]
    tables = tables_of({"devices": [device], "topics": topics, "logs": list(logs)})
    answer = BrokerLogDirs(broker=BrokerId(7), address="localhost:9092", observed_at=MADE_AT, log_dirs={})
    facts = ReplicaFacts(
        answer=answer,
        topics={},
        rules={},
        unknown={},
        log_starts={},
        high_watermarks={},
        log_ends={},
        highest_remote={},
    )
    return ReclaimSurvey(
        made_at=MADE_AT,
        seconds=0.0,
        volumes=(volume(usable=usable),),
        tables=BrokerTables(tables=tables, log_dirs=("/data/a",), ends=(len(logs),)),
        plan=plan(tables),
        facts=facts,
        ballast_bytes=(Bytes(0),),
    )


def said(findings: list[Finding], weight: Weight) -> list[str]:
    return [finding.sentence for finding in findings if finding.weight is weight]


def surveyed(added: str, *logs: dict[str, Any], usable: int = 100 * MIB) -> list[Finding]:
    settings = config(added)
    return list(explain_survey(settings, survey(settings, *logs, usable=usable)))


# The file ------------------------------------------------------------------------------------------------------------


def test_without_a_ceiling_there_is_nothing_to_say() -> None:
    settings = config()

    assert list(explain_ceiling(settings, disks(settings))) == []


def test_brakes_without_a_ceiling_are_named() -> None:
    settings = config(f"{PLAN}brimline.reclaim.protected.topics=orders\n")

    (finding,) = explain_ceiling(settings, disks(settings))

    assert finding.weight is Weight.WARNING
    assert (
        "brimline.reclaim.mode, brimline.reclaim.protected.topics: has no effect: there is no "
        "ceiling" in finding.sentence
    )


def test_apply_is_what_a_ceiling_means_and_plan_is_said_to_be_less() -> None:
    applied, planned = config(CEILING + NO_FENCE), config(CEILING + NO_FENCE + PLAN)
    of_applied, of_planned = (next(explain_ceiling(each, disks(each))) for each in (applied, planned))

    assert (of_applied.weight, of_planned.weight) == (Weight.FINE, Weight.NOTE)
    assert "are deleted (server.properties line 8)" in of_applied.sentence
    assert "brimline.reclaim.mode=plan: plans only, deletes nothing" in of_planned.sentence


def test_a_ceiling_without_a_minimum_retention_is_warned_of() -> None:
    bare, braked = config(BARE_CEILING + NO_FENCE), config(CEILING + NO_FENCE)

    (warning,) = said(list(explain_ceiling(bare, disks(bare))), Weight.WARNING)

    assert "a foreign file that fills the volume" in warning
    assert "set brimline.reclaim.min.retention.ms or brimline.reclaim.min.retention.bytes" in warning
    assert said(list(explain_ceiling(braked, disks(braked))), Weight.WARNING) == []


def test_every_brake_is_said() -> None:
    brakes = (
        "brimline.reclaim.min.retention.ms=7200000\nbrimline.reclaim.min.retention.bytes=1048576\n"
        "brimline.reclaim.max.bytes.per.cycle=2097152\n"
    )
    settings = config(BARE_CEILING + NO_FENCE + brakes)

    sentences = [finding.sentence for finding in explain_ceiling(settings, disks(settings))]

    assert sentences[1:] == [
        "nothing younger than 2 h is reclaimed, unless the disk is down to its last reserve (nothing refuses writes)",
        "1.00 MiB of every partition stay, as Kafka counts retention.bytes",
        "one cycle deletes at most 2.00 MiB from a device",
    ]


def test_a_file_with_a_ceiling_and_no_policy_gets_a_line_for_every_changed_default() -> None:
    bare, one_set, said_so = (
        config(CEILING_ALONE + NO_FENCE + added)
        for added in ("", "brimline.reclaim.min.retention.ms=0\n", "brimline.reclaim.policy=careful\n")
    )
    ruled = [key.name for key in keys.KEYS if key.kip_61 is not None]

    *lines, last = changed_defaults(bare)
    assert [line.split()[0] for line in lines] == ruled
    assert [line.split()[0] for line in changed_defaults(one_set)][:-1] == [
        name for name in ruled if name != "brimline.reclaim.min.retention.ms"
    ]
    assert list(changed_defaults(said_so)) == list(changed_defaults(config())) == []
    assert lines[0] == "brimline.reclaim.min.retention.ms is 86400000 by default (before: 0)"
    assert last == (
        f"brimline.reclaim.policy=careful accepts these {len(ruled)} defaults and ends these lines; "
        "brimline.reclaim.policy=kip-61 sets the values of before"
    )
    assert set(changed_defaults(bare)) <= set(said(list(explain_ceiling(bare, disks(bare))), Weight.NOTE))


@pytest.mark.parametrize(
    "fence",
    [
        "disk.max.used.percent=80\ndisk.min.free.bytes=0\n",
        "disk.max.used.percent=75\ndisk.min.free.bytes=0\n",
        f"disk.max.used.percent=100\ndisk.min.free.bytes={300 * MIB}\n",
    ],
)
def test_a_ceiling_that_is_not_below_the_fence(fence: str) -> None:
    settings = config(CEILING + fence)

    (warning,) = said(list(explain_ceiling(settings, disks(settings))), Weight.WARNING)

    assert "/data/a: the ceiling of 80 % is not below the fence (disk.m" in warning
    assert "is full before reclaim starts" in warning


def test_a_ceiling_below_the_fence_is_fine() -> None:
    settings = config(f"{CEILING}disk.max.used.percent=90\ndisk.min.free.bytes=0\n")

    assert said(list(explain_ceiling(settings, disks(settings))), Weight.WARNING) == []


# The files and the cluster -------------------------------------------------------------------------------------------


def test_a_ceiling_that_cannot_be_held_is_a_problem_with_topics_and_cures() -> None:
    protected = "brimline.reclaim.protected.topics=orders\nbrimline.reclaim.min.retention.ms=36000000\n"
    found = surveyed(CEILING + NO_FENCE + protected, log("orders", 300, 200), log("clicks", 150, 150))

    (problem,) = said(found, Weight.PROBLEM)
    assert problem == (
        "90.0 % of the volume of /data/a cannot be removed, mostly active segments (35.0 %), protected topics "
        "(30.0 %), minimum retention (15.0 %): a ceiling of 80 % is impossible"
    )
    cures = said(found, Weight.NOTE)
    assert cures[0].startswith("active segments: 350 MiB, 35.0 % (orders 200 MiB, clicks 150 MiB): lower segment.bytes")
    assert cures[1].startswith("protected topics: 300 MiB, 30.0 % (orders 300 MiB): protect fewer topics")
    assert cures[2].startswith("minimum retention: 150 MiB, 15.0 % (clicks 150 MiB): lower brimline.reclaim.min")


def test_what_the_guard_would_hold_is_said() -> None:
    held = CEILING + NO_FENCE + "brimline.reclaim.hold.percent=10\n"
    large, small = log("orders", 60, 60, 60, 1), log("orders", 40, 40, 1)

    notes = said(surveyed(held, large, usable=90 * MIB), Weight.NOTE)

    assert any("120 MiB would go over several cycles, more than 10 % of the volume" in note for note in notes)
    assert not any("over several cycles" in note for note in said(surveyed(held, small), Weight.NOTE))
    assert not any("over several cycles" in note for note in said(surveyed(CEILING + NO_FENCE, large), Weight.NOTE))


def test_a_hanging_transaction_is_named_with_the_command_that_ends_it() -> None:
    settings = config(CEILING + NO_FENCE)
    orders = Hanging(TopicPartition("orders", 0), 7, Bytes(MIB), open_ms=3_600_000, is_known=False, row=0)
    found = replace(survey(settings, log("orders", 10, 20)), hanging=(orders, replace(orders, is_known=True)))

    warnings = said(list(explain_survey(settings, found)), Weight.WARNING)
    unknown, known = (each for each in warnings if each.startswith("orders-0: a transaction"))

    assert "abort --topic orders --partition 0 --start-offset 7 does" in unknown
    assert "abort" not in known


def test_what_the_first_cycle_deletes_by_topic() -> None:
    logs = log("orders", 100, 100, 100, 100, newest_hour=90), log("clicks", 100, 100, newest_hour=50)
    applied, planned = surveyed(CEILING + NO_FENCE, *logs), surveyed(CEILING + NO_FENCE + PLAN, *logs)

    assert (
        "/data/a: 100 MiB over its ceiling, deletions in progress not counted: the first cycle deletes 1 segment, "
        "100 MiB" in (said(applied, Weight.WARNING))
    )
    assert "clicks: 100 MiB in 1 segment of 1 partition, records 2 days old" in (said(applied, Weight.NOTE))
    assert any("the first cycle would delete" in sentence for sentence in said(planned, Weight.NOTE))
    assert not any("first cycle" in sentence for sentence in said(planned, Weight.WARNING))


def test_of_many_topics_the_largest_losses_are_named() -> None:
    logs = [log(f"topic-{number}", 10 + number, 10) for number in range(12)]
    notes = said(surveyed(CEILING.replace("80", "1") + NO_FENCE, *logs), Weight.NOTE)

    of_topics = [sentence for sentence in notes if sentence.startswith("topic-")]
    assert [sentence.partition(":")[0] for sentence in of_topics][:2] == ["topic-11", "topic-10"]
    assert len(of_topics) == 10
    assert any(sentence.startswith("… and 2 topics more") for sentence in notes)


@pytest.mark.parametrize(
    ("added", "usable", "sentence"),
    [
        ("", 500, "/data/a: nothing to delete now: it is below its ceiling"),
        ("brimline.reclaim.max.bytes.per.cycle=0\n", 100, "/data/a: more would exceed the limit of a cycle"),
    ],
)
def test_a_first_cycle_that_deletes_nothing_says_why(added: str, usable: int, sentence: str) -> None:
    found = surveyed(CEILING + NO_FENCE + added, log("orders", 100, 100), usable=usable * MIB)

    assert any(finding.sentence.startswith(sentence) for finding in found)


def test_the_bound_names_its_parts_and_what_rate_it_bears() -> None:
    fence = "disk.max.used.percent=95\ndisk.min.free.bytes=0\n"
    (fine,) = [
        sentence
        for sentence in said(surveyed(CEILING + fence, log("orders", 36, 36, newest_hour=100)), Weight.FINE)
        if "may rise" in sentence
    ]

    # 36 MiB in the last hour are 10.2 KiB/s, and 36 MiB are active.
    assert fine.startswith("the volume of /data/a may rise 40.4 MiB above its ceiling before space is freed")
    assert "active segments of 36.0 MiB, and 7 min at 10.2 KiB/s or more" in fine
    assert (
        "(cycle 60 s and up to 15 s of jitter, survey 0.0 s, trims 0.2 s, retention check 300 s, delete delay 60 s)"
        in fine
    )
    assert "then 110 MiB are left to the fence (disk.max.used.percent=95), enough for 268 KiB/s" in fine


@pytest.mark.parametrize(
    ("fence", "end"),
    [
        ("disk.max.used.percent=85\ndisk.min.free.bytes=0\n", "the fence (disk.max.used.percent=85)"),
        (NO_FENCE, "the end of the volume"),
    ],
)
def test_a_bound_that_reaches_the_fence_is_a_warning(fence: str, end: str) -> None:
    found = surveyed(CEILING + fence, log("orders", 100, 250, newest_hour=100))

    (warning,) = [sentence for sentence in said(found, Weight.WARNING) if "may rise" in sentence]
    assert f"beyond {end}: reclaim may be too late" in warning


def test_patterns_that_protect_nothing_are_named() -> None:
    found = surveyed(
        f"{CEILING}{NO_FENCE}brimline.reclaim.protected.topics=order,ord.*\n", log("orders", 10, 10), usable=500 * MIB
    )

    assert said(found, Weight.WARNING) == [
        "brimline.reclaim.protected.topics: order matches no topic on this broker; it must match a whole name, as "
        "orders.* does"
    ]
    assert "ord.* protects 1 topic (orders)" in said(found, Weight.FINE)


# Rights --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "weight"), [(APPLY, Weight.PROBLEM), (PLAN, Weight.WARNING)])
def test_topics_that_may_not_be_trimmed_are_named(mode: str, weight: Weight) -> None:
    settings = config(CEILING + NO_FENCE + mode)
    looked_at = survey(settings, log("orders", 10, 10), log("clicks", 10, 10), log("__consumer_offsets", 10, 10))

    (finding,) = explain_rights(settings, looked_at, {"orders": False, "clicks": True, "__consumer_offsets": False})

    assert (finding.topic, finding.weight) == ("permissions", weight)
    assert finding.sentence.startswith("this principal may not delete records of 1 topic (orders): grant DELETE")


def test_rights_that_are_all_there_are_said_and_unknown_ones_are_not() -> None:
    settings = config(CEILING + NO_FENCE)
    looked_at = survey(settings, log("orders", 10, 10), log("clicks", 10, 10))

    (all_there,) = explain_rights(settings, looked_at, {"orders": True, "clicks": True})
    unknown = list(explain_rights(settings, looked_at, {"orders": True}))

    assert (all_there.weight, unknown) == (Weight.FINE, [])

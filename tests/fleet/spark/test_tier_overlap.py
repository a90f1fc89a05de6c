"""What of a tiered topic is where, and which uploads stall."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from brimline.fleet.jobs.jobs import conformed
from brimline.fleet.jobs.tier_overlap import tier_overlap
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import TIER_OVERLAP
from tests.fleet.spark.bronze import NOW, Row, frame, minutes_ago, replica, snapshot, topic_config

pytestmark = pytest.mark.integration


def overlap(
    spark: SparkSession, replicas: list[Row], history: list[Row] | None = None, **config: object
) -> dict[str, Any]:
    """Rows by topic; every topic of every snapshot is tiered."""
    configs = {
        (row["snapshot_id"], row["topic"]): topic_config(
            row, topic=row["topic"], topic_id=row["topic_id"], **{"is_tiered": True, **config}
        )
        for row in replicas
    }
    frames = [frame(spark, Table.REPLICAS, rows) for rows in (replicas, history or [])]
    found = tier_overlap(frames[0], frame(spark, Table.TOPIC_CONFIGS, list(configs.values())), frames[1], NOW)
    return {row.topic: row for row in conformed(found, TIER_OVERLAP).collect()}


def leader(of: Row, **said: object) -> Row:
    known = {"is_leader": True, "size_bytes": 100, "remote_bytes": 300, "only_local_bytes": 40}
    ends = {"highest_remote_offset": 59, "log_end_offset": 100, "high_watermark": 100, "segments": 5}
    return replica(of, **{**known, **ends, **said})


def test_a_partition_counts_once_and_all_its_replicas_take_room(spark: SparkSession) -> None:
    replicas = [
        leader(snapshot(1), partition=0),
        replica(snapshot(2), partition=0, is_leader=False, size_bytes=90),
        leader(snapshot(2), partition=1, size_bytes=10, remote_bytes=0, only_local_bytes=10),
    ]

    row = overlap(spark, replicas)["t"]

    assert (row.partitions, row.replicas, row.replica_bytes) == (2, 3, 200)
    assert (row.local_bytes, row.remote_bytes, row.only_local_bytes) == (110, 300, 50)
    assert (row.overlap_bytes, row.unknown_partitions, row.stalled_partitions) == (60, 0, 0)
    assert row.overlap_percent == pytest.approx(60 * 100 / 110)


def test_of_two_who_say_that_they_lead_the_newer_one_is_believed(spark: SparkSession) -> None:
    replicas = [
        leader(snapshot(1, minutes_ago(9)), remote_bytes=1),
        leader(snapshot(2, minutes_ago(4)), remote_bytes=2),
    ]

    row = overlap(spark, replicas)["t"]

    assert (row.partitions, row.remote_bytes) == (1, 2)


def test_an_unknown_remote_part_is_counted_as_unknown_and_in_no_sum(spark: SparkSession) -> None:
    unknown = {"remote_bytes": None, "only_local_bytes": None}
    replicas = [
        leader(snapshot(), partition=0),
        leader(snapshot(), partition=1, remote_reason="not-authorized", **unknown),
        leader(snapshot(), partition=2, topic="all-unknown", topic_id="u", remote_reason="not-asked", **unknown),
    ]

    found = overlap(spark, replicas)

    assert (found["t"].unknown_partitions, found["t"].unknown_reasons) == (1, "not-authorized")
    assert (found["t"].local_bytes, found["t"].remote_bytes) == (100, 300)
    assert (found["all-unknown"].local_bytes, found["all-unknown"].overlap_bytes) == (None, None)


def test_topics_that_are_not_tiered_are_not_in_the_table(spark: SparkSession) -> None:
    assert overlap(spark, [leader(snapshot())], is_tiered=False) == {}


def test_an_upload_stalls_when_the_log_rolls_and_the_remote_end_stands(spark: SparkSession) -> None:
    def told(topic: str, *looks: tuple[float, int | None, int, int]) -> list[Row]:
        return [
            leader(
                snapshot(1, minutes_ago(age)),
                topic=topic,
                topic_id=f"id-{topic}",
                highest_remote_offset=remote,
                log_end_offset=end,
                segments=segments,
            )
            for age, remote, end, segments in looks
        ]

    stories = {
        "stalls": told("stalls", (200, 10, 20, 3), (120, 59, 80, 5), (60, 59, 90, 6), (0, 59, 100, 7)),
        "moves": told("moves", (120, 10, 20, 3), (60, 30, 50, 4), (0, 59, 100, 5)),
        "idle": told("idle", (120, 59, 100, 5), (0, 59, 100, 5)),
        "slow": told("slow", (120, 59, 80, 5), (0, 59, 100, 5)),
        "short": told("short", (59, 59, 80, 5), (0, 59, 100, 6)),
        "never": told("never", (61, None, 80, 5), (0, None, 100, 6)),
        "by-collect": told("by-collect", (90, 59, 80, 0), (0, 59, 100, 0)),
        "guard-at-last": told("guard-at-last", (90, 59, 80, 0), (0, 59, 100, 7)),
        "collect-between": told("collect-between", (90, 59, 80, 5), (30, 59, 90, 0), (0, 59, 100, 6)),
        "collect-at-last": told("collect-at-last", (90, 59, 80, 5), (10, 59, 90, 5), (0, 59, 100, 0)),
    }
    newest = [looks[-1] for looks in stories.values()]

    found = overlap(spark, newest, [look for looks in stories.values() for look in looks])

    stalled = {name for name, row in found.items() if row.stalled_partitions}
    assert stalled == {"stalls", "never", "by-collect", "collect-between"}
    assert {name for name, row in found.items() if row.unjudged_partitions} == {"guard-at-last"}
    assert found["stalls"].stalled_since.timestamp() == minutes_ago(120).timestamp()
    assert (found["stalls"].waiting_bytes, found["moves"].waiting_bytes) == (40, None)


def test_what_is_not_to_be_copied_does_not_stall(spark: SparkSession) -> None:
    looks = [leader(snapshot(1, minutes_ago(90)), log_end_offset=80, segments=4), leader(snapshot(1))]

    assert overlap(spark, looks[-1:], looks, is_copy_disabled=True)["t"].stalled_partitions == 0
    assert overlap(spark, looks[-1:], looks)["t"].stalled_partitions == 1

"""Every reclaim scenario through Spark: the plan of the kernel to the byte. And what a trim frees on the others."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from brimline.fleet.jobs.jobs import conformed
from brimline.fleet.jobs.reclaim_plan import gains_on_peers, reclaim_plan
from brimline.fleet.planner.gains import GAIN_ROWS
from brimline.fleet.planner.rows import PLAN, PLAN_ROWS
from brimline.fleet.planner.spark_tasks import rows_on_spark
from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import OWN_PLAN, PEER_GAINS, RECLAIM_PLAN
from tests.decide.reclaim.scenarios import all_scenarios
from tests.fleet.plan_rows import assert_is_plan_of, named_trims, trims_in
from tests.fleet.snapshots import broker_of_one_log as broker
from tests.fleet.snapshots import header_of, sections_of, topic_id_of, write_snapshot
from tests.fleet.spark.bronze import NOW, frame, replica, snapshot

pytestmark = pytest.mark.integration


def test_every_scenario_gives_the_expected_plan_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    scenarios = {scenario.name: scenario for scenario in all_scenarios()}
    files = [
        write_snapshot(tmp_path, header_of(cluster=name), sections_of(scenario.tables))
        for name, scenario in scenarios.items()
    ]

    rows = rows_on_spark(spark, files, PLAN, OWN_PLAN).toArrow().to_pylist()

    for name, scenario in scenarios.items():
        own = [row for row in rows if row["cluster_id"] == name]
        assert trims_in(own) == named_trims(scenario.tables, scenario.trims), name
        assert_is_plan_of(scenario.tables, own)


def test_spark_and_arrow_say_the_same_schema() -> None:
    for spark_schema, arrow_schema in ((OWN_PLAN, PLAN_ROWS), (PEER_GAINS, GAIN_ROWS)):
        assert [(field.name, field.dataType, field.nullable) for field in from_arrow_schema(arrow_schema)] == [
            (field.name, field.dataType, field.nullable) for field in spark_schema
        ]


def planned(spark: SparkSession, files: Sequence[SnapshotFile]) -> dict[int, Any]:
    """Rows by broker; all brokers hold partition 7 of ``orders``."""
    own = rows_on_spark(spark, files, PLAN, OWN_PLAN)
    place = {"topic": "orders", "topic_id": topic_id_of("orders"), "partition": 7, "device": "disk", "log_dir": "/disk"}
    held = [replica(snapshot(file.broker_id, cluster=file.cluster_id), **place) for file in files]
    gains = gains_on_peers(own, frame(spark, Table.REPLICAS, held), paths(spark, files))
    rows = conformed(reclaim_plan(own, gains, NOW), RECLAIM_PLAN).collect()
    return {row.broker_id: row for row in rows}


def paths(spark: SparkSession, files: Sequence[SnapshotFile]) -> DataFrame:
    rows = [(file.cluster_id, file.broker_id, file.path) for file in files]
    return spark.createDataFrame(rows, "cluster_id string, broker_id int, path string")


def test_a_trim_frees_every_other_replica_by_its_own_segments(spark: SparkSession, tmp_path: Path) -> None:
    """Broker 1 takes up to 20, broker 2 up to 25; the others are below their ceilings."""
    brokers = {
        1: broker(700, [0, 10, 20, 30, 40]),
        2: broker(600, [0, 25, 50]),
        3: broker(400, [0, 5, 15, 24, 26, 99]),
        4: broker(400, [0, 5, 15, 24, 26, 99], log_start=15),
        5: broker(400, [0, 10, 20, 30], is_moving=True),
        6: broker(400, [22]),
    }
    files = [write_snapshot(tmp_path, header_of(broker=number), sections_of(each)) for number, each in brokers.items()]
    gone = write_snapshot(tmp_path, header_of(broker=7), sections_of(broker(400, [0, 10, 20])))
    Path(gone.path).unlink()

    rows = planned(spark, [*files, gone])

    assert [rows[number].taken_bytes for number in brokers] == [200, 100, None, None, None, None]
    assert [rows[number].peer_log_start_offset for number in brokers] == [25, 20, 25, 25, 25, 25]
    # Segment 24..25 of broker 3 holds offset 25; broker 4's first two were going anyway.
    assert [rows[number].peer_freed_bytes for number in brokers] == [200, 0, 300, 100, 0, 0]
    assert [rows[number].freed_bytes for number in brokers] == [200, 100, 300, 100, 0, 0]
    assert [rows[number].taken_by_peer_too_bytes for number in brokers] == [200, 0, 0, 0, 0, 0]
    assert rows[1].other_replicas == rows[2].other_replicas == 6
    assert rows[1].others_gain_bytes is None, "broker 7 holds a replica, and nobody knows what it gains"
    assert rows[7].device_outcome == "snapshot-unusable"
    assert "unreadable" in rows[7].failure


def test_what_the_others_gain_is_added_up_and_other_clusters_are_left_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = [
        write_snapshot(tmp_path, header_of(broker=1), sections_of(broker(700, [0, 10, 20, 30, 40]))),
        write_snapshot(tmp_path, header_of(broker=2), sections_of(broker(400, [0, 10, 15, 30]))),
        write_snapshot(tmp_path, header_of(broker=3), sections_of(broker(400, [0, 10, 20, 30]))),
        write_snapshot(tmp_path, header_of("cluster-b", broker=4), sections_of(broker(400, [0, 10, 20, 30]))),
    ]

    rows = planned(spark, files)

    assert (rows[1].other_replicas, rows[1].others_gain_bytes, rows[1].peer_freed_bytes) == (2, 400, None)
    assert (rows[2].freed_bytes, rows[3].freed_bytes) == (200, 200)
    assert (rows[4].topic, rows[4].freed_bytes, rows[4].device_outcome) == (None, None, "under-ceiling")

"""Percentages of retention, to the digit those of the guard's rule; what is unlimited and what is unknown say so."""

from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from brimline.decide.retention_percent import plain_percent, tiered_percents
from brimline.fleet.jobs.jobs import conformed
from brimline.fleet.jobs.retention_pressure import retention_pressure
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.gold_schemas import RETENTION_PRESSURE
from brimline.model.partitions import TopicRetention
from brimline.model.scan import FolderKind
from tests.fleet.spark.bronze import NOW, Row, frame, replica, snapshot, topic_config

pytestmark = pytest.mark.integration
LARGEST = 2**63 - 1


def pressure(spark: SparkSession, replicas: list[Row], configs: list[Row]) -> list[Any]:
    frames = frame(spark, Table.REPLICAS, replicas), frame(spark, Table.TOPIC_CONFIGS, configs)
    return conformed(retention_pressure(*frames, NOW), RETENTION_PRESSURE).collect()


def test_figures_are_those_of_the_guards_rule(spark: SparkSession) -> None:
    limits = (-1, 0, 3, 1000, 2**57, LARGEST)
    cases = list(product((0, 1, 999, 2**58, LARGEST), limits, (-2, *limits), (False, True), (False, True)))
    replicas, configs = [], []
    for number, (size, total, local, is_tiered, is_copy_disabled) in enumerate(cases):
        name = {"topic": f"t{number}", "topic_id": f"id{number}"}
        remote = {"is_leader": True, "remote_bytes": 777, "only_local_bytes": size // 2}
        replicas.append(replica(snapshot(), size_bytes=size, **name, **remote))
        rules = {"retention_bytes": total, "local_retention_bytes": local}
        configs.append(
            topic_config(snapshot(), is_tiered=is_tiered, is_copy_disabled=is_copy_disabled, **name, **rules)
        )

    found = {row.topic: row for row in pressure(spark, replicas, configs)}

    for number, (size, total, local, is_tiered, is_copy_disabled) in enumerate(cases):
        topic = TopicRetention(
            retention_bytes=total,
            local_retention_bytes=local,
            is_tiered=is_tiered,
            is_copy_disabled=is_copy_disabled,
        )
        row = found[f"t{number}"]
        tiered = tiered_percents(local_size=size, only_local_size=size // 2, remote_size=777, topic=topic)
        expected = [min(tiered.total, LARGEST), min(tiered.local, LARGEST)] if is_tiered else [None, None]
        assert row.plain_percent == min(plain_percent(size, topic), LARGEST), cases[number]
        assert [row.tiered_percent, row.local_percent] == expected, cases[number]


def test_only_the_leader_of_a_tiered_partition_has_tiered_figures(spark: SparkSession) -> None:
    known = {"size_bytes": 50, "remote_bytes": 10, "only_local_bytes": 50}
    replicas = [
        replica(snapshot(1), is_leader=True, **known),
        replica(snapshot(2), is_leader=False, **known),
        replica(snapshot(3), is_leader=True, kind=int(FolderKind.FUTURE), **known),
    ]
    configs = [topic_config(snapshot(broker), retention_bytes=100, is_tiered=True) for broker in (1, 2, 3)]

    found = {row.broker_id: row for row in pressure(spark, replicas, configs)}

    assert [found[broker].tiered_percent for broker in (1, 2, 3)] == [60, None, None]
    assert [found[broker].plain_percent for broker in (1, 2, 3)] == [0, 0, 0]
    assert found[3].is_future


def test_unlimited_is_zero_and_unknown_is_nothing(spark: SparkSession) -> None:
    replicas = [
        replica(snapshot(), topic="unlimited", topic_id="1"),
        replica(snapshot(), topic="by-time", topic_id="6"),
        replica(snapshot(), topic="compacted", topic_id="7"),
        replica(snapshot(), topic="not-told", topic_id="2"),
        replica(snapshot(), topic="no-config", topic_id="3"),
        replica(snapshot(), topic="no-size", topic_id="4", size_bytes=None),
        replica(snapshot(), topic="remote-unknown", topic_id="5", is_leader=True, remote_reason="not-asked"),
        replica(snapshot(), topic="made-anew", topic_id="old"),
        replica(snapshot(), topic=None, topic_id=None, kind=int(FolderKind.LOG_DIR)),
        replica(snapshot(), topic="stray", kind=int(FolderKind.STRAY)),
    ]
    configs = [
        topic_config(snapshot(), topic="unlimited", topic_id="1"),
        topic_config(snapshot(), topic="by-time", topic_id="6", retention_ms=604_800_000),
        topic_config(snapshot(), topic="compacted", topic_id="7", retention_ms=604_800_000, deletes=False),
        topic_config(snapshot(), topic="not-told", topic_id="2", is_known=False, retention_bytes=1),
        topic_config(snapshot(), topic="no-size", topic_id="4", retention_bytes=100),
        topic_config(snapshot(), topic="remote-unknown", topic_id="5", retention_bytes=400, is_tiered=True),
        topic_config(snapshot(), topic="made-anew", topic_id="new", retention_bytes=100),
    ]

    found = {row.topic: row for row in pressure(spark, replicas, configs)}

    assert {name: (row.limit, row.pressure_percent) for name, row in found.items()} == {
        "unlimited": ("unlimited", 0),
        "by-time": ("time", 0),
        "compacted": ("unlimited", 0),
        "not-told": ("unknown", None),
        "no-config": ("unknown", None),
        "no-size": ("limited", None),
        "remote-unknown": ("limited", 25),
        "made-anew": ("unknown", None),
    }
    assert found["remote-unknown"].tiered_percent is None
    assert found["remote-unknown"].remote_reason == "not-asked"


def test_the_fullest_come_first_in_each_cluster_and_those_without_a_figure_have_no_rank(spark: SparkSession) -> None:
    here, there = snapshot(1), snapshot(1, cluster="d")
    replicas = [
        replica(here, partition=0, size_bytes=30),
        replica(here, partition=1, size_bytes=250),
        replica(here, partition=2, size_bytes=30),
        replica(here, partition=3, size_bytes=None),
        replica({**there, "snapshot_id": "dd"}, partition=9, size_bytes=10),
    ]
    configs = [
        topic_config(here, retention_bytes=100),
        topic_config({**there, "snapshot_id": "dd"}, retention_bytes=100),
    ]

    ranks = {row.partition: (row.rank, row.pressure_percent) for row in pressure(spark, replicas, configs)}

    assert ranks == {1: (1, 250), 0: (2, 30), 2: (2, 30), 3: (None, None), 9: (1, 10)}


def test_the_guards_own_figure_stands_beside_and_is_compared(spark: SparkSession) -> None:
    replicas = [
        replica(snapshot(), partition=0, size_bytes=67, bytes_percent=67.0),
        replica(snapshot(), partition=1, size_bytes=67, bytes_percent=68.0),
        replica(snapshot(), partition=2, size_bytes=67),
    ]

    rows = pressure(spark, replicas, [topic_config(snapshot(), retention_bytes=100)])

    assert {row.partition: row.equals_guard for row in rows} == {0: True, 1: False, 2: None}

"""Whatever the families do, the JVM's beans follow; a model of the JVM reads the commands."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from brimline.metrics import catalogue
from brimline.metrics.catalogue import BY_NAME
from brimline.metrics.jmx_protocol import BeanTable, end_of_batch
from brimline.metrics.metric import MetricFamily
from tests.metrics.jvm_model import JvmModel

PARTITIONS = (("orders", "0"), ("orders", "1"))
BEANS = ("log_retention_size_in_percent", "remote_retention_size_in_percent")


@st.composite
def families(draw: st.DrawFn) -> list[MetricFamily]:
    """Some metrics, each with some partitions of two topics, in any order."""
    found = []
    for name in draw(st.sets(st.sampled_from(BEANS))):
        rows = draw(st.lists(st.tuples(st.sampled_from(("a", "b")), st.sampled_from("0123")), unique=True))
        values = draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
        found.append(BY_NAME[name].family(tuple(rows), values))
    return found


def beans_of(wanted: list[MetricFamily]) -> dict[str, int]:
    found = {}
    for family in wanted:
        bean = BY_NAME[family.name].bean
        assert bean is not None
        found.update(
            {bean.object_name(row): int(value) for row, value in zip(family.label_values, family.values, strict=True)}
        )
    return found


@given(st.lists(families()))
def test_the_beans_are_the_families_after_every_batch(batches: list[list[MetricFamily]]) -> None:
    table, jvm = BeanTable(), JvmModel()

    for wanted in batches:
        jvm.read(table.update(wanted))

        assert jvm.beans == beans_of(wanted)
        assert len(table) == len(jvm.beans)


def test_nothing_is_said_when_nothing_changed() -> None:
    table = BeanTable()
    table.update([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2))])

    assert table.update([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, np.array([1, 2]))]) == b""


def test_only_what_changed_is_said() -> None:
    table = BeanTable()
    table.update([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2))])

    said = table.update([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 3))])

    assert said == b"S" + bytes([0, 0, 0, 1]) + bytes([0, 0, 0, 1]) + (3).to_bytes(8, "big")


def test_equal_rows_in_another_tuple_are_the_same_beans() -> None:
    table = BeanTable()
    table.update([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (1, 2))])
    same_rows = tuple((topic, partition) for topic, partition in PARTITIONS)

    assert table.update([catalogue.LOG_RETENTION_SIZE.family(same_rows, (1, 2))]) == b""


def test_metrics_without_a_bean_are_not_for_the_jvm() -> None:
    assert BeanTable().update([catalogue.BROKER_CONNECTED.single(1)]) == b""


def test_a_future_log_and_its_current_one_are_two_beans() -> None:
    jvm = JvmModel()

    jvm.read(
        BeanTable().update(
            [
                catalogue.LOG_RETENTION_SIZE.family(PARTITIONS[:1], (1,)),
                catalogue.FUTURE_LOG_RETENTION_SIZE.family(PARTITIONS[:1], (2,)),
            ]
        )
    )

    assert sorted(jvm.beans.values()) == [1, 2]


def test_a_path_that_is_not_utf_8_becomes_a_readable_name() -> None:
    jvm = JvmModel()
    path = b"/data\xff".decode(errors="surrogateescape")

    jvm.read(BeanTable().update([catalogue.LOG_DIRECTORY_DISK_FULL.family(((path,),), (1,))]))

    assert list(jvm.beans) == ['kafka.log:type=LogManager,name=LogDirectoryDiskFull,logDirectory="/data\ufffd"']


def test_a_name_that_cannot_be_sent_gets_no_bean_and_harms_no_other() -> None:
    jvm = JvmModel()
    rows = (("/" + "x" * 70_000,), ("/data",))

    jvm.read(BeanTable().update([catalogue.LOG_DIRECTORY_DISK_FULL.family(rows, (1, 1))]))

    assert list(jvm.beans) == ['kafka.log:type=LogManager,name=LogDirectoryDiskFull,logDirectory="/data"']


def test_a_row_that_is_there_twice_is_one_bean_and_its_last_value_counts() -> None:
    table, jvm = BeanTable(), JvmModel()
    twice = (("orders", "0"), ("orders", "0"))

    jvm.read(table.update([catalogue.LOG_RETENTION_SIZE.family(twice, (1, 2))]))
    jvm.read(table.update([catalogue.LOG_RETENTION_SIZE.family(twice, (1, 3))]))
    jvm.read(table.update([]))
    jvm.read(table.update([catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (5, 6))]))

    assert sorted(jvm.beans.values()) == [5, 6]
    assert len(table) == 2


def test_a_batch_ends_with_its_serial() -> None:
    jvm = JvmModel()

    jvm.read(end_of_batch(7))

    assert jvm.serials == [7]

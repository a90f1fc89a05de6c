"""KIP-1257: the guard's percentages against the gauges of stock Kafka 4.3.1, and on 3.9.2, which has none.

Both sides' beans are read by jmx_exporter, the guard's text by prometheus_client. Where stock Kafka departs from the
KIP, or from the sizes of its own files, a test named ``test_stock_…`` shows it and says why the guard does not follow.
"""

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartitionReplica
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import TIERED, create_topic, eventually, produce
from tests.integration.guarded import RunningGuard, guard
from tests.integration.percent_gauges import (
    FUTURE,
    LOCAL,
    METADATA_LOG,
    MIB,
    PLAIN,
    PROPERTIES,
    SMALL,
    TOTAL,
    Figures,
    beans,
    configure,
    figures_of_files,
    fill,
    of_topic,
    percent,
    percentages,
    settled_beans,
    size,
    whole_size,
)
from tests.integration.segment_files import segment_files
from tests.integration.test_remote_info import is_settled, local_segments, remote_segments
from tests.metrics.jmx_exporter import parse
from tests.metrics.test_same_names_as_stock import start_jmx
from tests.metrics.waiting import free_port

pytestmark = pytest.mark.integration

Served = tuple[Sandbox, int]
"""A sandbox and the JMX port of its broker."""


@pytest.fixture(scope="module")
def stock() -> Iterator[Served]:
    volumes = (VolumeSpec(size=Bytes(256 * MIB)),)
    with Sandbox(SandboxSpec(version="4.3.1", tiered=True, volumes=volumes, properties=PROPERTIES)) as sandbox:
        fill(sandbox)
        yield sandbox, start_jmx(sandbox.broker(1).pid)


@contextmanager
def guard_with_jmx(
    sandbox: Sandbox, folder: Path, wanted: Callable[[Figures], bool]
) -> Iterator[tuple[RunningGuard, int]]:
    """A guard that publishes everything, and its JMX port, once its figures are as ``wanted``."""
    port = free_port()
    limits = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
    added = {**limits, "brimline.metrics.publish": "all", "brimline.jmx.port": str(port)}
    with guard(sandbox, folder / "log", added) as running:
        eventually(lambda: wanted(percentages(parse(running.get("/metrics")))))
        eventually(lambda: running.samples("brimline_jmx_bridge_up") == {"": 1.0})
        yield running, port


def has_tiered(figures: Figures) -> bool:
    return any(metric == TOTAL for metric, _, _ in figures)


def both(stock: Served, topic: str, folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Stock's figures of a topic, and the guard's."""
    sandbox, stock_port = stock
    with guard_with_jmx(sandbox, folder, lambda figures: bool(of_topic(figures, topic))) as (_, port):
        return of_topic(settled_beans(stock_port, folder), topic), of_topic(settled_beans(port, folder), topic)


def test_every_figure_is_the_brokers_own(stock: Served, tmp_path: Path) -> None:
    """Plain, over its limit, unlimited, compacted, tiered, copy disabled from the start and later, and Kafka's own."""
    sandbox, stock_port = stock
    expected = figures_of_files(sandbox)
    topics = {topic for _, topic, _ in expected} | {"__remote_log_metadata"}
    with guard_with_jmx(sandbox, tmp_path, has_tiered) as (running, port):
        brokers = {row: value for row, value in settled_beans(stock_port, tmp_path).items() if row[1] in topics}
        guards = {row: value for row, value in settled_beans(port, tmp_path).items() if row[1] in topics}
        text = percentages(parse(running.get("/metrics")))

    assert guards == brokers
    assert {row: value for row, value in text.items() if row[1] in topics} == brokers
    assert {row: value for row, value in guards.items() if row[1] != "__remote_log_metadata"} == expected


@pytest.mark.long
def test_older_brokers_get_the_same_beans_and_they_are_right(tmp_path: Path) -> None:
    """3.9.2 has tiered storage and none of these gauges."""
    volumes = (VolumeSpec(size=Bytes(256 * MIB)),)
    with Sandbox(SandboxSpec(version="3.9.2", tiered=True, volumes=volumes, properties=PROPERTIES)) as sandbox:
        fill(sandbox)
        brokers = beans(start_jmx(sandbox.broker(1).pid), tmp_path)
        with guard_with_jmx(sandbox, tmp_path, has_tiered) as (running, port):
            guards = settled_beans(port, tmp_path)
            text = percentages(parse(running.get("/metrics")))
        expected = figures_of_files(sandbox)

    assert brokers == {}
    assert {row: value for row, value in guards.items() if not row[1].startswith("__")} == expected
    assert text == guards


def test_stock_leaves_the_local_figure_of_an_endless_topic_at_0(stock: Served, tmp_path: Path) -> None:
    """With ``retention.bytes=-1`` and something uploaded, stock leaves its expiration task before it sets either gauge.

    The KIP has 0 for what is unlimited. The local log is not: it has a limit, is deleted by it, and fills a disk, so
    the guard computes that figure.
    """
    sandbox, _ = stock
    create_topic(sandbox, "stock-endless", config={**TIERED, "retention.bytes": "-1"})
    produce(sandbox, "stock-endless", 6.5)
    eventually(lambda: is_settled(sandbox, "stock-endless", 0, at_most=3))

    theirs, ours = both(stock, "stock-endless", tmp_path)

    right = percent(size(sandbox, "stock-endless"), 2 * MIB)
    assert right > 0
    assert ours == {PLAIN: 0, TOTAL: 0, LOCAL: right}
    assert theirs[TOTAL] == 0
    assert theirs[LOCAL] != right


@pytest.mark.long
def test_stock_freezes_both_figures_when_a_topic_becomes_endless(stock: Served, tmp_path: Path) -> None:
    """The same early return: the last values of the limited time stay for good, whatever the log does.

    The KIP's table wants 0 for the total, and the guard follows the KIP.
    """
    sandbox, stock_port = stock
    create_topic(sandbox, "stock-frozen", config={**TIERED, "retention.bytes": str(10 * MIB)})
    produce(sandbox, "stock-frozen", 3.5)
    eventually(lambda: is_settled(sandbox, "stock-frozen", 0, at_most=3))
    limited = of_topic(settled_beans(stock_port, tmp_path), "stock-frozen")
    configure(sandbox, "topics", "stock-frozen", "retention.bytes=-1")
    produce(sandbox, "stock-frozen", 5.3)
    eventually(lambda: len(remote_segments(sandbox, "stock-frozen", 0)) >= 8)
    eventually(lambda: is_settled(sandbox, "stock-frozen", 0, at_most=3))

    theirs, ours = both(stock, "stock-frozen", tmp_path)

    assert limited[TOTAL] > 30
    assert theirs == limited
    assert ours == {PLAIN: 0, TOTAL: 0, LOCAL: percent(size(sandbox, "stock-frozen"), 2 * MIB)}


def test_stock_counts_an_uploaded_segment_of_one_record_twice(stock: Served, tmp_path: Path) -> None:
    """Stock takes a segment for only local when its base offset is not below the highest uploaded offset.

    For the newest uploaded segment, if that holds one record, the two are the same: it counts as remote and as only
    local. The guard asks whether uploads cover the segment's offsets, and counts it once.
    """
    sandbox, _ = stock
    config = {**TIERED, "local.retention.bytes": str(8 * MIB), "retention.bytes": str(10 * MIB)}
    create_topic(sandbox, "stock-twice", config=config)
    producer = KafkaProducer(bootstrap_servers=sandbox.admin_servers, acks="all", max_request_size=2 * MIB)
    for _ in range(4):
        producer.send("stock-twice", b"x" * 900_000, partition=0).get(timeout=30)
    producer.close()
    eventually(lambda: len(remote_segments(sandbox, "stock-twice", 0)) == 3)

    theirs, ours = both(stock, "stock-twice", tmp_path)

    segments = local_segments(sandbox, "stock-twice", 0)
    assert len(segments) == 4
    assert ours[TOTAL] == percent(whole_size(sandbox, "stock-twice"), 10 * MIB)
    assert theirs[TOTAL] == percent(whole_size(sandbox, "stock-twice") + segments[2], 10 * MIB)
    assert theirs[LOCAL] == ours[LOCAL]


@pytest.mark.long
def test_stock_wraps_beyond_32_bits(stock: Served, tmp_path: Path) -> None:
    """Stock casts the percentage to an int. 22 MB in one segment of a topic limited to 1 byte are 2.2 billion percent.

    The KIP says that figures may exceed 100, and a negative one is no figure.
    """
    sandbox, _ = stock
    create_topic(sandbox, "stock-wrapped", config={"segment.bytes": str(64 * MIB), "retention.bytes": "1"})
    produce(sandbox, "stock-wrapped", 22)

    theirs, ours = both(stock, "stock-wrapped", tmp_path)

    right = 100 * size(sandbox, "stock-wrapped")
    assert ours == {PLAIN: right}
    assert theirs == {PLAIN: right - (1 << 32)}


def test_stock_has_a_bean_for_the_metadata_log_that_reads_0(stock: Served, tmp_path: Path) -> None:
    """The metadata log is a log, so it gets the gauge, which read 0 on every broker that was looked at.

    It has no ``retention.bytes`` and no topic, and DescribeLogDirs does not show it: the guard has no such bean.
    """
    sandbox, stock_port = stock
    with guard_with_jmx(sandbox, tmp_path, has_tiered) as (_, port):
        theirs = of_topic(beans(stock_port, tmp_path, metadata_log=True), METADATA_LOG)
        ours = of_topic(beans(port, tmp_path, metadata_log=True), METADATA_LOG)

    assert theirs == {PLAIN: 0}
    assert ours == {}


@contextmanager
def moving(version: str) -> Iterator[tuple[Sandbox, Path, Path]]:
    """AlterReplicaLogDirs, throttled so that it stands still in the middle; the log dirs from and to."""
    volume = VolumeSpec(size=Bytes(64 * MIB))
    with Sandbox(SandboxSpec(version=version, volumes=(volume, volume))) as sandbox:
        create_topic(sandbox, "moving", config={**SMALL, "retention.bytes": str(10 * MIB)})
        produce(sandbox, "moving", 6)
        configure(sandbox, "brokers", "1", "replica.alter.log.dirs.io.max.bytes.per.second=1")
        source = next(d for d in sandbox.broker(1).log_dirs if (sandbox.outside(d) / "moving-0").exists())
        (target,) = set(sandbox.broker(1).log_dirs) - {source}
        client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
        client.alter_replica_log_dirs({TopicPartitionReplica("moving", 0, 1): str(target)})
        client.close()
        eventually(lambda: bytes_of(sandbox, target, "moving-0.*-future") > 0)
        yield sandbox, source, target


def has_future(figures: Figures) -> bool:
    return figures.get((FUTURE, "moving", 0), 0) > 0


@pytest.mark.parametrize("version", [pytest.param("3.9.2", marks=pytest.mark.long), "4.3.1"])
def test_a_future_replica_has_its_own_bean_until_it_is_the_replica(version: str, tmp_path: Path) -> None:
    with moving(version) as (sandbox, source, target):
        with guard_with_jmx(sandbox, tmp_path, has_future) as (running, port):
            guards = of_topic(settled_beans(port, tmp_path), "moving")
            text = of_topic(percentages(parse(running.get("/metrics"))), "moving")
            current = bytes_of(sandbox, source, "moving-0")
            future = bytes_of(sandbox, target, "moving-0.*-future")
            configure(sandbox, "brokers", "1", f"replica.alter.log.dirs.io.max.bytes.per.second={1 << 40}")
            eventually(lambda: not has_future(percentages(parse(running.get("/metrics")))))
            moved = of_topic(settled_beans(port, tmp_path), "moving")
        arrived = bytes_of(sandbox, target, "moving-0")

    assert 0 < future < current == arrived
    assert guards == text == {PLAIN: percent(current, 10 * MIB), FUTURE: percent(future, 10 * MIB)}
    assert moved == {PLAIN: percent(current, 10 * MIB)}


@pytest.mark.long
def test_stock_stands_still_while_a_replica_moves(tmp_path: Path) -> None:
    """Stock sets the plain gauge at the end of a retention pass, and passes leave out a partition that is moving.

    So the future log reads 0 however much of it is there, and the log that is still in use reads what it read before
    the move. A move may take hours; the guard shows the sizes of now.
    """
    with moving("4.3.1") as (sandbox, source, target):
        stock_port = start_jmx(sandbox.broker(1).pid)
        before = settled_beans(stock_port, tmp_path)[PLAIN, "moving", 0]
        produce(sandbox, "moving", 2.5)
        with guard_with_jmx(sandbox, tmp_path, has_future) as (_, port):
            theirs = of_topic(settled_beans(stock_port, tmp_path), "moving")
            ours = of_topic(settled_beans(port, tmp_path), "moving")
        current = percent(bytes_of(sandbox, source, "moving-0"), 10 * MIB)
        future = percent(bytes_of(sandbox, target, "moving-0.*-future"), 10 * MIB)

    assert ours == {PLAIN: current, FUTURE: future}
    assert theirs == {PLAIN: before, FUTURE: 0}
    assert before < current


def bytes_of(sandbox: Sandbox, log_dir: Path, folder: str) -> int:
    return sum(sum(segment_files(found).values()) for found in sandbox.outside(log_dir).glob(folder))


def test_the_text_of_a_running_guard_is_valid_openmetrics(stock: Served, tmp_path: Path) -> None:
    """prometheus_client's parser of OpenMetrics is strict: units, types, counters' names, the end."""
    sandbox, _ = stock
    with guard_with_jmx(sandbox, tmp_path, has_tiered) as (running, _):
        # A rate needs a second look at the disk: until then the two texts may be of before and after it.
        eventually(lambda: running.samples("brimline_volume_fill_rate_bytes_per_second") != {})
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        request = urllib.request.Request(f"http://127.0.0.1:{running.port}/metrics", headers=accept)
        with urllib.request.urlopen(request, timeout=30) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
        plain = parse(running.get("/metrics"))

    families = {family.name: family for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]
    open_series = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert percentages(open_series) == percentages(plain) != {}
    assert {name for name, _ in open_series} == {name for name, _ in plain}

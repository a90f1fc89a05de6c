"""KIP-1257: the guard's percentages against the gauges of stock Kafka 4.3.1, and on 3.9.2, which has none.

Both sides' beans are read by jmx_exporter, the guard's text by prometheus_client. Where stock Kafka departs from the
KIP, or from the sizes of its own files, a test named ``test_stock_…`` shows it and says why the guard does not follow.
"""

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import TopicPartitionReplica
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from brimline.metrics import catalogue
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import (
    THROTTLED_FOR_GOOD,
    TIERED,
    configure,
    create_topic,
    move_log_dirs_quickly,
    move_log_dirs_slowly,
    produce,
)
from tests.integration.guarded import RunningGuard, guard
from tests.integration.kafka_clients import kafka_admin, kafka_producer
from tests.integration.percent_gauges import (
    BOTH_RULES,
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
    figures_of_files,
    fill,
    of_topic,
    of_topics,
    percent,
    percentages,
    size,
    whole_size,
)
from tests.integration.segment_files import segment_files
from tests.integration.test_remote_info import is_settled, local_segments, remote_segments
from tests.metrics.jmx_exporter import GENERAL_RULES, Series, exporter, parse, scrape, start_jmx
from tests.processes import free_port
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

METADATA_TOPIC = "__remote_log_metadata"
PULSE = "pulse"
"""A tiered topic that grows whenever somebody wants to see that stock's tasks have come round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A broker, and beside it a guard that publishes everything."""

    sandbox: Sandbox
    stock_port: int
    stock_series: Callable[[], Series]
    running: RunningGuard
    guard_port: int
    guard_series: Callable[[], Series]

    def theirs(self) -> Figures:
        """The broker's own beans."""
        return beans(self.stock_series())

    def ours(self) -> Figures:
        """The guard's beans."""
        return beans(self.guard_series())

    def text(self) -> Figures:
        """The guard's text."""
        return percentages(parse(self.running.get("/metrics")))


@contextmanager
def guarded(sandbox: Sandbox, folder: Path) -> Iterator[Guarded]:
    """Both sides' beans are read by an exporter each, which runs as long as this does."""
    stock_port, guard_port = start_jmx(sandbox.broker(1).pid), free_port()
    limits = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
    agent = "brimline.jmx.com.sun.management.jmxremote"
    open_jmx = {"brimline.jmx.port": str(guard_port), f"{agent}.authenticate": "false", f"{agent}.ssl": "false"}
    added = {**limits, "brimline.metrics.publish": "all", **open_jmx}
    with (
        guard(sandbox, folder / "log", added) as running,
        exporter(stock_port, folder, rules=BOTH_RULES) as stock_series,
        exporter(guard_port, folder, rules=BOTH_RULES) as guard_series,
    ):
        eventually(lambda: running.samples("brimline_jmx_bridge_up") == {"": 1.0})
        yield Guarded(
            sandbox=sandbox,
            stock_port=stock_port,
            stock_series=stock_series,
            running=running,
            guard_port=guard_port,
            guard_series=guard_series,
        )


@contextmanager
def filled(version: str, folder: Path) -> Iterator[Guarded]:
    volumes = (VolumeSpec(size=Bytes(256 * MIB)),)
    with Sandbox(SandboxSpec(version=version, tiered=True, volumes=volumes, properties=PROPERTIES)) as sandbox:
        fill(sandbox)
        with guarded(sandbox, folder) as found:
            yield found


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with filled("4.3.1", tmp_path_factory.mktemp("stock")) as found:
        create_topic(found.sandbox, PULSE, config={**TIERED, "retention.bytes": str(20 * MIB)})
        yield found


def wait_for_stocks_tasks(stock: Guarded) -> None:
    """Until a figure that stock's remote tasks set is of after this call."""
    before = stock.theirs().get((TOTAL, PULSE, 0), 0)
    produce(stock.sandbox, PULSE, 0.5)
    eventually(lambda: stock.theirs().get((TOTAL, PULSE, 0), 0) > before)


def test_every_figure_is_the_brokers_own(stock: Guarded) -> None:
    """Plain, over its limit, unlimited, compacted, tiered, copy disabled from the start and later, and Kafka's own."""
    topics = {topic for _, topic, _ in figures_of_files(stock.sandbox)}

    eventually(lambda: of_topics(stock.theirs(), topics) == figures_of_files(stock.sandbox))
    eventually(lambda: of_topics(stock.ours(), topics) == figures_of_files(stock.sandbox))
    eventually(lambda: of_topics(stock.text(), topics) == figures_of_files(stock.sandbox))
    own = {METADATA_TOPIC}
    eventually(lambda: of_topics(stock.ours(), own) == of_topics(stock.text(), own) == of_topics(stock.theirs(), own))
    assert len(of_topics(stock.theirs(), own)) == 5


def test_the_tag_of_a_full_log_dir_is_the_one_of_an_offline_log_dir(stock: Guarded, tmp_path: Path) -> None:
    """Stock has no bean for a full one; ours is named as if it had. No rule of ours helps the exporter here."""
    general = f"rules:\n{GENERAL_RULES}"
    ours, theirs = (scrape(port, tmp_path, rules=general) for port in (stock.guard_port, stock.stock_port))

    full = {labels for name, labels in ours if name == catalogue.LOG_DIRECTORY_DISK_FULL.prometheus}
    offline = {labels for name, labels in theirs if name == "kafka_log_logmanager_logdirectoryoffline"}
    assert full == offline
    assert len(full) == 1


@pytest.mark.long
def test_older_brokers_get_the_same_beans_and_they_are_right(tmp_path: Path) -> None:
    """3.9.2 has tiered storage and none of these gauges."""
    with filled("3.9.2", tmp_path) as found:
        eventually(lambda: of_users(found.ours()) == figures_of_files(found.sandbox))
        eventually(lambda: found.text() == found.ours())
        of_broker = found.stock_series()

    assert of_broker["jmx_scrape_error", ()] == 0
    assert percentages(of_broker) == {}


def of_users(figures: Figures) -> Figures:
    return {row: value for row, value in figures.items() if not row[1].startswith("__")}


@pytest.mark.long
def test_stock_leaves_the_local_figure_of_an_endless_topic_at_0(stock: Guarded) -> None:
    """With ``retention.bytes=-1`` and something uploaded, stock leaves its expiration task before it sets either gauge.

    The KIP has 0 for what is unlimited. The local log is not: it has a limit, is deleted by it, and fills a disk, so
    the guard computes that figure.
    """
    sandbox, topic = stock.sandbox, "stock-endless"
    create_topic(sandbox, topic, config={**TIERED, "retention.bytes": "-1"})
    produce(sandbox, topic, 6.5)
    eventually(lambda: is_settled(sandbox, topic, 0, at_most=3))
    right = percent(size(sandbox, topic), 2 * MIB)
    eventually(lambda: of_topic(stock.ours(), topic) == {PLAIN: 0, TOTAL: 0, LOCAL: right})
    wait_for_stocks_tasks(stock)

    theirs = of_topic(stock.theirs(), topic)

    assert right > 0
    assert theirs[TOTAL] == 0
    assert theirs[LOCAL] != right


@pytest.mark.long
def test_stock_freezes_both_figures_when_a_topic_becomes_endless(stock: Guarded) -> None:
    """The same early return: the last values of the limited time stay for good, whatever the log does.

    The KIP's table wants 0 for the total, and the guard follows the KIP.
    """
    sandbox, topic = stock.sandbox, "stock-frozen"
    create_topic(sandbox, topic, config={**TIERED, "retention.bytes": str(10 * MIB)})
    produce(sandbox, topic, 3.5)
    eventually(lambda: is_settled(sandbox, topic, 0, at_most=3))
    limited = {
        PLAIN: 0,
        TOTAL: percent(whole_size(sandbox, topic), 10 * MIB),
        LOCAL: percent(size(sandbox, topic), 2 * MIB),
    }
    eventually(lambda: of_topic(stock.theirs(), topic) == limited)
    configure(sandbox, "TOPIC", topic, {"retention.bytes": "-1"})
    wait_for_stocks_tasks(stock)
    produce(sandbox, topic, 5.3)
    eventually(lambda: len(remote_segments(sandbox, topic, 0)) >= 8)
    eventually(lambda: is_settled(sandbox, topic, 0, at_most=3))
    right = percent(size(sandbox, topic), 2 * MIB)
    eventually(lambda: of_topic(stock.ours(), topic) == {PLAIN: 0, TOTAL: 0, LOCAL: right})
    wait_for_stocks_tasks(stock)

    assert limited[TOTAL] > 30
    assert of_topic(stock.theirs(), topic) == limited


def test_stock_counts_an_uploaded_segment_of_one_record_twice(stock: Guarded) -> None:
    """Stock takes a segment for only local when its base offset is not below the highest uploaded offset.

    For the newest uploaded segment, if that holds one record, the two are the same: it counts as remote and as only
    local. The guard asks whether uploads cover the segment's offsets, and counts it once.
    """
    sandbox, topic = stock.sandbox, "stock-twice"
    config = {**TIERED, "local.retention.bytes": str(8 * MIB), "retention.bytes": str(10 * MIB)}
    create_topic(sandbox, topic, config=config)
    with kafka_producer(sandbox.admin_servers, acks="all", max_request_size=2 * MIB) as producer:
        for _ in range(4):
            producer.send(topic, b"x" * 900_000, partition=0).get(timeout=PATIENCE_SECONDS)
    eventually(lambda: len(remote_segments(sandbox, topic, 0)) == 3)
    segments, whole = local_segments(sandbox, topic, 0), whole_size(sandbox, topic)
    once, twice = percent(whole, 10 * MIB), percent(whole + segments[2], 10 * MIB)
    local = percent(sum(segments.values()), 8 * MIB)

    eventually(lambda: of_topic(stock.ours(), topic) == {PLAIN: 0, TOTAL: once, LOCAL: local})
    eventually(lambda: of_topic(stock.theirs(), topic) == {PLAIN: 0, TOTAL: twice, LOCAL: local})
    assert len(segments) == 4


@pytest.mark.long
def test_stock_wraps_beyond_32_bits(stock: Guarded) -> None:
    """Stock casts the percentage to an int. 22 MB in one segment of a topic limited to 1 byte are 2.2 billion percent.

    The KIP says that figures may exceed 100, and a negative one is no figure.
    """
    sandbox, topic = stock.sandbox, "stock-wrapped"
    create_topic(sandbox, topic, config={"segment.bytes": str(64 * MIB), "retention.bytes": "1"})
    produce(sandbox, topic, 22)
    right = 100 * size(sandbox, topic)

    eventually(lambda: of_topic(stock.ours(), topic) == {PLAIN: right})
    eventually(lambda: of_topic(stock.theirs(), topic) == {PLAIN: right - (1 << 32)})


def test_stock_has_a_bean_for_the_metadata_log_that_reads_0(stock: Guarded) -> None:
    """The metadata log is a log, so it gets the gauge, which read 0 on every broker that was looked at.

    It has no ``retention.bytes`` and no topic, and DescribeLogDirs does not show it: the guard has no such bean.
    """
    eventually(lambda: of_topic(stock.ours(), "unlimited") == {PLAIN: 0})

    assert of_topic(stock.theirs(), METADATA_LOG) == {PLAIN: 0}
    assert of_topic(stock.ours(), METADATA_LOG) == {}


@contextmanager
def moving(version: str, folder: Path) -> Iterator[tuple[Guarded, Path, Path]]:
    """AlterReplicaLogDirs, throttled so that it stands still in the middle; the log dirs from and to."""
    volume = VolumeSpec(size=Bytes(64 * MIB))
    with Sandbox(SandboxSpec(version=version, volumes=(volume, volume), properties=THROTTLED_FOR_GOOD)) as sandbox:
        move_log_dirs_slowly(sandbox)
        create_topic(sandbox, "moving", config={**SMALL, "retention.bytes": str(10 * MIB)})
        produce(sandbox, "moving", 6)
        source = next(d for d in sandbox.broker(1).log_dirs if (sandbox.outside(d) / "moving-0").exists())
        (target,) = set(sandbox.broker(1).log_dirs) - {source}
        with kafka_admin(sandbox.admin_servers) as client:
            client.alter_replica_log_dirs({TopicPartitionReplica("moving", 0, 1): str(target)})
        eventually(lambda: bytes_of(sandbox, target, "moving-0.*-future") > 0)
        with guarded(sandbox, folder) as found:
            yield found, source, target


def figures_of_move(sandbox: Sandbox, source: Path, target: Path) -> dict[str, int]:
    return {
        PLAIN: percent(bytes_of(sandbox, source, "moving-0"), 10 * MIB),
        FUTURE: percent(bytes_of(sandbox, target, "moving-0.*-future"), 10 * MIB),
    }


@pytest.mark.parametrize("version", [pytest.param("3.9.2", marks=pytest.mark.long), "4.3.1"])
def test_a_future_replica_has_its_own_bean_until_it_is_the_replica(version: str, tmp_path: Path) -> None:
    with moving(version, tmp_path) as (found, source, target):
        sandbox = found.sandbox
        eventually(lambda: of_topic(found.ours(), "moving") == figures_of_move(sandbox, source, target))
        eventually(lambda: of_topic(found.text(), "moving") == figures_of_move(sandbox, source, target))
        current, future = (figures_of_move(sandbox, source, target)[metric] for metric in (PLAIN, FUTURE))
        move_log_dirs_quickly(sandbox)
        eventually(lambda: of_topic(found.ours(), "moving") == {PLAIN: current})
        eventually(lambda: percent(bytes_of(sandbox, target, "moving-0"), 10 * MIB) == current)

    assert 0 < future < current


@pytest.mark.long
def test_stock_stands_still_while_a_replica_moves(tmp_path: Path) -> None:
    """Stock sets the plain gauge at the end of a retention pass, and passes leave out a partition that is moving.

    So the future log reads 0 however much of it is there, and the log that is still in use reads what it read before
    the move. A move may take hours; the guard shows the sizes of now.
    """
    with moving("4.3.1", tmp_path) as (found, source, target):
        sandbox = found.sandbox
        before = found.theirs()[PLAIN, "moving", 0]
        produce(sandbox, "moving", 2.5)
        eventually(lambda: of_topic(found.ours(), "moving") == figures_of_move(sandbox, source, target))
        create_topic(sandbox, PULSE, config={"retention.bytes": str(MIB)})
        produce(sandbox, PULSE, 0.5)
        eventually(lambda: found.theirs().get((PLAIN, PULSE, 0), 0) > 0)
        theirs, current = of_topic(found.theirs(), "moving"), figures_of_move(sandbox, source, target)[PLAIN]

    assert theirs == {PLAIN: before, FUTURE: 0}
    assert before < current


def bytes_of(sandbox: Sandbox, log_dir: Path, folder: str) -> int:
    return sum(sum(segment_files(found).values()) for found in sandbox.outside(log_dir).glob(folder))


def test_the_text_of_a_running_guard_is_valid_openmetrics(stock: Guarded) -> None:
    """prometheus_client's parser of OpenMetrics is strict: units, types, counters' names, the end."""
    # A rate needs a second look at the disk: until then the two texts may be of before and after it.
    eventually(lambda: stock.running.samples("brimline_volume_fill_rate_bytes_per_second") != {})

    eventually(lambda: {name for name, _ in open_series(stock)} == {name for name, _ in plain_series(stock)})
    eventually(lambda: percentages(open_series(stock)) == percentages(plain_series(stock)) != {})


def open_series(stock: Guarded) -> Series:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    request = urllib.request.Request(f"http://127.0.0.1:{stock.running.port}/metrics", headers=accept)
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        kind, text = answer.headers["Content-Type"], answer.read().decode()
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_openmetrics(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def plain_series(stock: Guarded) -> Series:
    return parse(stock.running.get("/metrics"))

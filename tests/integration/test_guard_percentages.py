"""KIP-1257 beside real brokers: against the sizes of the files, and through what a cluster goes through."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kafka.admin import NewPartitions

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import RATHER_CALM, TIERED, create_topic, produce
from tests.integration.guarded import RunningGuard, guard
from tests.integration.kafka_clients import kafka_admin
from tests.integration.test_remote_info import is_settled, local_segments, only_local_on_disk, remote_segments
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
ALL = {"brimline.metrics.publish": "all", "disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
PLAIN = "kafka_log_log_retentionsizeinpercent"
TOTAL = "kafka_log_remote_remotelogmanager_retentionsizeinpercent"
LOCAL = "kafka_log_remote_remotelogmanager_localretentionsizeinpercent"
VOLUMES = (VolumeSpec(size=Bytes(192 * MIB)),)
SMALL = {"segment.bytes": str(MIB), "file.delete.delay.ms": "0"}


VERSIONS = [*(pytest.param(version, marks=pytest.mark.long) for version in ("3.9.2", "4.1.2")), "4.3.1"]


@pytest.fixture(scope="module", params=VERSIONS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(SandboxSpec(version=request.param, volumes=VOLUMES, tiered=True)) as running:
        create_topic(running, "plain", partitions=2, config={**SMALL, "retention.bytes": str(4 * MIB)})
        create_topic(running, "unlimited", config={"retention.bytes": "-1"})
        create_topic(running, "compacted", config={"cleanup.policy": "compact", "retention.bytes": str(4 * MIB)})
        create_topic(running, "tiered", config={**TIERED, "retention.bytes": str(20 * MIB)})
        create_topic(running, "forever", config={**TIERED, "retention.bytes": "-1"})
        disabled = {**SMALL, "remote.storage.enable": "true", "remote.log.copy.disable": "true"}
        create_topic(running, "not-copied", config={**disabled, "retention.bytes": str(20 * MIB)})
        produce(running, "plain", 2.2)
        produce(running, "unlimited", 0.5)
        produce(running, "tiered", 6.5)
        produce(running, "forever", 6.5)
        produce(running, "not-copied", 3.2)
        eventually(lambda: is_settled(running, "tiered", 0, at_most=3))
        eventually(lambda: is_settled(running, "forever", 0, at_most=3))
        yield running


def percent(size: int, limit: int) -> int:
    return size * 100 // limit


def size(sandbox: Sandbox, topic: str, partition: int = 0) -> int:
    return sum(local_segments(sandbox, topic, partition).values())


def whole(sandbox: Sandbox, topic: str) -> int:
    return only_local_on_disk(sandbox, topic, 0) + sum(remote_segments(sandbox, topic, 0).values())


def test_every_row_of_the_kips_table(sandbox: Sandbox, tmp_path: Path) -> None:
    not_copied = percent(size(sandbox, "not-copied"), 20 * MIB)
    plain = {"plain": percent(size(sandbox, "plain"), 4 * MIB), "not-copied": not_copied}
    plain |= dict.fromkeys(("unlimited", "compacted", "tiered", "forever"), 0)
    total = {"tiered": percent(whole(sandbox, "tiered"), 20 * MIB), "forever": 0, "not-copied": not_copied}
    local = {topic: percent(size(sandbox, topic), 2 * MIB) for topic in ("tiered", "forever")}

    with guard(sandbox, tmp_path / "log", ALL) as running:
        eventually(lambda: of_users(running, PLAIN) == plain)
        eventually(lambda: of_users(running, TOTAL) == total)
        eventually(lambda: of_users(running, LOCAL) == {**local, "not-copied": not_copied})


def of_users(running: RunningGuard, metric: str) -> dict[str, float]:
    """By topic, of partition 0, without Kafka's own. A guard that is late withdraws its figures for a moment."""
    found = {}
    for labels, value in running.samples(metric).items():
        topic, partition = labels.split('"')[1::2]
        if partition == "0" and not topic.startswith("__"):
            found[topic] = value
    return found


def published(running: RunningGuard) -> dict[str, set[str]]:
    """Topics by metric."""
    return {metric: {labels.split('"')[1] for labels in running.samples(metric)} for metric in (PLAIN, TOTAL, LOCAL)}


@pytest.mark.long
def test_a_broker_from_before_tiered_storage_has_the_plain_figures(tmp_path: Path) -> None:
    with Sandbox(SandboxSpec(version="3.2.3", volumes=VOLUMES)) as sandbox:
        create_topic(sandbox, "plain", config={**SMALL, "retention.bytes": str(4 * MIB)})
        produce(sandbox, "plain", 2.2)
        with guard(sandbox, tmp_path / "log") as running:
            eventually(lambda: running.percent(PLAIN, "plain") is not None)
            plain = running.percent(PLAIN, "plain")
            remote = running.samples(TOTAL), running.samples(LOCAL)

        assert plain == percent(size(sandbox, "plain"), 4 * MIB) > 50
        assert remote == ({}, {})


def test_auto_does_not_double_what_the_broker_publishes_rightly(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log", {"brimline.metrics.publish": "auto"}) as running:
        if sandbox.spec.version == "4.3.1":
            eventually(lambda: published(running) == {PLAIN: set(), TOTAL: {"forever"}, LOCAL: {"forever"}})
        else:
            everything = {"tiered", "forever", "not-copied"}
            eventually(lambda: {"plain", "tiered"} <= published(running)[PLAIN])
            eventually(lambda: published(running)[TOTAL] == published(running)[LOCAL] == everything)


def test_growth_deletion_and_a_new_topic_of_the_old_name(sandbox: Sandbox, tmp_path: Path) -> None:
    create_topic(sandbox, "short-lived", config={**TIERED, "retention.bytes": str(8 * MIB)})
    produce(sandbox, "short-lived", 4.5)
    eventually(lambda: is_settled(sandbox, "short-lived", 0, at_most=3))
    with guard(sandbox, tmp_path / "log", ALL) as running, kafka_admin(sandbox.admin_servers) as client:
        eventually(lambda: (running.percent(TOTAL, "short-lived") or 0) > 40)
        client.create_partitions({"short-lived": NewPartitions(2)})
        eventually(lambda: running.percent(TOTAL, "short-lived", 1) == 0)
        client.delete_topics(["short-lived"])
        # Others still have theirs: it is gone because its topic is.
        eventually(lambda: {"tiered", "short-lived"} & published(running)[TOTAL] == {"tiered"})
        eventually(lambda: {"tiered", "short-lived"} & published(running)[PLAIN] == {"tiered"})
        create_topic(sandbox, "short-lived", config={**TIERED, "retention.bytes": str(8 * MIB)})
        eventually(lambda: running.percent(TOTAL, "short-lived") == 0)
        client.delete_topics(["short-lived"])


@pytest.mark.long
def test_a_broker_that_restarts_and_a_guard_that_is_killed(sandbox: Sandbox, tmp_path: Path) -> None:
    right = percent(whole(sandbox, "tiered"), 20 * MIB)
    with guard(sandbox, tmp_path / "log", ALL) as running:
        eventually(lambda: running.percent(TOTAL, "tiered") == right)
        sandbox.broker(1).kill()
        eventually(lambda: running.samples("brimline_broker_connected") == {"": 0.0})
        eventually(lambda: running.percent(PLAIN, "plain") is None)
        while_down = running.states()
        sandbox.broker(1).start()
        eventually(lambda: running.percent(TOTAL, "tiered") == right)
        running.process.kill()
        running.process.wait(PATIENCE_SECONDS)
    assert while_down == {"volume-0/log-dir-0": "ok"}
    with guard(sandbox, tmp_path / "log-2", ALL) as again:
        eventually(lambda: again.percent(TOTAL, "tiered") == right)


def test_leadership_takes_its_beans_with_it(tmp_path: Path) -> None:
    both_have_the_metadata = {"rlmm.config.remote.log.metadata.topic.replication.factor": "2"}
    spec = SandboxSpec(brokers=2, volumes=VOLUMES, tiered=True, properties={**RATHER_CALM, **both_have_the_metadata})
    with Sandbox(spec) as sandbox:
        create_topic(sandbox, "tiered", config={**TIERED, "retention.bytes": str(20 * MIB)}, assignment={0: [1, 2]})
        produce(sandbox, "tiered", 4.5)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        leads = {PLAIN: 0, TOTAL: percent(whole(sandbox, "tiered"), 20 * MIB)}
        follows = {PLAIN: 0, TOTAL: None}
        with (
            guard(sandbox, tmp_path / "log-1", ALL, broker=1) as first,
            guard(sandbox, tmp_path / "log-2", ALL, broker=2) as second,
        ):
            eventually(lambda: of_tiered(first) == leads)
            eventually(lambda: of_tiered(second) == follows)
            for broker, running in ((1, first), (2, second)):
                eventually(partial(tells_sizes_of_files, running, sandbox, broker))
            sandbox.broker(1).stop()
            eventually(lambda: of_tiered(second) == leads)
            sandbox.broker(1).start()
            eventually(lambda: of_tiered(first) == follows)


def tells_sizes_of_files(running: RunningGuard, sandbox: Sandbox, broker: int) -> bool:
    """KIP-1187 of the tiered replica, led or not."""
    sizes = running.state()["retention"]["sizes"]
    remote, local = remote_segments(sandbox, "tiered", 0), only_local_on_disk(sandbox, "tiered", 0, broker)
    return sizes is not None and (sizes["remoteBytes"], sizes["onlyLocalBytes"]) == (sum(remote.values()), local)


def of_tiered(running: RunningGuard) -> dict[str, float | None]:
    return {metric: running.percent(metric, "tiered") for metric in (PLAIN, TOTAL)}

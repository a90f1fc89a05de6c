"""KIP-1257 beside real brokers: against the sizes of the files, and through what a cluster goes through."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewPartitions

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import TIERED, create_topic, eventually, produce
from tests.integration.guarded import guard
from tests.integration.test_remote_info import is_settled, local_segments, only_local_on_disk, remote_segments

pytestmark = pytest.mark.integration

MIB = 1 << 20
ALL = {"brimline.metrics.publish": "all", "disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
PLAIN = "kafka_log_log_retentionsizeinpercent"
TOTAL = "kafka_log_remote_remotelogmanager_retentionsizeinpercent"
LOCAL = "kafka_log_remote_remotelogmanager_localretentionsizeinpercent"
VOLUMES = (VolumeSpec(size=Bytes(192 * MIB)),)
SMALL = {"segment.bytes": str(MIB), "file.delete.delay.ms": "0"}


@pytest.fixture(scope="module", params=[pytest.param("3.9.2", marks=pytest.mark.long), "4.3.1"])
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


def test_every_row_of_the_kips_table(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log", ALL) as running:
        eventually(lambda: running.percent(TOTAL, "tiered") is not None)
        topics = ("plain", "unlimited", "compacted", "tiered", "forever", "not-copied")
        plain = {topic: running.percent(PLAIN, topic) for topic in topics}
        total = {topic: running.percent(TOTAL, topic) for topic in topics}
        local = {topic: running.percent(LOCAL, topic) for topic in topics}

    whole = only_local_on_disk(sandbox, "tiered", 0) + sum(remote_segments(sandbox, "tiered", 0).values())
    not_copied = percent(size(sandbox, "not-copied"), 20 * MIB)
    assert plain == {
        "plain": percent(size(sandbox, "plain"), 4 * MIB),
        "unlimited": 0,
        "compacted": 0,
        "tiered": 0,
        "forever": 0,
        "not-copied": not_copied,
    }
    assert total == {
        "plain": None,
        "unlimited": None,
        "compacted": None,
        "tiered": percent(whole, 20 * MIB),
        "forever": 0,
        "not-copied": not_copied,
    }
    assert local == {
        "plain": None,
        "unlimited": None,
        "compacted": None,
        "tiered": percent(size(sandbox, "tiered"), 2 * MIB),
        "forever": percent(size(sandbox, "forever"), 2 * MIB),
        "not-copied": not_copied,
    }


def test_auto_does_not_double_what_the_broker_publishes_rightly(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log") as running:
        eventually(lambda: running.percent(LOCAL, "forever") is not None)
        published = {
            metric: {labels.split('"')[1] for labels in running.samples(metric)} for metric in (PLAIN, TOTAL, LOCAL)
        }

    if sandbox.spec.version == "4.3.1":
        assert published == {PLAIN: set(), TOTAL: {"forever"}, LOCAL: {"forever"}}
    else:
        assert {"plain", "tiered"} <= published[PLAIN]
        assert published[TOTAL] == published[LOCAL] == {"tiered", "forever", "not-copied"}


def test_growth_deletion_and_a_new_topic_of_the_old_name(sandbox: Sandbox, tmp_path: Path) -> None:
    client = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    create_topic(sandbox, "short-lived", config={**TIERED, "retention.bytes": str(8 * MIB)})
    produce(sandbox, "short-lived", 4.5)
    eventually(lambda: is_settled(sandbox, "short-lived", 0, at_most=3))
    with guard(sandbox, tmp_path / "log", ALL) as running:
        eventually(lambda: (running.percent(TOTAL, "short-lived") or 0) > 40)
        client.create_partitions({"short-lived": NewPartitions(2)})
        eventually(lambda: running.percent(TOTAL, "short-lived", 1) == 0)
        client.delete_topics(["short-lived"])
        eventually(lambda: running.percent(TOTAL, "short-lived") is None)
        eventually(lambda: running.percent(PLAIN, "short-lived") is None)
        create_topic(sandbox, "short-lived", config={**TIERED, "retention.bytes": str(8 * MIB)})
        eventually(lambda: running.percent(TOTAL, "short-lived") == 0)
    client.delete_topics(["short-lived"])
    client.close()


def test_a_broker_that_restarts_and_a_guard_that_is_killed(sandbox: Sandbox, tmp_path: Path) -> None:
    with guard(sandbox, tmp_path / "log", ALL) as running:
        eventually(lambda: running.percent(TOTAL, "tiered") is not None)
        before = running.percent(TOTAL, "tiered")
        sandbox.broker(1).kill()
        eventually(lambda: running.samples("brimline_broker_connected") == {"": 0.0})
        while_down = running.percent(PLAIN, "plain"), running.states()
        sandbox.broker(1).start()
        eventually(lambda: running.percent(TOTAL, "tiered") == before)
        running.process.kill()
        running.process.wait()
    assert while_down == (None, {"volume-0/log-dir-0": "ok"})
    with guard(sandbox, tmp_path / "log-2", ALL) as again:
        eventually(lambda: again.percent(TOTAL, "tiered") == before)


def test_leadership_takes_its_beans_with_it(tmp_path: Path) -> None:
    both_have_the_metadata = {"rlmm.config.remote.log.metadata.topic.replication.factor": "2"}
    spec = SandboxSpec(brokers=2, volumes=VOLUMES, tiered=True, properties=both_have_the_metadata)
    with Sandbox(spec) as sandbox:
        create_topic(sandbox, "tiered", config={**TIERED, "retention.bytes": str(20 * MIB)}, assignment={0: [1, 2]})
        produce(sandbox, "tiered", 4.5)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        with (
            guard(sandbox, tmp_path / "log-1", ALL, broker=1) as first,
            guard(sandbox, tmp_path / "log-2", ALL, broker=2) as second,
        ):
            eventually(lambda: first.percent(TOTAL, "tiered") is not None)
            eventually(lambda: second.percent(PLAIN, "tiered") == 0)
            follower_before = second.percent(TOTAL, "tiered")
            leader_before = first.percent(TOTAL, "tiered")
            sandbox.broker(1).stop()
            eventually(lambda: second.percent(TOTAL, "tiered") is not None)
            moved = second.percent(TOTAL, "tiered")
            sandbox.broker(1).start()
            eventually(lambda: first.percent(PLAIN, "tiered") == 0)
            eventually(lambda: first.state()["broker"]["connected"] is True)
            follower_after = first.percent(TOTAL, "tiered")

    assert follower_before is None
    assert moved == leader_before
    assert follower_after is None

"""KIP-1201 with real brokers on real small disks: what a full one refuses, what goes on beside it, and what ends it."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox
from brimline.torture.clients.table import JAVA_4, KAFKA_PYTHON, LIBRDKAFKA_IDEMPOTENT
from tests.integration.full_disks import (
    BY_PERCENT,
    FIRST,
    KAFKA_STORAGE_ERROR,
    LIMIT_PERCENT,
    MIB,
    NO_LIMIT,
    PATIENT,
    SMALL_SEGMENTS,
    STORED,
    alter_topic,
    changes,
    clean_up,
    count_readable,
    create_topic_in,
    delete_topics,
    end_offset,
    fill_beyond_limit,
    topic_id,
    two_disks,
    verify_unharmed,
    wait_for_refusal,
    watched_level,
    write_ballast,
)
from tests.integration.gateway_clients.load import producing
from tests.integration.gateway_clients.verification import verify_read_back
from tests.integration.gatewayed import RunningGateway, gateway, state_dir
from tests.integration.guarded import guard
from tests.integration.raw_produce import RawProducer, Said, raw_producer
from tests.integration.shared import shared
from tests.waiting import eventually
from tests.wire.produce_messages import batch

pytestmark = pytest.mark.integration

NEWEST = "4.3.1"
VERSIONS = (NEWEST, *(pytest.param(version, marks=pytest.mark.long) for version in ("3.9.2", "4.1.2")))
on_newest = pytest.mark.parametrize("sandbox_of_version", [NEWEST], indirect=True)

RECORD = 8000
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def sandbox_of_version(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with shared(two_disks(request.param)) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(sandbox_of_version: Sandbox) -> Iterator[Sandbox]:
    """Whatever a test does to it, its broker has lived through it."""
    yield sandbox_of_version
    verify_unharmed(sandbox_of_version)
    clean_up(sandbox_of_version)


@pytest.mark.parametrize("sandbox_of_version", VERSIONS, indirect=True)
def test_a_disk_that_fills_under_load_refuses_its_partitions_until_retention_is_lowered(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "ballast", full, config=SMALL_SEGMENTS)
    create_topic_in(sandbox, "busy", full)
    create_topic_in(sandbox, "calm", other, other)
    create_topic_in(sandbox, "mixed", full, other)
    write_ballast(sandbox, "ballast", 55)
    servers = sandbox.bootstrap_servers
    with (
        gateway(sandbox, tmp_path / "log", BY_PERCENT) as running,
        watched_level(sandbox, full) as level,
        producing(LIBRDKAFKA_IDEMPOTENT, servers, "calm", partitions=(0,)) as calm,
        producing(KAFKA_PYTHON, servers, "calm", partitions=(1,)) as calm_too,
    ):
        for each in (calm, calm_too):
            each.wait_for_acks(20)
        # More than there is room for beside the ballast, less than there is without it.
        with producing(
            JAVA_4, servers, "busy", rate=3000, count=45_000_000 // RECORD, value_bytes=RECORD, properties=PATIENT
        ) as busy:
            eventually(lambda: running.fenced() == {FIRST})
            wait_for_refusal(running, "busy")
            eventually(lambda: len(busy.acked()) == end_offset(sandbox, "busy"))
            stored = end_offset(sandbox, "busy")
            with raw_producer(servers) as raw:
                said = raw.produce([("mixed", 0), ("calm", 0), ("busy", 0), ("mixed", 1)])
            readable = count_readable(servers, "busy", stored)
            for each in (calm, calm_too):
                each.wait_for_acks(100)
            state = running.state()
            still_stored = end_offset(sandbox, "busy")

            alter_topic(sandbox, "ballast", {"retention.bytes": "1048576"})
            busy.wait_until_done()

    assert {where: answer.code for where, answer in said.items()} == {
        ("busy", 0): KAFKA_STORAGE_ERROR,
        ("mixed", 0): KAFKA_STORAGE_ERROR,
        ("mixed", 1): STORED,
        ("calm", 0): STORED,
    }
    text = said["busy", 0].text or ""
    assert all(part in text for part in ("NOT_ENOUGH_SPACE", str(full), " % used", "disk.max.used.percent=80")), text
    assert {(row["topic"], row["partition"]) for row in state["refusals"]} == {("busy", 0), ("mixed", 0)}
    (fence,) = state["fences"]
    assert (fence["logDir"], fence["cause"], fence["partitions"]) == (str(full), "full", 3)
    assert stored == still_stored == readable
    assert busy.acked() == set(range(busy.sent))
    for load in (busy, calm, calm_too):
        verify_read_back(sandbox, load)
    assert LIMIT_PERCENT < level.highest < 100
    assert changes(running) == ["fenced", "released"]


@on_newest
@pytest.mark.parametrize("cure", ["records that expire", "a topic that is deleted"])
def test_the_fence_ends_by_itself_with(sandbox: Sandbox, tmp_path: Path, cure: str) -> None:
    full, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "kept", full)
    create_topic_in(sandbox, "ballast", full, config=SMALL_SEGMENTS)
    sandbox.fill(full, leave_free=Bytes(36 * MIB))
    with (
        gateway(sandbox, tmp_path / "log", BY_PERCENT) as running,
        producing(LIBRDKAFKA_IDEMPOTENT, sandbox.bootstrap_servers, "kept") as kept,
    ):
        kept.wait_for_acks(20)
        written_ms = int(time.time() * 1000) - HOUR_MS
        write_ballast(sandbox, "ballast", 20, timestamp_ms=written_ms)
        wait_for_refusal(running, "kept")
        if cure == "records that expire":
            age_ms = int(time.time() * 1000) - written_ms
            alter_topic(sandbox, "ballast", {"retention.ms": str(age_ms + 1000)})
        else:
            delete_topics(sandbox, "ballast")
        eventually(lambda: running.fenced() == set())
        kept.wait_for_acks(20)

    assert kept.failures == []
    assert verify_read_back(sandbox, kept) == {0: list(range(kept.sent))}
    assert changes(running) == ["fenced", "released"]


@on_newest
def test_a_backlog_that_comes_with_the_release_is_noticed_long_before_the_next_check(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The KIP's check interval is a minute. At this rate the disk would be full to the brim in seconds."""
    full, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "busy", full)
    large = sandbox.fill(full, leave_free=Bytes(42 * MIB))
    small = sandbox.fill(full, leave_free=Bytes(20 * MIB))
    limits = {**NO_LIMIT, "disk.max.used.percent": "60", "disk.usage.check.interval.ms": "60000"}
    with (
        gateway(sandbox, tmp_path / "log", limits) as running,
        watched_level(sandbox, full) as level,
        producing(
            JAVA_4,
            sandbox.bootstrap_servers,
            "busy",
            rate=3000,
            count=50_000_000 // RECORD,
            value_bytes=RECORD,
            properties=PATIENT,
        ) as busy,
    ):
        wait_for_refusal(running, "busy")
        sandbox.unfill(small)
        level.highest = 0.0
        eventually(lambda: changes(running) == ["fenced", "released", "fenced"])
        sandbox.unfill(large)
        busy.wait_until_done()

    assert 60 < level.highest < 100
    assert busy.acked() == set(range(busy.sent))
    verify_read_back(sandbox, busy)


@on_newest
def test_observing_refuses_nothing_counts_what_it_would_and_changes_no_answer(sandbox: Sandbox, tmp_path: Path) -> None:
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "seen", full, other)
    fill_beyond_limit(sandbox, full)
    servers = sandbox.bootstrap_servers
    # A batch of an idempotent producer that comes again is answered alike, and not stored again.
    repeated = {("seen", 0): batch(producer_id=9000, producer_epoch=0, base_sequence=0)}
    with gateway(sandbox, tmp_path / "log", {**BY_PERCENT, "brimline.enforcement": "observe"}) as running:
        with raw_producer(sandbox.direct_servers) as direct, raw_producer(servers) as through:
            direct.produce(repeated)
            answers = [producer.produce_for_bytes(repeated) for producer in (direct, through)]
            offers = [producer.api_versions() for producer in (direct, through)]
        with producing(JAVA_4, servers, "seen", partitions=(0, 1), count=100) as load:
            load.wait_until_done()
        state = running.state()

    assert answers[0] == answers[1]
    assert offers[0] == offers[1]
    assert load.acked() == set(range(100))
    verify_read_back(sandbox, load)
    assert state["refusals"] == []
    assert {(row["topic"], row["partition"], row["client"]) for row in state["wouldHaveRefused"]} == {
        ("seen", 0, "unknown"),
        ("seen", 0, "java-4.3.1 (apache-kafka-java 4.3.1)"),
    }
    assert "would refuse" in running.log.read_text()


@on_newest
@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (BY_PERCENT, "disk.max.used.percent=80"),
        ({**NO_LIMIT, "disk.min.free.bytes": str(16 * MIB)}, "disk.min.free.bytes=16777216"),
    ],
    ids=["percent", "bytes"],
)
def test_either_limit_fences_what_is_there_and_what_is_created_then(
    sandbox: Sandbox, tmp_path: Path, limits: dict[str, str], named: str
) -> None:
    full, other = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "old", full)
    with (
        gateway(sandbox, tmp_path / "log", limits) as running,
        raw_producer(sandbox.bootstrap_servers) as raw,
    ):
        before = raw.produce([("old", 0)])
        foreign = fill_beyond_limit(sandbox, full)
        eventually(lambda: running.fenced() == {FIRST})
        create_topic_in(sandbox, "new", full, other)
        eventually(lambda: raw.produce([("new", 0)])["new", 0].code == KAFKA_STORAGE_ERROR)
        said = raw.produce([("old", 0), ("new", 0), ("new", 1)])
        sandbox.unfill(foreign)
        eventually(lambda: running.fenced() == set())
        after = raw.produce([("old", 0), ("new", 0), ("new", 1)])

    assert before["old", 0].code == STORED
    assert {where: answer.code for where, answer in said.items()} == {
        ("old", 0): KAFKA_STORAGE_ERROR,
        ("new", 0): KAFKA_STORAGE_ERROR,
        ("new", 1): STORED,
    }
    text = said["old", 0].text or ""
    assert all(part in text for part in ("NOT_ENOUGH_SPACE", str(full), " % used", named)), text
    assert {answer.code for answer in after.values()} == {STORED}


@on_newest
def test_a_topic_that_is_created_again_is_fenced_under_its_new_id(sandbox: Sandbox, tmp_path: Path) -> None:
    """Java's clients of 4.x name a topic by its id alone."""
    full, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "again", full)
    old_id = topic_id(sandbox, "again")
    with (
        gateway(sandbox, tmp_path / "log", BY_PERCENT) as running,
        raw_producer(sandbox.bootstrap_servers) as raw,
    ):
        foreign = fill_beyond_limit(sandbox, full)
        eventually(lambda: running.fenced() == {FIRST})
        refused_before = raw.produce([("again", 0)], {"again": old_id})["again", 0].code
        delete_topics(sandbox, "again")
        create_topic_in(sandbox, "again", full)
        new_id = topic_id(sandbox, "again")
        eventually(lambda: raw.produce([("again", 0)], {"again": new_id})["again", 0].code == KAFKA_STORAGE_ERROR)
        stored = end_offset(sandbox, "again")
        with producing(JAVA_4, sandbox.bootstrap_servers, "again", count=50, properties=PATIENT) as load:
            eventually(lambda: "apache-kafka-java 4.3.1" in str(running.state()["refusals"]))
            stored_later = end_offset(sandbox, "again")
            sandbox.unfill(foreign)
            load.wait_until_done()

    assert refused_before == KAFKA_STORAGE_ERROR
    assert new_id != old_id
    assert stored == stored_later
    assert verify_read_back(sandbox, load) == {0: list(range(50))}


@on_newest
def test_the_guards_word_counts_while_it_is_given_and_the_gateways_own_always(sandbox: Sandbox, tmp_path: Path) -> None:
    full, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "leased", full)
    stricter = {**NO_LIMIT, "disk.max.used.percent": "40", "brimline.state.dir": str(state_dir(sandbox))}
    with (
        gateway(sandbox, tmp_path / "log", BY_PERCENT) as running,
        guard(sandbox, tmp_path / "guard", stricter) as guarding,
        raw_producer(sandbox.bootstrap_servers) as raw,
    ):
        codes = [raw.produce([("leased", 0)])["leased", 0].code]
        sandbox.fill(full, leave_free=Bytes(48 * MIB))
        eventually(lambda: causes_of(running) == ["guard"])
        said = refused(raw, "leased")
        guarding.process.send_signal(signal.SIGKILL)
        eventually(lambda: running.fenced() == set())
        codes.append(raw.produce([("leased", 0)])["leased", 0].code)
        fill_beyond_limit(sandbox, full)
        eventually(lambda: causes_of(running) == ["full"])
        own = refused(raw, "leased")

    assert codes == [STORED, STORED]
    # The guard may have looked while the volume was being filled: anything from 40 to 50 %
    said_by_guard = rf"log dir {re.escape(str(full))} is [45][0-9.]+ % used, limit disk.max.used.percent=40"
    assert re.search(said_by_guard, said.text or "")
    assert "disk.max.used.percent=80" in (own.text or "")


def causes_of(running: RunningGateway) -> list[str]:
    return [fence["cause"] for fence in running.state()["fences"]]


def refused(raw: RawProducer, topic: str) -> Said:
    """The first refusal: what the guard says counts for a few seconds, and a guard that gets no time is late."""
    said: list[Said] = []

    def code() -> int:
        said.append(raw.produce([(topic, 0)])[topic, 0])
        return said[-1].code

    eventually(lambda: code() == KAFKA_STORAGE_ERROR)
    return said[-1]

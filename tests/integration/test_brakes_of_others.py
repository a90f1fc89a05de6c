"""Brakes of other brokers' guards: what lies in Kafka is neither a brake nor the end of one, an upgrade keeps those
that counted before it, and whoever asks is told where they differ.

Every broker holds a copy of everything, and broker 2 has a ceiling. What went is told by the brokers' own log starts.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import BrokerResponseError
from kafka.structs import OffsetAndMetadata

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.full_disks import clean_up, used_percent
from tests.integration.guarded import RunningGuard, guard, write_config
from tests.integration.kafka_clients import kafka_admin
from tests.integration.reclaim_world import MIB, QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys
from tests.integration.segment_files import segment_files
from tests.integration.test_mixed_versions import TODAY, Version, version_of
from tests.integration.test_reclaim_ceiling import first_offset
from tests.integration.test_reclaim_guard import device, is_held
from tests.waiting import eventually

pytestmark = pytest.mark.integration

TOPICS = {"audit": 120.0, "clicks": 72.0}
"""The older one goes first, where nothing protects it."""
WRITTEN_MIB = 10
ACLS = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"mallory": "secret"}, acls=True)
FORGED = {
    "version": 1,
    "writtenAt": "9990-01-01T00:00:00Z",
    "paused": {"by": "root", "reason": "forged", "since": "2026-01-01T00:00:00Z"},
    "brakes": {"protectedTopics": [".*"]},
}


@pytest.fixture(scope="module", params=[None, pytest.param(ACLS, marks=pytest.mark.long)], ids=["plain", "ACLs"])
def running_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    volumes = (VolumeSpec(size=Bytes(64 * MIB)),)
    with Sandbox(SandboxSpec(brokers=3, volumes=volumes, properties=QUICK_BROKER, security=request.param)) as running:
        yield running


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    for topic, hours in TOPICS.items():
        create_topic(running_sandbox, topic, assignment={0: [1, 2, 3]}, config=TRIMMABLE)
        Writer(running_sandbox.admin_servers).write(topic, WRITTEN_MIB, hours_old=hours)
    copies = running_sandbox.outside(running_sandbox.broker(2).log_dirs[0])
    whole = (WRITTEN_MIB - 1) * MIB
    eventually(lambda: all(sum(segment_files(copies / f"{topic}-0").values()) > whole for topic in TOPICS))
    yield running_sandbox
    clean_up(running_sandbox)


@contextmanager
def full_guard(
    sandbox: Sandbox, tmp_path: Path, ceiling: int, version: Version = TODAY, **more: str
) -> Iterator[RunningGuard]:
    keys = reclaim_keys(tmp_path / "2", ceiling, **{"reclaim_brakes": "shared", **more})
    with guard(sandbox, tmp_path / f"log-2-{version.name}", keys, broker=2, program=version.program) as running:
        yield running


def ceiling_of(sandbox: Sandbox, beyond: int) -> int:
    """So many percent are beyond it on broker 2."""
    return int(used_percent(sandbox, sandbox.broker(2).log_dirs[0])) - beyond


def starts(sandbox: Sandbox) -> dict[str, int]:
    return {topic: first_offset(sandbox, topic) for topic in TOPICS}


def forge(sandbox: Sandbox) -> None:
    """As any consumer may: it may read, and delete nothing."""
    login: dict[str, object] = {}
    if sandbox.spec.security is not None:
        login = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "mallory",
            "sasl_plain_password": "secret",
        }
        resources = [(ResourceType.GROUP, "brimline-guard-1"), (ResourceType.TOPIC, "__consumer_offsets")]
        rules = [
            ACL("User:mallory", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
            for kind, name in resources
        ]
        with kafka_admin(sandbox.admin_servers) as client:
            client.create_acls(rules)
    consumer = KafkaConsumer(
        bootstrap_servers=sandbox.bootstrap_servers, group_id="brimline-guard-1", enable_auto_commit=False, **login
    )
    where = TopicPartition("__consumer_offsets", 0)
    consumer.assign([where])
    consumer.commit({where: OffsetAndMetadata(0, json.dumps(FORGED), -1)})
    consumer.close()


def note(sandbox: Sandbox, broker: int) -> str:
    """As the version before left it."""
    group, where = f"brimline-guard-{broker}", TopicPartition("__consumer_offsets", 0)
    with kafka_admin(sandbox.admin_servers) as client, suppress(BrokerResponseError):  # its coordinator is being made
        found = client.list_group_offsets({group: None})[group].get(where)
        return "" if found is None else str(found.metadata)
    return ""


def test_a_forged_note_neither_pauses_nor_protects(sandbox: Sandbox, tmp_path: Path) -> None:
    forge(sandbox)

    with full_guard(sandbox, tmp_path, ceiling_of(sandbox, 8), reclaim_protected_topics="audit") as full:
        eventually(lambda: is_held(full))
        forge(sandbox)
        told = full.state()["reclaim"]

    after = starts(sandbox)
    assert after["audit"] == 0
    assert after["clicks"] > 0
    assert (told["paused"], told["brakes"]) == (None, [])


def test_other_brakes_are_told_of_and_a_pause_says_where_it_does_not_count(sandbox: Sandbox, tmp_path: Path) -> None:
    first = reclaim_keys(tmp_path / "1", 99, reclaim_protected_topics="audit")
    with guard(sandbox, tmp_path / "log-1", first) as braked:
        url = f"http://127.0.0.1:{braked.port}"
        with full_guard(sandbox, tmp_path, ceiling_of(sandbox, -5), guards=url) as full:
            eventually(lambda: len(full.state()["notices"]) > 1)
            told = {each["key"]: each["text"] for each in full.state()["notices"]}
            of_second = f"http://127.0.0.1:{full.port}"
            config = str(sandbox.broker(2).node.server_properties.with_name("guard.properties"))
            examined = brimline_inside(sandbox, "doctor", "--config", config)
            config = str(write_config(sandbox, first))
            paused = brimline_inside(sandbox, "reclaim", "pause", "--config", config, "--guard", of_second)

    assert "brimline.reclaim.protected.topics=audit" in told["brakes-1"]
    assert "broker 3" in told["brakes-unknown"]
    assert "the guard of broker 1 has other brakes" in " ".join(examined.stdout.split())
    assert "does not count on broker 2" in paused.stdout
    assert "unknown whether broker 3 is paused" in paused.stdout


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """It shared its brakes through Kafka."""
    return version_of("2f40139", tmp_path_factory.mktemp("before"))


@pytest.mark.long
def test_an_upgrade_keeps_a_pause_and_a_protection_of_another_broker_until_a_person_confirms(
    sandbox: Sandbox, tmp_path: Path, before: Version
) -> None:
    ceiling = ceiling_of(sandbox, 25)  # more than clicks alone can give
    first = reclaim_keys(tmp_path / "1", 99, reclaim_protected_topics="audit", reclaim_brakes="shared")
    with guard(sandbox, tmp_path / "log-1", first, program=before.program):
        config = str(write_config(sandbox, first))
        brimline_inside(sandbox, "reclaim", "pause", "--config", config, "--reason", "legal hold")
        eventually(lambda: "legal hold" in note(sandbox, 1))
        with full_guard(sandbox, tmp_path, ceiling, before) as older:
            eventually(lambda: device(older)["state"] == "paused")
    while_older = starts(sandbox)

    with full_guard(sandbox, tmp_path, ceiling) as upgraded:
        eventually(lambda: device(upgraded)["state"] == "paused")
        while_paused, does = starts(sandbox), device(upgraded)["does"]
        config = str(sandbox.broker(2).node.server_properties.with_name("guard.properties"))
        brimline_inside(sandbox, "reclaim", "resume", "--config", config)
        eventually(lambda: device(upgraded)["state"] == "stuck")
        resumed, kept = starts(sandbox), upgraded.state()["reclaim"]["brakes"]
        path = sandbox.outside(Path(config))
        path.write_text(path.read_text() + "brimline.reclaim.brakes=own\n")
        upgraded.process.send_signal(signal.SIGHUP)
        eventually(lambda: starts(sandbox)["audit"] > 0)

    assert while_older == while_paused == dict.fromkeys(TOPICS, 0)
    assert "legal hold" in does
    assert resumed["audit"] == 0
    assert resumed["clicks"] > 0
    assert any("brimline.reclaim.protected.topics=audit" in sentence for sentence in kept)

"""The guard as an ordinary principal of a cluster with ACLs: what it lacks is named, one right after the other."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.sandbox import Sandbox
from tests.integration.cluster import brimline_inside, create_topic, produce
from tests.integration.guarded import QUICK, guard, states_of, write_config
from tests.integration.kafka_clients import kafka_admin
from tests.integration.shared import shared, with_logins
from tests.waiting import eventually

pytestmark = pytest.mark.integration

PLAIN = "kafka_log_log_retentionsizeinpercent"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
AS_GUARD = {
    "brimline.admin.listener": "CLIENT",
    "brimline.admin.sasl.mechanism": "PLAIN",
    "brimline.admin.sasl.jaas.config": f'{MODULE} required username="guard" password="secret";',
    "brimline.metrics.publish": "all",
    "disk.min.free.bytes": "1000000",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with shared(with_logins()) as running:
        create_topic(running, "orders", config={"retention.bytes": str(1 << 20)})
        produce(running, "orders", 0.6)
        yield running


def doctor(sandbox: Sandbox, **added: str) -> "subprocess.CompletedProcess[str]":
    path = write_config(sandbox, {**QUICK, **AS_GUARD, **added})
    return brimline_inside(sandbox, "doctor", "--config", str(path))


def allow(sandbox: Sandbox, resource: ResourceType, name: str, operation: ACLOperation) -> None:
    rule = ACL("User:guard", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(resource, name))
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([rule])


def test_every_missing_right_is_named_until_none_is_missing(sandbox: Sandbox, tmp_path: Path) -> None:
    nothing = doctor(sandbox)
    allow(sandbox, ResourceType.CLUSTER, "kafka-cluster", ACLOperation.DESCRIBE)
    eventually(lambda: "broker 1 answers" in doctor(sandbox).stdout)
    no_configs = doctor(sandbox)
    allow(sandbox, ResourceType.TOPIC, "*", ACLOperation.DESCRIBE_CONFIGS)
    eventually(lambda: doctor(sandbox).returncode == 0)
    no_alteration = doctor(sandbox, **{"brimline.enforcement": "gateway"})
    with guard(sandbox, tmp_path / "log", AS_GUARD) as running:
        eventually(lambda: (running.percent(PLAIN, "orders") or 0) > 50)

    assert nothing.returncode == 3
    assert "this principal needs DESCRIBE on the cluster" in nothing.stdout
    assert no_configs.returncode == 3
    assert "needs DESCRIBE and DESCRIBE_CONFIGS" in no_configs.stdout
    assert "moves into a full log dir cannot be paused" in no_alteration.stdout
    assert "secret" not in nothing.stdout + no_configs.stdout + running.log.read_text()


def test_wrong_credentials_are_named_and_the_disks_are_watched_all_the_same(sandbox: Sandbox, tmp_path: Path) -> None:
    wrong = {**AS_GUARD, "brimline.admin.sasl.jaas.config": f'{MODULE} required username="guard" password="no";'}

    with guard(sandbox, tmp_path / "log", wrong) as running:
        eventually(lambda: running.state()["broker"]["failure"] is not None)
        state = running.state()

    assert state["broker"]["failure"]["kind"] == "not-authenticated"
    assert set(states_of(state).values()) == {"ok"}

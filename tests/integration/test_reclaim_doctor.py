"""``doctor`` and ``guard --check`` beside a real broker with ACLs: what the first cycle deletes, and may it?"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.sandbox import Sandbox
from tests.integration.cluster import brimline_inside, create_topic, produce
from tests.integration.guarded import QUICK, write_config
from tests.integration.kafka_clients import kafka_admin
from tests.integration.shared import shared, with_logins
from tests.waiting import eventually

pytestmark = pytest.mark.integration

MIB = 1 << 20
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
AS_GUARD = {
    "brimline.admin.listener": "CLIENT",
    "brimline.admin.sasl.mechanism": "PLAIN",
    "brimline.admin.sasl.jaas.config": f'{MODULE} required username="guard" password="secret";',
}
AS_ANYBODY: dict[str, str] = {}
"""The admin listener of a sandbox is open."""
NO_FENCE = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
SMALL_SEGMENTS = {"segment.bytes": str(MIB), "retention.ms": "-1"}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with shared(with_logins()) as running:
        for topic in ("orders", "clicks", "ledger"):
            create_topic(running, topic, config=SMALL_SEGMENTS)
            produce(running, topic, 4)
        yield running


def examine(sandbox: Sandbox, state_dir: Path, login: dict[str, str], **added: str) -> dict[str, list[str]]:
    """Weight and topic → sentences."""
    keys = {
        **QUICK,
        **NO_FENCE,
        **login,
        "brimline.state.dir": str(state_dir),
        "log.retention.disk.usage.percent": "5",
        "brimline.reclaim.policy": "kip-61",
        **{name.replace("_", "."): value for name, value in added.items()},
    }
    path = write_config(sandbox, keys)
    done = brimline_inside(sandbox, "doctor", "--output", "json", "--config", str(path))
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, list[str]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        found.setdefault(f"{finding['weight']} {finding['topic']}", []).append(finding["sentence"])
    return found


def allow(sandbox: Sandbox, operation: ACLOperation, resource: ResourceType, name: str) -> None:
    acl = ACL("User:guard", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(resource, name))
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([acl])


def test_the_first_cycle_is_told_by_topic_and_a_ceiling_below_the_floor_is_impossible(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    found = examine(sandbox, tmp_path, AS_ANYBODY, brimline_reclaim_protected_topics="ledger,nothing.*")

    (impossible,) = [each for each in found["problem reclaim"] if "impossible" in each]
    assert "a ceiling of 5 % is impossible" in impossible
    assert any(each.startswith("active segments: ") and "segment.bytes" in each for each in found["note reclaim"])
    assert any("the first cycle deletes" in each for each in found["warning reclaim"])
    assert any("nothing.* matches no topic" in each for each in found["warning reclaim"])
    told = [each for each in found["note reclaim"] if " segments of 1 partition, records " in each]
    assert sorted(each.partition(":")[0] for each in told) == ["clicks", "orders"]
    assert "this principal may delete records of all 2 topics" in found["fine reclaim"]


def test_the_missing_right_is_named_and_nothing_is_tried(sandbox: Sandbox, tmp_path: Path) -> None:
    allow(sandbox, ACLOperation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")
    allow(sandbox, ACLOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "*")
    allow(sandbox, ACLOperation.DESCRIBE, ResourceType.TOPIC, "*")
    allow(sandbox, ACLOperation.DELETE, ResourceType.TOPIC, "clicks")

    def of_rights() -> list[str]:
        found = examine(sandbox, tmp_path, AS_GUARD)
        return [each for each in found.get("problem permissions", []) if "may not delete records" in each]

    eventually(lambda: any("of 2 topics (ledger, orders)" in each for each in of_rights()))
    allow(sandbox, ACLOperation.DELETE, ResourceType.TOPIC, "*")
    eventually(lambda: of_rights() == [])

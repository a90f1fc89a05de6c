"""One disk of three is down to its reserve, replication does not pass a gateway, and ``brimline.follower.shed`` is on.

The leader's guard takes the replica away, so that producers go on. What the brokers say afterwards counts. The volumes
and their limits are those of ``test_follower_reserve``.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox
from tests.integration.cluster import brimline_inside
from tests.integration.full_disks import SMALL_SEGMENTS, admin_client, clean_up, refused_batches, wait_for_refusal
from tests.integration.full_followers import (
    BROKERS,
    FOLLOWER,
    FULL,
    HEALTHY,
    LEADER,
    MIB,
    OTHER_FOLLOWER,
    Guarded,
    acknowledged,
    create_spread_topic,
    doctor,
    fill_follower,
    guarded,
    load_on,
    replica,
    run_advice,
    signs_of_death,
    three_brokers,
)
from tests.integration.replicated import InSync, described, read_back, wait_for_isr
from tests.integration.shared import shared
from tests.waiting import eventually

pytestmark = pytest.mark.integration

BEYOND_THE_LIMIT, NEAR_THE_RESERVE = Bytes(30 * MIB), Bytes(22 * MIB)
IN_THE_RESERVE, AT_THE_LAST = Bytes(18 * MIB), Bytes(8 * MIB)
SHEDDING = {"brimline.follower.shed": "on"}
LEFT = [LEADER, OTHER_FOLLOWER]


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with shared(three_brokers(request.param)) as running:
        yield running


@pytest.fixture(autouse=True)
def clean(sandbox: Sandbox) -> Iterator[None]:
    yield
    clean_up(sandbox)


def replicas(sandbox: Sandbox, topic: str, partition: int) -> list[int]:
    with admin_client(sandbox) as client:
        return list(described(client, topic, partition)["replica_nodes"])


def shed(leader: Guarded) -> dict[str, Any] | None:
    found: dict[str, Any] | None = leader.guard.state()["followers"]["shed"]
    return found


def wait_for_looks(leader: Guarded) -> None:
    """As many as the rate of a disk is made of, and more."""

    def looks() -> float:
        return leader.guard.samples("brimline_peer_questions_total")['kind="volumes"']

    before = looks()
    eventually(lambda: looks() > before + 20)


def acts(sandbox: Sandbox, topic: str) -> list[dict[str, Any]]:
    config = sandbox.broker(LEADER).node.server_properties.with_name("guard.properties")
    done = brimline_inside(sandbox, "ledger", "--config", str(config), "--output", "json")
    return [act for act in json.loads(done.stdout)["acts"] if act.get("topic") == topic]


@pytest.mark.long
def test_a_replica_of_a_full_disk_is_taken_away_and_producers_go_on_until_a_person_puts_it_back(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    topic = "orders"
    with guarded(sandbox, tmp_path, added=SHEDDING) as leader:
        eventually(lambda: leader.guard.state()["followers"] is not None)
        assert "in-sync replicas are removed from the full disk" in doctor(sandbox)
        create_spread_topic(sandbox, topic, {**SMALL_SEGMENTS, "min.insync.replicas": "2"})
        with load_on(sandbox, topic) as load, InSync(sandbox, topic, FULL) as watched:
            first = fill_follower(sandbox, leave_free=BEYOND_THE_LIMIT)
            eventually(lambda: [each["broker"] for each in leader.guard.state()["followers"]["full"]] == [FOLLOWER])
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
            wait_for_looks(leader)
            assert replicas(sandbox, topic, FULL) == BROKERS  # not before it has to

            # Little by little: for a burst producers would be refused a while.
            files = [first, fill_follower(sandbox, leave_free=NEAR_THE_RESERVE)]
            assert replicas(sandbox, topic, FULL) == BROKERS
            wait_for_looks(leader)
            files.append(fill_follower(sandbox, leave_free=IN_THE_RESERVE))
            eventually(lambda: replicas(sandbox, topic, FULL) == LEFT)
            eventually(lambda: not replica(sandbox, topic, FOLLOWER, FULL).is_dir())
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 400)
            assert (refused_batches(leader.gateway, topic), leader.gateway.state()["followerFences"]) == (0, [])
            assert replicas(sandbox, topic, HEALTHY) == BROKERS
            found = shed(leader)
            assert found is not None
            assert found["partitions"] == [f"{topic}-{FULL}"]
            assert leader.guard.samples("brimline_follower_replicas_shed") == {f'follower="{FOLLOWER}"': 1}
            (act,) = acts(sandbox, topic)
            assert (act["act"], act["follower"], act["before"], act["left"]) == ("shed", FOLLOWER, BROKERS, LEFT)

            for each in files:
                sandbox.unfill(each)
            (advice,) = (line["message"] for line in leader.guard.said() if line["event"] == "replica-shed")
            put_back = run_advice(sandbox, advice)
            assert put_back.returncode == 0, put_back.stderr
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
            assert replicas(sandbox, topic, FULL) == BROKERS
            eventually(lambda: shed(leader) is None)
            assert [act["act"] for act in acts(sandbox, topic)] == ["shed", "shed-over"]
        assert watched.seen == {frozenset(BROKERS), frozenset(LEFT)}
        assert refused_batches(leader.gateway, topic) == 0
        load.verify(FULL, read_back(sandbox, topic, FULL))
    assert signs_of_death(sandbox) == []


@pytest.mark.long
def test_the_last_copy_beside_the_leader_is_not_shed_and_the_fence_is_used(sandbox: Sandbox, tmp_path: Path) -> None:
    topic = "pairs"
    with guarded(sandbox, tmp_path, added=SHEDDING) as leader:
        eventually(lambda: leader.guard.state()["followers"] is not None)
        create_spread_topic(sandbox, topic, {**SMALL_SEGMENTS, "min.insync.replicas": "1"}, brokers=[LEADER, FOLLOWER])
        with load_on(sandbox, topic) as load, InSync(sandbox, topic, FULL) as watched:
            foreign = fill_follower(sandbox, leave_free=AT_THE_LAST)
            wait_for_refusal(leader.gateway, topic, beyond=20)
            stored = acknowledged(load, HEALTHY)
            eventually(lambda: acknowledged(load, HEALTHY) > stored + 400)
            assert replicas(sandbox, topic, FULL) == [LEADER, FOLLOWER]
            assert (shed(leader), acts(sandbox, topic)) == (None, [])
            sandbox.unfill(foreign)
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
        assert watched.seen == {frozenset({LEADER, FOLLOWER})}
        load.verify(FULL, read_back(sandbox, topic, FULL))
    assert signs_of_death(sandbox) == []

"""KIP-1201's other half on real brokers: a follower whose disk is full, and its leader's guard that sees it.

Only the leader's broker has a guard and a gateway where ``fence`` is shown: a full broker without either is found by
what it says of itself.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from brimline.model import Bytes
from brimline.sandbox import Sandbox
from tests.integration.full_disks import (
    BY_PERCENT,
    LIMIT_PERCENT,
    clean_up,
    refused_batches,
    used_percent,
    wait_for_refusal,
)
from tests.integration.full_followers import (
    ASSIGNMENT,
    BROKERS,
    FOLLOWER,
    FULL,
    HEALTHY,
    LEADER,
    MIB,
    OTHER_FOLLOWER,
    REPLICATING,
    Guarded,
    acknowledged,
    create_spread_topic,
    doctor,
    fill_follower,
    guarded,
    load_on,
    replicating_keys,
    signs_of_death,
    size,
    three_brokers,
    verify_same_everywhere,
)
from tests.integration.gatewayed import gateway, state_dir
from tests.integration.guarded import guard
from tests.integration.reclaim_world import reclaim_keys
from tests.integration.replicated import InSync, in_sync, wait_for_isr
from tests.integration.shared import shared
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

VERSIONS = ["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=VERSIONS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with shared(three_brokers(request.param)) as running:
        yield running


@pytest.fixture(scope="module", params=VERSIONS)
def replicating(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(three_brokers(request.param, REPLICATING)) as running:
        yield running


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test has filled, another finds empty."""
    yield
    for name in ("sandbox", "replicating"):
        if name in request.fixturenames:
            clean_up(request.getfixturevalue(name))


def guards_of(sandbox: Sandbox, logs: Path, stack: ExitStack) -> dict[int, Guarded]:
    """Every broker has a gateway through which the others fetch from it, and a guard."""
    return {
        broker.broker_id: stack.enter_context(
            guarded(sandbox, logs, broker.broker_id, replicating_keys(sandbox, broker.broker_id))
        )
        for broker in sandbox.brokers
    }


def follower_events(leader: Guarded) -> list[str]:
    return [event for event in leader.guard.events() if event.startswith("follower-")]


def sizes(sandbox: Sandbox, topic: str, partition: int) -> set[int]:
    return {size(sandbox, topic, broker, partition) for broker in BROKERS}


def test_fence_refuses_what_a_follower_has_no_room_for_and_the_isr_never_shrinks(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    topic = "orders"
    with guarded(sandbox, tmp_path, added={"brimline.follower.action": "fence"}) as leader:
        eventually(lambda: leader.guard.state()["followers"] is not None)
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load, InSync(sandbox, topic, FULL) as watched:
            foreign = fill_follower(sandbox)
            # So many that some have been answered and sent again: then everything before them has been answered too.
            wait_for_refusal(leader.gateway, topic, beyond=20)
            eventually(lambda: [each["heldBack"] for each in leader.guard.state()["followers"]["full"]] == [True])
            (follower,) = leader.guard.state()["followers"]["full"]
            assert (follower["broker"], follower["partitions"]) == (FOLLOWER, 1)
            assert "are refused to producers (fence)" in follower["does"]
            (fence,) = leader.gateway.state()["followerFences"]
            assert fence["reason"].startswith(f"a follower's disk is full: broker {FOLLOWER}: log dir ")

            stopped_at, went_on_at = size(sandbox, topic, LEADER, FULL), acknowledged(load, HEALTHY)
            refused = refused_batches(leader.gateway, topic)
            eventually(lambda: acknowledged(load, HEALTHY) > went_on_at + 200)
            eventually(lambda: refused_batches(leader.gateway, topic) > refused)
            assert sizes(sandbox, topic, FULL) == {stopped_at}, "no replica lags, so none leaves the ISR"

            found = doctor(sandbox)
            assert "fence, because brimline.follower.action says so" in found
            assert f"broker {FOLLOWER} has no room: log dir " in found

            stored = acknowledged(load, FULL)
            sandbox.unfill(foreign)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
            eventually(lambda: leader.gateway.state()["followerFences"] == [])
            eventually(lambda: watched.looks > 5)
        assert watched.seen == {frozenset(BROKERS)}
        eventually(lambda: follower_events(leader)[-1] == "follower-released")
        assert follower_events(leader)[0] == "follower-full"
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


@pytest.mark.long
def test_reclaim_frees_the_disk_of_a_follower_while_it_is_skipped(replicating: Sandbox, tmp_path: Path) -> None:
    """The follower's own guard trims at the leader; a skipped follower still learns where the leader's log begins."""
    topic, sandbox = "trimmed", replicating
    log_dir = sandbox.broker(FOLLOWER).log_dirs[0]
    with ExitStack() as stack:
        leader = stack.enter_context(guarded(sandbox, tmp_path, LEADER, replicating_keys(sandbox, LEADER)))
        for broker in (FOLLOWER, OTHER_FOLLOWER):
            keys = {**replicating_keys(sandbox, broker), **BY_PERCENT}
            stack.enter_context(gateway(sandbox, tmp_path / f"gateway-{broker}.log", keys, broker=broker))
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic, first_bytes=8 * MIB):
            eventually(lambda: size(sandbox, topic, FOLLOWER, FULL) > 8 * MIB)
            # So little that it is still too full without these.
            foreign = fill_follower(sandbox, leave_free=Bytes(20 * MIB))
            eventually(lambda: leader.gateway.state()["skips"]["partitionsSkipped"] > 0)
            stopped_at = size(sandbox, topic, FOLLOWER, FULL)

            keys = reclaim_keys(state_dir(sandbox, FOLLOWER), ceiling=50)
            added = {**keys, **replicating_keys(sandbox, FOLLOWER), **BY_PERCENT}
            stack.enter_context(guard(sandbox, tmp_path / "reclaim.log", added, broker=FOLLOWER))
            eventually(lambda: size(sandbox, topic, FOLLOWER, FULL) < stopped_at / 2)
            assert used_percent(sandbox, log_dir) > LIMIT_PERCENT, "it is skipped all the time"
            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, ASSIGNMENT)
    assert signs_of_death(sandbox) == []


@pytest.mark.long
def test_a_gateway_that_carries_replication_and_dies_cuts_followers_off_until_it_is_back(
    replicating: Sandbox, tmp_path: Path
) -> None:
    topic, sandbox = "cut-off", replicating
    with ExitStack() as stack:
        leader = guards_of(sandbox, tmp_path, stack)[LEADER]
        create_spread_topic(sandbox, topic)
        leader.gateway.kill()
        eventually(lambda: leader.guard.samples("brimline_gateway_up") == {"": 0})
        assert leader.guard.samples("brimline_replication_through_gateway") == {"": 1}

        write_to_leader(sandbox, topic, 500)
        eventually(lambda: in_sync(sandbox, topic, FULL) == {LEADER})
        assert {size(sandbox, topic, broker, FULL) for broker in (FOLLOWER, OTHER_FOLLOWER)} == {0}

        keys = {**BY_PERCENT, **replicating_keys(sandbox, LEADER)}
        stack.enter_context(gateway(sandbox, tmp_path / "again.log", keys, broker=LEADER))
        wait_for_isr(sandbox, topic, ASSIGNMENT)
        eventually(lambda: sizes(sandbox, topic, FULL) == {size(sandbox, topic, LEADER, FULL)})
        eventually(lambda: leader.guard.samples("brimline_gateway_up") == {"": 1})
    assert size(sandbox, topic, LEADER, FULL) > 500_000


def write_to_leader(sandbox: Sandbox, topic: str, records: int) -> None:
    """Past the gateways, and without waiting for followers."""
    producer = Producer({"bootstrap.servers": sandbox.admin_servers, "acks": 1})
    for _ in range(records):
        producer.produce(topic, bytes(1000), partition=FULL)
    assert producer.flush(PATIENCE_SECONDS) == 0


def test_skip_stops_a_full_followers_growth_and_it_catches_up_by_itself(replicating: Sandbox, tmp_path: Path) -> None:
    topic, sandbox = "payments", replicating
    with ExitStack() as stack:
        leader = guards_of(sandbox, tmp_path, stack)[LEADER]
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            eventually(lambda: f'peer="{FOLLOWER}"' in leader.guard.samples("brimline_peer_full_log_dirs"))
            eventually(lambda: leader.gateway.state()["skips"]["partitionsSkipped"] > 0)
            stopped_at = size(sandbox, topic, FOLLOWER, FULL)
            led_at = {partition: size(sandbox, topic, LEADER, partition) for partition in ASSIGNMENT}

            wait_for_isr(sandbox, topic, {FULL: (LEADER, OTHER_FOLLOWER)})
            for partition, at in led_at.items():
                eventually(lambda: size(sandbox, topic, LEADER, partition) > at + MIB)  # noqa: B023 (called at once)
            # The other partition of the same thread goes on: what its leader has taken in, the follower gets.
            led = size(sandbox, topic, LEADER, HEALTHY)
            eventually(lambda: size(sandbox, topic, FOLLOWER, HEALTHY) >= led)
            wait_for_isr(sandbox, topic, {HEALTHY: BROKERS})
            assert size(sandbox, topic, FOLLOWER, FULL) == stopped_at
            assert leader.gateway.state()["skips"]["bytesWithheld"] > 0
            (follower,) = leader.guard.state()["followers"]["full"]
            assert "are not replicated to it (skip)" in follower["does"]

            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, ASSIGNMENT)
            eventually(lambda: leader.gateway.state()["skips"]["followers"] == [])
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []

"""Full followers while everything else happens too: restarts, leaders that move, guards that are gone or cut off."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kafka import TopicPartition

from brimline.decide.peer_disks import SHORTEST_PATIENCE
from brimline.sandbox import Sandbox
from tests.integration.full_disks import admin_client, clean_up, end_offset, refused_batches, wait_for_refusal
from tests.integration.full_followers import (
    ASSIGNMENT,
    BROKERS,
    FOLLOWER,
    FULL,
    HEALTHY,
    LEADER,
    OTHER_FOLLOWER,
    REPLICATING,
    RESTARTED,
    Guarded,
    acknowledged,
    create_spread_topic,
    fill_follower,
    guarded,
    load_on,
    replicating_keys,
    signs_of_death,
    size,
    three_brokers,
    verify_same_everywhere,
)
from tests.integration.replicated import described, wait_for_isr
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = [pytest.mark.integration, pytest.mark.long]

_PREFERRED = 0
LAG_SECONDS = int(REPLICATING["replica.lag.time.max.ms"]) / 1000
assert SHORTEST_PATIENCE < PATIENCE_SECONDS / 2, "tests here wait for it"


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(three_brokers(request.param, {**REPLICATING, **RESTARTED})) as running:
        yield running


@pytest.fixture(autouse=True)
def clean(sandbox: Sandbox) -> Iterator[None]:
    yield
    clean_up(sandbox)


class Guards:
    """A gateway and a guard beside every broker, each of which can be started again."""

    def __init__(self, sandbox: Sandbox, logs: Path, action: str) -> None:
        self._sandbox = sandbox
        self._logs = logs
        self._action = action
        self._stacks: dict[int, ExitStack] = {}
        self._starts = 0
        self.running: dict[int, Guarded] = {}

    def __getitem__(self, broker: int) -> Guarded:
        return self.running[broker]

    def start(self, broker: int) -> None:
        self._starts += 1
        logs = self._logs / str(self._starts)
        logs.mkdir()
        keys = {**replicating_keys(self._sandbox, broker), "brimline.follower.action": self._action}
        self._stacks[broker] = ExitStack()
        self.running[broker] = self._stacks[broker].enter_context(guarded(self._sandbox, logs, broker, keys))

    def stop(self, broker: int) -> None:
        self._stacks.pop(broker).close()

    def stop_all(self) -> None:
        for broker in list(self._stacks):
            self.stop(broker)


@contextmanager
def guards(sandbox: Sandbox, logs: Path, action: str) -> Iterator[Guards]:
    started = Guards(sandbox, logs, action)
    try:
        for broker in BROKERS:
            started.start(broker)
        yield started
    finally:
        started.stop_all()


def skipped(guarded_broker: Guarded) -> dict[int, int]:
    """Follower → partitions that are not sent to it."""
    rows = guarded_broker.gateway.state()["skips"]["followers"]
    return {row["broker"]: row["partitions"] for row in rows}


def leader_of(sandbox: Sandbox, topic: str, partition: int) -> int:
    with admin_client(sandbox) as client:
        return int(described(client, topic, partition)["leader_id"])


def lead(sandbox: Sandbox, topic: str, partition: int, broker: int) -> None:
    """Have it led by this broker, in the way of an operator: the first of the replicas is elected."""
    replicas = [broker, *(each for each in BROKERS if each != broker)]
    where = TopicPartition(topic, partition)
    with admin_client(sandbox) as client:
        client.alter_partition_reassignments({where: replicas})

        def elected() -> bool:
            client.elect_leaders(_PREFERRED, {topic: [partition]}, raise_errors=False)
            return leader_of(sandbox, topic, partition) == broker

        eventually(elected)


def wait_until_skipped(sandbox: Sandbox, topic: str, running: Guards) -> None:
    """By whoever leads: its gateway is told so, and has done it."""
    eventually(lambda: leader_of(sandbox, topic, FULL) in (LEADER, OTHER_FOLLOWER))
    leader = running[leader_of(sandbox, topic, FULL)]
    eventually(lambda: skipped(leader).get(FOLLOWER) == 1)
    before = leader.gateway.state()["skips"]["partitionsSkipped"]
    eventually(lambda: leader.gateway.state()["skips"]["partitionsSkipped"] > before)


def test_everything_is_restarted_one_by_one_while_a_follower_is_full(sandbox: Sandbox, tmp_path: Path) -> None:
    topic = "restarted"
    with guards(sandbox, tmp_path, "auto") as running:
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            wait_until_skipped(sandbox, topic, running)
            for broker in (OTHER_FOLLOWER, FOLLOWER, LEADER):
                # Whoever is left can lead.
                wait_for_isr(sandbox, topic, {FULL: (LEADER, OTHER_FOLLOWER), HEALTHY: BROKERS})
                running.stop(broker)
                sandbox.broker(broker).restart()
                running.start(broker)
                wait_until_skipped(sandbox, topic, running)
                stopped_at, stored = size(sandbox, topic, FOLLOWER, FULL), acknowledged(load, FULL)
                eventually(lambda: acknowledged(load, FULL) > stored + 200)  # noqa: B023 (called at once)
                assert size(sandbox, topic, FOLLOWER, FULL) == stopped_at

            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, ASSIGNMENT)
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


def assert_refused(sandbox: Sandbox, topic: str, leader: Guarded) -> None:
    """So many that some have been answered and sent again: what was under way is stored by then, and no more comes."""
    wait_for_refusal(leader.gateway, topic, beyond=refused_batches(leader.gateway, topic) + 20)
    end = end_offset(sandbox, topic, FULL)
    wait_for_refusal(leader.gateway, topic, beyond=refused_batches(leader.gateway, topic) + 20)
    assert end_offset(sandbox, topic, FULL) == end


def test_a_full_follower_that_comes_to_lead_is_refused_to_producers_by_its_own_guard(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    topic = "moving"
    with guards(sandbox, tmp_path, "fence") as running:
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            for leader in (LEADER, FOLLOWER, OTHER_FOLLOWER):
                lead(sandbox, topic, FULL, leader)
                assert_refused(sandbox, topic, running[leader])
            wait_for_isr(sandbox, topic, ASSIGNMENT)

            sandbox.unfill(foreign)
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


def test_without_its_guard_a_leader_replicates_again_until_there_is_one(sandbox: Sandbox, tmp_path: Path) -> None:
    topic = "unguarded"
    with guards(sandbox, tmp_path, "skip") as running:
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            wait_for_isr(sandbox, topic, {FULL: (LEADER, OTHER_FOLLOWER)})

            leader = running[LEADER]
            os.kill(leader.guard.process.pid, signal.SIGKILL)
            eventually(lambda: "skips-expired" in leader.gateway.events())
            wait_for_isr(sandbox, topic, {FULL: BROKERS})

            running.stop(LEADER)
            running.start(LEADER)
            eventually(lambda: skipped(running[LEADER]) == {FOLLOWER: 1})
            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


def test_a_full_broker_that_cannot_be_asked_is_stale_then_silent_then_full_again(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    topic = "silenced"

    def unanswered() -> dict[int, str]:
        rows = running[LEADER].guard.state()["followers"]["unanswered"]
        return {row["broker"]: row["state"] for row in rows}

    with guards(sandbox, tmp_path, "skip") as running:
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            eventually(lambda: skipped(running[LEADER]) == {FOLLOWER: 1})
            os.kill(sandbox.broker(FOLLOWER).pid, signal.SIGSTOP)
            try:
                eventually(lambda: unanswered() == {FOLLOWER: "stale"})
                while_stale = skipped(running[LEADER])
                if unanswered() == {FOLLOWER: "stale"}:  # or the machine was so slow that it is past that
                    assert while_stale == {FOLLOWER: 1}
                # The broker's session ends too: then it is no broker any more.
                eventually(lambda: unanswered() in ({FOLLOWER: "silent"}, {}))
                eventually(lambda: skipped(running[LEADER]) == {})
            finally:
                os.kill(sandbox.broker(FOLLOWER).pid, signal.SIGCONT)
            eventually(lambda: skipped(running[LEADER]) == {FOLLOWER: 1})
            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


def test_fence_keeps_the_isr_whole_for_much_longer_than_a_follower_may_lag(sandbox: Sandbox, tmp_path: Path) -> None:
    """A follower that lags is out of sync by then, and stays out while producers are refused."""
    topic = "fenced"
    with guards(sandbox, tmp_path, "fence") as running:
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            assert_refused(sandbox, topic, running[LEADER])
            end = end_offset(sandbox, topic, FULL)
            time.sleep(5 * LAG_SECONDS)
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
            assert_refused(sandbox, topic, running[LEADER])
            assert end_offset(sandbox, topic, FULL) == end
            sandbox.unfill(foreign)
            stored = acknowledged(load, FULL)
            eventually(lambda: acknowledged(load, FULL) > stored + 200)
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []

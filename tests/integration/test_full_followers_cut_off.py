"""Brokers that replicate over a listener of their own, behind their gateways, and guards that ask over yet another one.

The third listener runs through forwarders that a test can cut: a guard then cannot ask a broker that lives and fetches.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from brimline.sandbox import Sandbox
from brimline.sandbox.broker import Broker
from brimline.torture.faults.cuttable import Cuttable, cuttable
from tests.integration.full_disks import clean_up
from tests.integration.full_followers import (
    BROKERS,
    FOLLOWER,
    FULL,
    HEALTHY,
    LEADER,
    MIB,
    OTHER_FOLLOWER,
    RESTARTED,
    SHRINKING,
    Guarded,
    create_spread_topic,
    doctor,
    fill_follower,
    guarded,
    load_on,
    signs_of_death,
    size,
    three_brokers,
    verify_same_everywhere,
)
from tests.integration.replicated import wait_for_isr
from tests.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.long]

KEYS = {"brimline.admin.listener": "WATCH", "brimline.follower.action": "auto"}


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(three_brokers(request.param, {**SHRINKING, **RESTARTED})) as running:
        yield running


@pytest.fixture(scope="module")
def watching(sandbox: Sandbox) -> Iterator[Mapping[int, Cuttable]]:
    """Every broker with two more listeners: INTERNAL at a gateway's port, WATCH at that of a forwarder."""
    with ExitStack() as stack:
        forwarders = {}
        for broker in sandbox.brokers:
            internal, internal_front, watch, watch_front = sandbox.reserve_ports(4)
            known = broker.properties
            broker.stop()
            broker.alter_properties(
                {
                    "listeners": f"{known['listeners']},{_at('INTERNAL', internal)},{_at('WATCH', watch)}",
                    "advertised.listeners": ",".join(
                        [known["advertised.listeners"], _at("INTERNAL", internal_front), _at("WATCH", watch_front)]
                    ),
                    "listener.security.protocol.map": ",".join(
                        [known["listener.security.protocol.map"], "INTERNAL:PLAINTEXT", "WATCH:PLAINTEXT"]
                    ),
                    "inter.broker.listener.name": "INTERNAL",
                }
            )
            broker.start()
            forwarders[broker.broker_id] = stack.enter_context(cuttable(watch_front, watch))
        yield forwarders


@pytest.fixture(autouse=True)
def clean(sandbox: Sandbox) -> Iterator[None]:
    yield
    clean_up(sandbox)


def _at(listener: str, port: int) -> str:
    return f"{listener}://127.0.0.1:{port}"


def _guards(sandbox: Sandbox, logs: Path, stack: ExitStack) -> dict[int, Guarded]:
    """Each gateway in front of what clients use and of what brokers use."""
    return {
        broker.broker_id: stack.enter_context(guarded(sandbox, logs, broker.broker_id, {**KEYS, **_fronts(broker)}))
        for broker in sandbox.brokers
    }


def _fronts(broker: Broker) -> dict[str, str]:
    fronts = [
        each
        for each in broker.properties["advertised.listeners"].split(",")
        if each.startswith(("CLIENT:", "INTERNAL:"))
    ]
    return {"brimline.gateway.listeners": ",".join(fronts)}


def test_a_full_broker_that_its_leaders_guard_cannot_reach_is_held_for_three_checks_and_found_again(
    sandbox: Sandbox, watching: Mapping[int, Cuttable], tmp_path: Path
) -> None:
    topic = "cut-off"

    def unanswered() -> dict[int, str]:
        rows = leader.guard.state()["followers"]["unanswered"]
        return {row["broker"]: row["state"] for row in rows}

    def skipped() -> dict[int, int]:
        rows = leader.gateway.state()["skips"]["followers"]
        return {row["broker"]: row["partitions"] for row in rows}

    with ExitStack() as stack:
        leader = _guards(sandbox, tmp_path, stack)[LEADER]
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            eventually(lambda: skipped() == {FOLLOWER: 1})
            wait_for_isr(sandbox, topic, {FULL: (LEADER, OTHER_FOLLOWER)})
            eventually(lambda: "skip, because" in doctor(sandbox))
            stopped_at, healthy_at = size(sandbox, topic, FOLLOWER, FULL), size(sandbox, topic, FOLLOWER, HEALTHY)

            watching[FOLLOWER].cut()
            eventually(lambda: unanswered() == {FOLLOWER: "stale"})
            eventually(lambda: size(sandbox, topic, FOLLOWER, HEALTHY) > healthy_at + MIB)
            now_at = size(sandbox, topic, FOLLOWER, FULL)
            if unanswered() == {FOLLOWER: "stale"}:  # or the machine was so slow that it is past that
                assert now_at == stopped_at
            eventually(lambda: unanswered() == {FOLLOWER: "silent"})
            eventually(lambda: skipped() == {})
            eventually(lambda: size(sandbox, topic, FOLLOWER, FULL) > stopped_at)

            watching[FOLLOWER].mend()
            eventually(lambda: skipped() == {FOLLOWER: 1})
            eventually(lambda: unanswered() == {})
            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []


def test_a_guard_that_can_reach_nobody_holds_nothing_back_for_ever(
    sandbox: Sandbox, watching: Mapping[int, Cuttable], tmp_path: Path
) -> None:
    topic = "alone"
    with ExitStack() as stack:
        leader = _guards(sandbox, tmp_path, stack)[LEADER]
        create_spread_topic(sandbox, topic)
        with load_on(sandbox, topic) as load:
            foreign = fill_follower(sandbox)
            eventually(lambda: bool(leader.gateway.state()["skips"]["followers"]))
            for forwarder in watching.values():
                forwarder.cut()
            eventually(lambda: leader.gateway.state()["skips"]["followers"] == [])
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
            for forwarder in watching.values():
                forwarder.mend()
            eventually(lambda: bool(leader.gateway.state()["skips"]["followers"]))
            sandbox.unfill(foreign)
            wait_for_isr(sandbox, topic, {FULL: BROKERS})
        verify_same_everywhere(sandbox, topic, load)
    assert signs_of_death(sandbox) == []

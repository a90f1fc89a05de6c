"""The clients that the gateway is tested with do what they say, straight against a broker."""

import os
import signal
from collections.abc import Iterator

import pytest

from brimline.sandbox import Sandbox
from tests.integration.cluster import create_topic
from tests.integration.gateway_clients.clients import CLIENTS, JAVA_3, JAVA_4, KAFKA_PYTHON, Client
from tests.integration.gateway_clients.groups import consuming
from tests.integration.gateway_clients.load import producing
from tests.integration.gateway_clients.verification import stored_by, verify_read_back, verify_transactions
from tests.waiting import eventually

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_everything_is_acknowledged_and_read_back_in_order(sandbox: Sandbox, client: Client) -> None:
    topic = f"from-{client}"
    create_topic(sandbox, topic, partitions=2)

    with producing(client, sandbox.bootstrap_servers, topic, partitions=(0, 1), rate=500, count=200) as load:
        load.wait_until_done()

    assert load.sent == 200
    assert load.acked() == set(range(200))
    assert load.failures == []
    assert verify_read_back(sandbox, load) == {0: list(range(0, 200, 2)), 1: list(range(1, 200, 2))}


def test_the_end_of_the_block_stops_and_flushes(sandbox: Sandbox) -> None:
    create_topic(sandbox, "stopped")

    with producing(KAFKA_PYTHON, sandbox.bootstrap_servers, "stopped", rate=300, value_bytes=1000) as load:
        load.wait_for_acks(50)

    assert load.acked() == set(range(load.sent))
    assert len(verify_read_back(sandbox, load)[0]) == load.sent


@pytest.mark.parametrize("client", [JAVA_4, KAFKA_PYTHON], ids=str)
def test_a_signal_stops_and_flushes(sandbox: Sandbox, client: Client) -> None:
    topic = f"signalled-{client}"
    create_topic(sandbox, topic)

    with producing(client, sandbox.bootstrap_servers, topic, rate=300) as load:
        load.wait_for_acks(1)
        os.kill(load.process.pid, signal.SIGTERM)
        load.wait_until_done()

    assert load.acked() == set(range(load.sent))


def test_a_failure_is_reported_with_its_name(sandbox: Sandbox) -> None:
    create_topic(sandbox, "small", config={"max.message.bytes": "500"})

    with producing(JAVA_4, sandbox.bootstrap_servers, "small", count=1, value_bytes=2000) as load:
        load.wait_until_done()

    assert [(failure.number, failure.error) for failure in load.failures] == [(0, "RecordTooLargeException")]
    assert load.acked() == set()


@pytest.mark.parametrize("client", [JAVA_4, JAVA_3], ids=str)
def test_transactions_are_committed(sandbox: Sandbox, client: Client) -> None:
    topic = f"committed-by-{client}"
    create_topic(sandbox, topic)

    with producing(
        client, sandbox.bootstrap_servers, topic, rate=500, count=40, transactional_id=topic, per_transaction=20
    ) as load:
        load.wait_until_done()

    assert [(each.outcome, each.numbers) for each in load.transactions] == [
        ("committed", range(20)),
        ("committed", range(20, 40)),
    ]
    assert [number for number, _ in stored_by(sandbox, load, 0, committed=True)] == list(range(40))
    verify_transactions(sandbox, load)


def test_a_transaction_that_cannot_be_stored_is_reported_as_aborted(sandbox: Sandbox) -> None:
    create_topic(sandbox, "too-small", config={"max.message.bytes": "500"})

    with producing(
        JAVA_4,
        sandbox.bootstrap_servers,
        "too-small",
        count=1,
        value_bytes=2000,
        transactional_id="t",
        per_transaction=1,
    ) as load:
        load.wait_until_done()

    assert [(each.outcome, each.numbers) for each in load.transactions] == [("aborted", range(1))]
    verify_transactions(sandbox, load)


def test_a_group_of_two_shares_the_partitions_and_reads_everything(sandbox: Sandbox) -> None:
    create_topic(sandbox, "shared", partitions=2)
    servers = sandbox.bootstrap_servers

    with consuming("4.3.1", servers, "shared", "readers") as group:
        eventually(lambda: sorted(group.assigned.values()) == [[0], [1]])
        with producing(
            KAFKA_PYTHON, sandbox.bootstrap_servers, "shared", partitions=(0, 1), rate=500, count=100
        ) as load:
            load.wait_until_done()
        group.wait_for_records(100)

    assert {each.member for each in group.consumed} == {0, 1}
    assert sorted(each.value for each in group.consumed) == sorted(f"{load.name}-{n % 2}-{n}" for n in range(100))


def test_a_client_that_cannot_start_fails_its_test_with_its_complaint(sandbox: Sandbox) -> None:
    with (
        pytest.raises(AssertionError, match="Unrecognized configs"),
        producing(KAFKA_PYTHON, sandbox.bootstrap_servers, "nowhere", properties={"no_such_key": "1"}),
    ):
        pass

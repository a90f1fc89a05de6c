"""The clients that the gateway is tested with say what went wrong, and end when they are told to.

What they do when all is well, every test of the gateway shows (`test_gateway_matrix.py`: each of them).
"""

import os
import signal
from collections.abc import Iterator

import pytest

from brimline.sandbox import Sandbox
from brimline.torture.clients.table import JAVA_4, KAFKA_PYTHON, Client
from tests.integration.cluster import create_topic
from tests.integration.gateway_clients.load import producing
from tests.integration.gateway_clients.verification import verify_transactions

pytestmark = [pytest.mark.integration, pytest.mark.long]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


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


def test_a_client_that_cannot_start_fails_its_test_with_its_complaint(sandbox: Sandbox) -> None:
    with (
        pytest.raises(AssertionError, match="Unrecognized configs"),
        producing(KAFKA_PYTHON, sandbox.bootstrap_servers, "nowhere", properties={"no_such_key": "1"}),
    ):
        pass

"""The control socket from the client's side: answers, refusals, and every way of not being there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from brimline.decide.admission import FenceCause
from brimline.gateway.client import LARGEST_ANSWER, GatewayClient, control_socket
from brimline.model import BadInput, FailureKind, ObservationFailed
from tests.guard.files import config
from tests.guard.gateways import FakeGateway, document, fake_gateway, fence, refused
from tests.waiting import PATIENCE_SECONDS

SOON = 0.2


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[FakeGateway]:
    with fake_gateway(tmp_path / "gateway-7.sock") as running:
        yield running


@pytest.fixture
def client(tmp_path: Path) -> Iterator[GatewayClient]:
    with GatewayClient(tmp_path / "gateway-7.sock", PATIENCE_SECONDS) as opened:
        yield opened


def failure_of(client: GatewayClient) -> tuple[FailureKind, str]:
    with pytest.raises(ObservationFailed) as caught:
        client.state()
    return caught.value.failure.kind, caught.value.failure.message


def test_the_socket_has_the_brokers_number_and_stands_in_the_state_dir() -> None:
    assert control_socket(config("brimline.state.dir=/run/b\n")) == Path("/run/b/gateway-7.sock")


def test_the_state_is_read_into_facts(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.document = document(
        fences=[fence("full"), fence("manual", by="alice", topic="clicks")],
        refusals=[refused(), refused(topic="(other)", partition=-1)],
    )

    state = client.state()

    by_disk, by_hand = state.fences
    assert (by_disk.log_dir, by_disk.topic, by_disk.cause) == ("/data/a", None, FenceCause.FULL)
    assert (by_hand.log_dir, by_hand.topic, by_hand.cause, by_hand.by) == (None, "clicks", FenceCause.MANUAL, "alice")
    assert [by_disk.target, by_hand.target] == ["/data/a", "topic clicks"]
    assert by_hand.since == datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
    assert [(row.topic, row.partition) for row in state.refusals] == [("orders", 3), ("(other)", None)]
    assert (state.connections.open, state.bytes.to_clients, state.latency.counts) == (7, 2000, (10, 5, 1))


def test_the_whole_document_can_be_had(gateway: FakeGateway, client: GatewayClient) -> None:
    assert client.document() == gateway.document


def test_keys_of_a_later_version_do_not_disturb(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.document = document(news={"a": 1})

    assert client.state().pid == 4711


def test_requests_are_said_as_the_protocol_has_them(gateway: FakeGateway, client: GatewayClient) -> None:
    client.lease({"/data/a": "why"}, 5.0)
    client.fence(log_dir="/data/a", reason="r", by="me")
    client.unfence(topic="t", reason="", by="me")

    assert gateway.told == [
        {"v": 1, "op": "lease", "seconds": 5.0, "full": {"/data/a": "why"}, "offline": []},
        {"v": 1, "op": "fence", "logDir": "/data/a", "reason": "r", "by": "me"},
        {"v": 1, "op": "unfence", "topic": "t", "reason": "", "by": "me"},
    ]


def test_a_path_that_is_not_utf_8_arrives_as_it_is(gateway: FakeGateway, client: GatewayClient) -> None:
    path = os.fsdecode(b"/data/\xff")

    client.lease({path: "why"}, 5.0)

    assert list(gateway.told[0]["full"]) == [path]


def test_a_refusal_is_the_gateways_own_sentence(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.error = "/data/z is not a log dir of this broker"

    with pytest.raises(BadInput, match=r"^/data/z is not a log dir of this broker$"):
        client.fence(log_dir="/data/z", reason="r", by="me")


def test_a_gateway_that_was_started_again_is_found_again(gateway: FakeGateway, client: GatewayClient) -> None:
    client.state()
    gateway.drop_connections()

    assert client.state().pid == 4711


def test_no_socket_is_not_the_same_as_nobody_behind_it(client: GatewayClient) -> None:
    absent = failure_of(client)
    with fake_gateway(client.path):
        client.state()
    left_behind = failure_of(client)

    assert absent == (FailureKind.GONE, f"no gateway is running: {client.path} does not exist")
    assert left_behind == (FailureKind.UNREACHABLE, f"no gateway is running: nothing listens on {client.path}")


def test_it_answers_again_after_a_failure(client: GatewayClient) -> None:
    failure_of(client)

    with fake_gateway(client.path):
        assert client.state().pid == 4711


@contextmanager
def nobody() -> Iterator[None]:
    """Root may speak to everybody: then the test is somebody else for a moment."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


def test_no_permission_says_who_may(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.path.chmod(0o000)

    with nobody():
        kind, message = failure_of(client)

    assert kind is FailureKind.NOT_AUTHORIZED
    assert "run this as its user or root" in message


def test_a_gateway_that_hangs_is_not_waited_for(gateway: FakeGateway) -> None:
    gateway.is_silent = True

    with GatewayClient(gateway.path, timeout=SOON) as client:
        kind, message = failure_of(client)

    assert kind is FailureKind.TIMED_OUT
    assert message == f"the gateway at {gateway.path} did not answer within 0.2 s"


def test_after_a_late_answer_the_next_question_gets_its_own(gateway: FakeGateway) -> None:
    """The answer that nobody waited for must not be taken for the next one."""
    gateway.is_silent = True
    with GatewayClient(gateway.path, timeout=SOON) as client:
        failure_of(client)
        gateway.is_silent = False
        gateway.document = document(pid=1)
        client.timeout = PATIENCE_SECONDS

        assert client.state().pid == 1


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"HTTP/1.1 400 Bad Request\n",
        b"[]\n",
        b'{"ok": 1}\n',
        b'{"ok": true}\n',
        b'{"ok": true, "state": []}\n',
        b'{"ok": true, "state": {}}\n',
        b"\xff\xfe\n",
    ],
)
def test_something_else_behind_the_socket_is_one_sentence(
    gateway: FakeGateway, client: GatewayClient, said: bytes
) -> None:
    gateway.raw = said

    assert failure_of(client) == (
        FailureKind.UNSUPPORTED,
        f"{gateway.path} answers, but not like a gateway of this version",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"fences": [{**fence(), "topic": "both"}]},
        {"fences": [{"cause": "full"}]},
        {"fences": [fence("bad-luck")]},
        {"fences": ["none"]},
        {"latency": {"bounds": [1.0], "counts": [1], "sum": 0}},
        {"startedAt": "yesterday"},
        {"connections": []},
        {"requests": None},
    ],
)
def test_a_state_that_makes_no_sense_is_one_sentence(
    gateway: FakeGateway, client: GatewayClient, changes: dict[str, Any]
) -> None:
    gateway.document = document(**changes)

    assert failure_of(client)[0] is FailureKind.UNSUPPORTED


def test_an_answer_without_end_is_not_read_to_its_end(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.raw = b"x" * (LARGEST_ANSWER + 1)

    kind, message = failure_of(client)

    assert kind is FailureKind.UNREACHABLE
    assert "more than 16777216 bytes" in message


def test_a_path_that_no_socket_can_have_is_one_sentence(tmp_path: Path) -> None:
    with GatewayClient(tmp_path / ("x" * 200)) as client:
        kind, message = failure_of(client)

    assert kind is FailureKind.UNREACHABLE
    assert "too long" in message

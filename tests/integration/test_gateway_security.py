"""Who are you? SASL passes through the gateway, TLS ends at it, and client certificates go past it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest
from kafka import KafkaProducer
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from brimline import Admin, BrokerId, ClientConfig, DescribeLogDirsOptions
from brimline.gateway.rules.sequence_memory import DEFAULT_CAPACITY
from brimline.model import Bytes, FailureKind
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from brimline.sandbox.certificates import Authority
from brimline.torture.clients.table import JAVA_4, KAFKA_PYTHON, LIBRDKAFKA_IDEMPOTENT, Client
from brimline.torture.read_back import read_back
from brimline.wire.produce import MOST_ENTRIES
from tests.integration.cluster import brimline_inside, create_topic
from tests.integration.full_disks import KEEPS_ALL, topic_id
from tests.integration.gateway_clients.load import producing
from tests.integration.gateway_clients.logins import Login
from tests.integration.gateway_clients.verification import verify_read_back
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, write_gateway_config
from tests.integration.kafka_clients import kafka_admin, kafka_producer
from tests.integration.kip_1187_client import Described, describe_over
from tests.integration.raw_kafka import logged_in, raw_connection, request
from tests.integration.raw_produce import BY_ID, BY_NAME, RawProducer
from tests.integration.test_gateway_doctor import doctor
from tests.sandbox.test_security import served_certificate
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request, framed

pytestmark = pytest.mark.integration

VOLUMES = (VolumeSpec(size=Bytes(128 << 20)),)
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
OPERATOR, GUEST, WRITER = ("operator", "opens-it"), ("guest", "has-no-rights"), ("writer", "may-write")
TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED = 29, 31
WHY = {"reason": "who may pass", "by": "test"}


def operator(protocol: str, mechanism: str, ca: Path | None = None) -> Login:
    user, password = OPERATOR
    return Login(protocol=protocol, mechanism=mechanism, user=user, password=password, ca=ca)


def produce_through_a_fence(sandbox: Sandbox, fronting: RunningGateway, client: Client, login: Login) -> None:
    """Some records, a fence, its release, some more: all are stored, once and in order."""
    topic = f"{client}-{login.protocol}-{login.mechanism}"
    create_topic(sandbox, topic)
    properties = {**client.patience, **login.in_words_of(client)}
    with producing(client, sandbox.bootstrap_servers, topic, rate=50, properties=properties) as load:
        load.wait_for_acks(10)
        assert fronting.ask("fence", topic=topic, **WHY)["ok"]
        eventually(lambda: any(row["topic"] == topic for row in fronting.state()["refusals"]))
        assert fronting.ask("unfence", topic=topic, **WHY)["ok"]
        load.wait_for_acks(10)
    assert load.failures == []
    assert load.acked() == set(range(load.sent))
    assert verify_read_back(sandbox, load) == {0: list(range(load.sent))}


# --- SASL without TLS


@pytest.fixture(scope="module")
def sasl() -> Iterator[Sandbox]:
    security = SecuritySpec(
        protocol="SASL_PLAINTEXT",
        mechanisms=("PLAIN", "SCRAM-SHA-256"),
        users=dict((OPERATOR, GUEST, WRITER)),
        super_users=(OPERATOR[0],),
        acls=True,
    )
    with Sandbox(SandboxSpec(volumes=VOLUMES, fronted=True, security=security)) as running:
        yield running


@pytest.mark.parametrize(
    ("client", "mechanism"), [(KAFKA_PYTHON, "PLAIN"), (LIBRDKAFKA_IDEMPOTENT, "SCRAM-SHA-256")], ids=str
)
def test_sasl_passes_through(sasl: Sandbox, tmp_path: Path, client: Client, mechanism: str) -> None:
    with gateway(sasl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting:
        produce_through_a_fence(sasl, fronting, client, operator("SASL_PLAINTEXT", mechanism))


def test_whoever_may_not_describe_gets_no_sizes_from_the_gateway_either(sasl: Sandbox, tmp_path: Path) -> None:
    """Neither from a gateway that does not know its broker's versions yet, nor from one that does."""
    stock = request(DescribeLogDirsRequest(topics=None), 5)
    with gateway(sasl, tmp_path / "gateway.log", NOTHING_IS_FULL):
        with logged_in(sasl.bootstrap_servers, *GUEST) as connection:
            at_first = describe_over(connection, include_remote_info=True)
            connection.answers(request(ApiVersionsRequest(), 2))
            later = describe_over(connection, include_remote_info=True)
            through = connection.answers(stock)
        with logged_in(sasl.direct_servers, *GUEST) as connection:
            direct = connection.answers(stock)
        by_our_own = failure_of(sasl, GUEST)

    assert through == direct
    assert at_first == later == Described(error_code=CLUSTER_AUTHORIZATION_FAILED, log_dirs=())
    assert by_our_own is FailureKind.NOT_AUTHORIZED


def test_what_is_allowed_to_this_machine_is_not_allowed_to_everybody_behind_the_gateway(
    sasl: Sandbox, tmp_path: Path
) -> None:
    create_topic(sasl, "local-only")
    rule = ACL(
        f"User:{GUEST[0]}",
        "127.0.0.1",
        ACLOperation.WRITE,
        ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TOPIC, "local-only"),
    )
    with kafka_admin(sasl.admin_servers) as client:
        client.create_acls([rule])

    def answer(servers: str) -> int:
        with logged_in(servers, *GUEST) as connection:
            return RawProducer(connection).produce([("local-only", 0)])["local-only", 0].code

    with gateway(sasl, tmp_path / "gateway.log", NOTHING_IS_FULL):
        eventually(lambda: answer(sasl.direct_servers) == 0)
        through = answer(sasl.bootstrap_servers)
    with gateway(sasl, tmp_path / "as-before.log", {**NOTHING_IS_FULL, "brimline.gateway.source.address": "any"}):
        from_the_same_address = answer(sasl.bootstrap_servers)

    assert through == TOPIC_AUTHORIZATION_FAILED
    assert from_the_same_address == 0


@pytest.mark.parametrize("acks", [-1, 0])
def test_who_has_not_logged_in_learns_nothing_and_holds_nobody_back(sasl: Sandbox, tmp_path: Path, acks: int) -> None:
    """Not what is full, and not by guessing a producer's id; whoever has logged in is refused as everywhere."""
    topic = f"secret{acks}"
    create_topic(sasl, topic)
    first = {(topic, 0): batch(producer_id=7, producer_epoch=0, base_sequence=0)}
    with gateway(sasl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting:
        before = fronting.state()["sequences"]["held"]  # it survives gateways
        assert fronting.ask("fence", topic=topic, **WHY)["ok"]
        with raw_connection(sasl.bootstrap_servers) as nobody:
            closed = RawProducer(nobody).is_closed_after(first, acks=acks)
        eventually(lambda: fronting.state()["connections"]["open"] == 0)
        held_by_nobody = fronting.state()["sequences"]["held"]
        with logged_in(sasl.bootstrap_servers, *OPERATOR) as somebody:
            said = [RawProducer(somebody).produce(first)[topic, 0] for _ in range(2)]
        held = fronting.state()["sequences"]["held"]

    assert closed
    assert held_by_nobody == before
    assert [(answer.code, answer.text) for answer in said] == [(56, "fenced by hand: who may pass")] * 2
    assert held == before + 1


# --- what is remembered of refused producers: only who may write changes it

TOPIC_AUTHORIZATION_FAILED, OUT_OF_ORDER, KAFKA_STORAGE_ERROR = 29, 45, 56
PRODUCER = 7_000_001
"""An id that the broker has given to nobody: what is known of it, the gateway knows."""


def numbered(topic: str, sequence: int, producer_id: int = PRODUCER) -> dict[tuple[str, int], bytes]:
    value = b"%d" % sequence
    return {(topic, 0): batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, value=value)}


@contextmanager
def fenced(fronting: RunningGateway, topic: str) -> Iterator[None]:
    assert fronting.ask("fence", topic=topic, **WHY)["ok"]
    yield
    assert fronting.ask("unfence", topic=topic, **WHY)["ok"]


class Trust(NamedTuple):
    """A topic, a producer that may write to it, and the codes of what it has sent."""

    fronting: RunningGateway
    topic: str
    ids: dict[str, UUID] | None
    producer: RawProducer

    def produces(self, *sequences: int) -> list[int]:
        answers = [self.producer.produce(numbered(self.topic, each), self.ids) for each in sequences]
        return [answer[self.topic, 0].code for answer in answers]


@pytest.fixture(params=["by-id", pytest.param("by-name", marks=pytest.mark.long)])
def trust(sasl: Sandbox, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Trust]:
    """Its user is no super user: he may write to this topic, and the guest may look at it."""
    topic = f"trust-{request.node.originalname.rpartition('_')[2]}-{request.param}"
    create_topic(sasl, topic, config=KEEPS_ALL)
    for user, operation in ((WRITER, ACLOperation.WRITE), (GUEST, ACLOperation.DESCRIBE)):
        rule = ACL(
            f"User:{user[0]}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, topic)
        )
        with kafka_admin(sasl.admin_servers) as client:
            client.create_acls([rule])
    ids = {topic: topic_id(sasl, topic)} if request.param == "by-id" else None
    with (
        gateway(sasl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting,
        logged_in(sasl.bootstrap_servers, *WRITER) as connection,
    ):
        yield Trust(fronting, topic, ids, RawProducer(connection))


def stored(sandbox: Sandbox, topic: str) -> list[str]:
    return [record.value for record in read_back(sandbox, topic, 0)]


def test_without_the_right_to_write_nobody_frees(sasl: Sandbox, trust: Trust) -> None:
    """What was refused comes first, though a guest, and one who has not logged in, send it in the producer's name."""
    with fenced(trust.fronting, trust.topic):
        assert trust.produces(0, 1) == [KAFKA_STORAGE_ERROR] * 2
    with logged_in(sasl.bootstrap_servers, *GUEST) as guest:
        said = RawProducer(guest).produce(numbered(trust.topic, 0), trust.ids)[trust.topic, 0].code
    with raw_connection(sasl.bootstrap_servers) as nobody:
        assert RawProducer(nobody).is_closed_after(numbered(trust.topic, 0), acks=-1)

    assert said == TOPIC_AUTHORIZATION_FAILED
    assert trust.produces(1, 0, 1) == [OUT_OF_ORDER, 0, 0]
    assert stored(sasl, trust.topic) == ["0", "1"]


def test_without_the_right_to_write_nobody_forges(sasl: Sandbox, trust: Trust) -> None:
    """A lower sequence in the producer's name would hold it back for minutes."""
    with fenced(trust.fronting, trust.topic):
        assert trust.produces(5) == [KAFKA_STORAGE_ERROR]
        with logged_in(sasl.bootstrap_servers, *GUEST) as guest:
            said = RawProducer(guest).produce(numbered(trust.topic, 0), trust.ids)[trust.topic, 0]
        with raw_connection(sasl.bootstrap_servers) as nobody:
            assert RawProducer(nobody).is_closed_after(numbered(trust.topic, 0), acks=-1)

    assert (said.code, said.text) == (TOPIC_AUTHORIZATION_FAILED, None)
    assert trust.produces(5, 6) == [0, 0]
    assert stored(sasl, trust.topic) == ["5", "6"]


def test_without_the_right_to_write_nobody_evicts(sasl: Sandbox, trust: Trust) -> None:
    """Requests as large as they may be, for more producers than there is memory for."""
    with fenced(trust.fronting, trust.topic):
        assert trust.produces(0) == [KAFKA_STORAGE_ERROR]
        before = trust.fronting.state()["sequences"]
        with logged_in(sasl.bootstrap_servers, *GUEST) as guest:
            for start in range(0, DEFAULT_CAPACITY + 1, MOST_ENTRIES):
                made_up = range(start, start + MOST_ENTRIES)
                parts = [Partition(0, numbered(trust.topic, 0, producer_id)[trust.topic, 0]) for producer_id in made_up]
                asked = PlainRequest(topics=[PlainTopic(trust.topic, (trust.ids or {}).get(trust.topic), parts)])
                guest.answers(framed(encoded_request(asked, BY_ID if trust.ids else BY_NAME)))
        assert trust.fronting.state()["sequences"] == before

    assert trust.produces(1, 0) == [OUT_OF_ORDER, 0]


def test_whoever_may_write_loses_nothing(sasl: Sandbox, trust: Trust) -> None:
    assert trust.produces(0) == [0]
    with fenced(trust.fronting, trust.topic):
        assert trust.produces(1, 2, 3) == [KAFKA_STORAGE_ERROR] * 3
    assert trust.produces(1, 2, 3) == [0] * 3

    assert stored(sasl, trust.topic) == ["0", "1", "2", "3"]


def failure_of(sandbox: Sandbox, who: tuple[str, str]) -> FailureKind | None:
    user, password = who
    login = Login(protocol="SASL_PLAINTEXT", mechanism="PLAIN", user=user, password=password)
    properties = JavaProperties(PropertyEntry(key, value, "test") for key, value in login.java().items())
    with Admin(ClientConfig.from_properties(sandbox.bootstrap_servers, properties)) as admin:
        answer = admin.describe_log_dirs(options=DescribeLogDirsOptions(include_remote_info=True))[BrokerId(1)]
    return None if answer.failure is None else answer.failure.kind


def test_tls_at_the_gateway_before_a_listener_without(sasl: Sandbox, tmp_path: Path) -> None:
    """The broker goes on without a certificate; the gateway's is a PEM file."""
    tls = tmp_path / "tls"
    Authority(tls, "PEM")
    store = {"type": "PEM", "location": str(tls / "broker-key-store")}
    added = {f"listener.name.client.ssl.keystore.{key}": value for key, value in store.items()}
    added["brimline.gateway.security.protocol.map"] = "CLIENT:SASL_SSL"
    with gateway(sasl, tmp_path / "gateway.log", {**NOTHING_IS_FULL, **added}) as fronting:
        login = operator("SASL_SSL", "PLAIN", ca=tls / "ca.pem")
        produce_through_a_fence(sasl, fronting, LIBRDKAFKA_IDEMPOTENT, login)


# --- TLS on both sides


@pytest.fixture(scope="module")
def sasl_ssl() -> Iterator[Sandbox]:
    security = SecuritySpec(protocol="SASL_SSL", mechanisms=("SCRAM-SHA-512",), users=dict((OPERATOR,)))
    with Sandbox(SandboxSpec(volumes=VOLUMES, fronted=True, security=security)) as running:
        yield running


@pytest.mark.parametrize("client", [JAVA_4, KAFKA_PYTHON], ids=str)
def test_tls_ends_at_the_gateway_and_begins_anew(sasl_ssl: Sandbox, tmp_path: Path, client: Client) -> None:
    login = operator("SASL_SSL", "SCRAM-SHA-512", ca=sasl_ssl.ca_pem)
    with gateway(sasl_ssl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting:
        produce_through_a_fence(sasl_ssl, fronting, client, login)


def test_a_renewed_certificate_is_shown_without_a_restart(sasl_ssl: Sandbox, tmp_path: Path) -> None:
    """The broker itself still has the one of before, and the connections that were open go on."""
    login = operator("SASL_SSL", "SCRAM-SHA-512", ca=sasl_ssl.ca_pem)
    properties = login.in_words_of(KAFKA_PYTHON)
    create_topic(sasl_ssl, "renewed")
    with gateway(sasl_ssl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting:
        before = served_certificate(sasl_ssl)
        servers = sasl_ssl.bootstrap_servers
        with producing(KAFKA_PYTHON, servers, "renewed", rate=50, name="old", properties=properties) as old:
            old.wait_for_acks(10)
            sasl_ssl.renew_broker_certificate()
            eventually(lambda: served_certificate(sasl_ssl) != before)
            with producing(KAFKA_PYTHON, servers, "renewed", rate=50, name="new", properties=properties) as new:
                new.wait_for_acks(10)
            old.wait_for_acks(10)
        said = [line for line in fronting.said() if line["event"] == "certificate"]

    assert old.failures == new.failures == []
    assert [line["level"] for line in said] == ["info"]
    for load in (old, new):
        verify_read_back(sasl_ssl, load)


# --- TLS without SASL, and client certificates beside it


@pytest.fixture(scope="module")
def ssl() -> Iterator[Sandbox]:
    """A listener MTLS beside the client listener, with the same key, that asks for the client's certificate."""
    security = SecuritySpec(protocol="SSL", key_store="JKS")
    with Sandbox(SandboxSpec(volumes=VOLUMES, fronted=True, security=security)) as running:
        broker = running.broker(1)
        (port,) = running.reserve_ports(1)
        own = "listener.name.client.ssl."
        same = {key.replace(own, OF_MTLS): value for key, value in broker.properties.items() if key.startswith(own)}
        added = {
            "listeners": f"MTLS://127.0.0.1:{port}",
            "advertised.listeners": f"MTLS://127.0.0.1:{port}",
            "listener.security.protocol.map": "MTLS:SSL",
        }
        broker.alter_properties({key: f"{broker.properties[key]},{value}" for key, value in added.items()})
        broker.alter_properties({**same, OF_MTLS + "client.auth": "required"})
        broker.restart()
        yield running


OF_MTLS = "listener.name.mtls.ssl."


def mtls_address(sandbox: Sandbox) -> str:
    return sandbox.broker(1).properties["listeners"].rpartition("MTLS://")[2]


def test_tls_alone_with_a_java_key_store(ssl: Sandbox, tmp_path: Path) -> None:
    with gateway(ssl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting:
        produce_through_a_fence(ssl, fronting, JAVA_4, Login(protocol="SSL", ca=ssl.ca_pem))


def test_the_doctor_knows_a_real_broker_by_the_certificate_in_its_key_store(ssl: Sandbox) -> None:
    found = doctor(ssl)

    assert "CLIENT: clients see the broker's own certificate" in found
    assert "CLIENT: the broker shows the certificate in its key store" in found


def test_a_listener_with_client_certificates_is_left_alone(ssl: Sandbox, tmp_path: Path) -> None:
    """Its clients reach the broker as before, and no fence reaches them."""
    create_topic(ssl, "certified")
    with gateway(ssl, tmp_path / "gateway.log", NOTHING_IS_FULL) as fronting:
        assert [listener["name"] for listener in fronting.state()["listeners"]] == ["CLIENT"]
        assert fronting.ask("fence", topic="certified", **WHY)["ok"]
        with certified_producer(ssl, ssl.client_pem) as producer:
            producer.send("certified", b"past the gateway", partition=0).get(timeout=PATIENCE_SECONDS)
        with pytest.raises(KafkaError), certified_producer(ssl, None, patience_seconds=2):
            pass
        assert fronting.ask("unfence", topic="certified", **WHY)["ok"]

    assert [stored.value for stored in read_back(ssl, "certified", 0)] == ["past the gateway"]


def certified_producer(
    sandbox: Sandbox, certificate: Path | None, patience_seconds: float = PATIENCE_SECONDS
) -> AbstractContextManager[KafkaProducer]:
    return kafka_producer(
        mtls_address(sandbox),
        security_protocol="SSL",
        ssl_cafile=str(sandbox.ca_pem),
        ssl_certfile=None if certificate is None else str(certificate),
        bootstrap_timeout_ms=patience_seconds * 1000,
    )


def test_a_gateway_that_is_told_to_stand_before_it_says_why_it_will_not(ssl: Sandbox) -> None:
    (port,) = ssl.reserve_ports(1)
    told = {"brimline.gateway.listeners": f"MTLS://127.0.0.1:{port}"}
    config = write_gateway_config(ssl, {**ENFORCING, **told})

    done = brimline_inside(ssl, "gateway", "--config", str(config))

    assert done.returncode == 1
    assert "it asks clients for certificates" in done.stderr

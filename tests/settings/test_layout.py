"""Which listeners the gateway stands in front of: clients' alone, and only where they are sent to it."""

import re
from pathlib import Path

import pytest

from brimline.observe.client.config import SecurityProtocol
from brimline.settings.layout import Address, Bypass, FrontedListener, GatewayLayout
from tests.guard.files import config, problems

FRONTED = """\
node.id=7
process.roles=broker
log.dirs=/data/a
listeners=CLIENT://127.0.0.1:19092,ADMIN://127.0.0.1:9093
advertised.listeners=CLIENT://broker7.example.org:9092,ADMIN://127.0.0.1:9093
listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,ADMIN:PLAINTEXT,OTHER:PLAINTEXT
inter.broker.listener.name=ADMIN
"""
FIRST_LINE = FRONTED.count("\n") + 1


def layout(added: str = "", broker: str = FRONTED) -> GatewayLayout:
    return config(added, broker).layout


def fronted(added: str = "", broker: str = FRONTED) -> FrontedListener:
    (listener,) = layout(added, broker).fronted
    return listener


def why_past(name: str, added: str = "", broker: str = FRONTED) -> Bypass:
    (why,) = (bypassed.why for bypassed in layout(added, broker).bypassed if bypassed.name == name)
    return why


def test_a_client_listener_that_advertises_another_port_is_fronted() -> None:
    listener = fronted()

    assert listener.name == "CLIENT"
    assert listener.bind == Address(host="", port=9092)
    assert listener.upstream == Address(host="127.0.0.1", port=19092)
    assert (listener.has_client_tls, listener.has_broker_tls) == (False, False)
    assert not listener.sends_clients_past


def test_the_readmes_example_puts_clients_behind_the_gateway() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (example,) = re.findall(r"^```properties\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    read = config(example, "node.id=1\nprocess.roles=broker\nlog.dirs=/data/a\n")

    assert (read.is_enforcing, read.warnings, read.layout.problems) == (True, (), ())
    (listener,) = read.layout.fronted
    assert (listener.name, str(listener.bind), str(listener.upstream)) == ("CLIENT", "*:9092", "127.0.0.1:19092")


def test_one_that_advertises_the_port_it_is_bound_to_is_not() -> None:
    broker = FRONTED.replace("127.0.0.1:19092", "0.0.0.0:9092")

    assert layout(broker=broker).fronted == ()
    assert why_past("CLIENT", broker=broker) is Bypass.ADVERTISES_ITSELF


@pytest.mark.parametrize(
    ("advertised", "bind"),
    [
        ("127.0.0.1:9092", "127.0.0.1:9092"),
        ("127.0.0.2:9092", "127.0.0.2:9092"),
        ("localhost:9092", "127.0.0.1:9092"),
        ("[::1]:9092", "[::1]:9092"),
        ("10.0.0.7:9092", "*:9092"),
        ("[2001:db8::7]:9092", "*:9092"),
    ],
)
def test_the_gateway_listens_everywhere_unless_a_loopback_address_is_advertised(advertised: str, bind: str) -> None:
    assert str(fronted(broker=FRONTED.replace("broker7.example.org:9092", advertised)).bind) == bind


@pytest.mark.parametrize(
    ("bound", "upstream"),
    [
        ("0.0.0.0:19092", "127.0.0.1:19092"),
        (":19092", "127.0.0.1:19092"),
        ("localhost:19092", "127.0.0.1:19092"),
        ("[::]:19092", "[::1]:19092"),
        ("10.9.0.7:19092", "10.9.0.7:19092"),
        ("private.example.org:19092", "private.example.org:19092"),
    ],
)
def test_the_broker_is_reached_where_it_is_bound(bound: str, upstream: str) -> None:
    assert str(fronted(broker=FRONTED.replace("127.0.0.1:19092", bound)).upstream) == upstream


def test_what_the_cure_needs_goes_past() -> None:
    broker = FRONTED.replace(
        "listeners=CLIENT", "listeners=RLMM://127.0.0.1:1,GUARD://127.0.0.1:2,CTRL://127.0.0.1:3,CLIENT", 1
    ).replace("advertised.listeners=", "advertised.listeners=RLMM://b:11,GUARD://b:12,")
    added = (
        "controller.listener.names=CTRL\nremote.log.storage.system.enable=true\nbrimline.admin.listener=guard\n"
        "remote.log.metadata.manager.listener.name=rlmm\nbrimline.admin.security.protocol=PLAINTEXT\n"
    )
    broker = broker.replace("OTHER:", "RLMM:PLAINTEXT,GUARD:PLAINTEXT,CTRL:PLAINTEXT,OTHER:")

    found = layout(added, broker)

    assert [listener.name for listener in found.fronted] == ["CLIENT"]
    assert {bypassed.name: bypassed.why for bypassed in found.bypassed} == {
        "RLMM": Bypass.REMOTE_LOG_METADATA,
        "GUARD": Bypass.ADMIN,
        "CTRL": Bypass.CONTROLLER,
        "ADMIN": Bypass.INTER_BROKER,
    }
    assert not any(bypassed.why.is_for_clients for bypassed in found.bypassed)


def test_a_listener_that_the_brokers_share_with_clients_goes_past() -> None:
    broker = "node.id=1\nlisteners=PLAINTEXT://127.0.0.1:19092\nadvertised.listeners=PLAINTEXT://b:9092\n"

    assert why_past("PLAINTEXT", broker=broker) is Bypass.INTER_BROKER


def test_the_controllers_orders_are_never_fronted() -> None:
    """Of a cluster with ZooKeeper: a listener of its own, which is advertised like the others."""
    broker = FRONTED.replace("OTHER:", "CONTROL:PLAINTEXT,OTHER:").replace(
        "listeners=CLIENT", "control.plane.listener.name=CONTROL\nlisteners=CONTROL://127.0.0.1:19095,CLIENT", 1
    )

    assert why_past("CONTROL", broker=broker) is Bypass.CONTROL_PLANE


def test_the_listener_of_the_brokers_is_fronted_only_if_it_is_named() -> None:
    broker = FRONTED.replace("ADMIN://127.0.0.1:9093\nlistener", "ADMIN://broker7.example.org:9193\nlistener")
    assert why_past("ADMIN", broker=broker) is Bypass.INTER_BROKER

    with_another = broker.replace("OTHER:", "GUARD:PLAINTEXT,OTHER:").replace(
        "listeners=CLIENT", "listeners=GUARD://127.0.0.1:9094,CLIENT"
    )
    named = "brimline.gateway.listeners=CLIENT://:9092,ADMIN://:9193\nbrimline.admin.listener=GUARD\n"
    found = layout(named, with_another)

    assert {each.name: each.carries_replication for each in found.fronted} == {"CLIENT": False, "ADMIN": True}
    assert found.problems == ()


@pytest.mark.parametrize("auth", ["required", "requested"])
def test_a_tls_listener_that_asks_for_certificates_is_left_to_the_broker(auth: str) -> None:
    broker = FRONTED.replace("SASL_PLAINTEXT", "SSL")

    assert why_past("CLIENT", f"ssl.client.auth={auth}\n", broker) is Bypass.CLIENT_CERTIFICATES
    assert why_past("CLIENT", f"listener.name.client.ssl.client.auth={auth}\n", broker) is Bypass.CLIENT_CERTIFICATES
    assert fronted(f"ssl.client.auth={auth}\nlistener.name.client.ssl.client.auth=none\n", broker).has_client_tls


def test_with_sasl_only_the_listeners_own_wish_for_certificates_counts() -> None:
    broker = FRONTED.replace("SASL_PLAINTEXT", "SASL_SSL")

    assert fronted("ssl.client.auth=required\n", broker).has_client_tls
    assert why_past("CLIENT", "listener.name.client.ssl.client.auth=required\n", broker) is Bypass.CLIENT_CERTIFICATES


def test_certificates_are_of_no_concern_without_tls() -> None:
    assert fronted("ssl.client.auth=required\n", FRONTED.replace("SASL_PLAINTEXT", "PLAINTEXT")).name == "CLIENT"


def test_tls_for_clients_in_front_of_a_plain_broker() -> None:
    listener = fronted("brimline.gateway.security.protocol.map=client:SASL_SSL\n")

    assert (listener.client_protocol, listener.broker_protocol) == (
        SecurityProtocol.SASL_SSL,
        SecurityProtocol.SASL_PLAINTEXT,
    )
    assert (listener.has_client_tls, listener.has_broker_tls) == (True, False)


def test_the_explicit_address_wins_and_names_all_there_are() -> None:
    broker = FRONTED.replace("listeners=CLIENT", "listeners=OTHER://127.0.0.1:19095,CLIENT", 1).replace(
        "advertised.listeners=", "advertised.listeners=OTHER://b:9095,"
    )

    found = layout("brimline.gateway.listeners=client://10.0.0.7:9192\n", broker)

    assert [str(listener.bind) for listener in found.fronted] == ["10.0.0.7:9192"]
    assert {bypassed.name: bypassed.why for bypassed in found.bypassed}["OTHER"] is Bypass.NOT_NAMED


def test_one_port_on_two_addresses_needs_the_explicit_key() -> None:
    """The gateway on the public address, the broker on the loopback address."""
    broker = FRONTED.replace("127.0.0.1:19092", "127.0.0.1:9092")

    listener = fronted("brimline.gateway.listeners=CLIENT://10.0.0.7:9092\n", broker)

    assert (str(listener.bind), str(listener.upstream)) == ("10.0.0.7:9092", "127.0.0.1:9092")
    assert not listener.sends_clients_past
    assert layout("brimline.gateway.listeners=CLIENT://10.0.0.7:9092\n", broker).problems == ()


def test_a_broker_that_advertises_itself_sends_clients_past_an_explicit_gateway() -> None:
    broker = FRONTED.replace("127.0.0.1:19092", "0.0.0.0:9092")

    assert fronted("brimline.gateway.listeners=CLIENT://:9192\n", broker).sends_clients_past


@pytest.mark.parametrize(
    ("bound", "added"),
    [
        ("127.0.0.1:9092", "brimline.gateway.listeners=CLIENT://:9092\n"),
        ("0.0.0.0:9092", "brimline.gateway.listeners=CLIENT://10.0.0.7:9092\n"),
        ("127.0.0.1:9092", "brimline.gateway.listeners=CLIENT://localhost:9092\n"),
        ("127.0.0.1:19092", "brimline.gateway.listeners=CLIENT://:9093\n"),
    ],
    ids=["everywhere", "broker everywhere", "same address", "port of another listener"],
)
def test_a_port_that_the_broker_has_is_a_problem(bound: str, added: str) -> None:
    (problem,) = layout(added, FRONTED.replace("127.0.0.1:19092", bound)).problems

    assert problem.startswith("the gateway cannot listen on ")
    assert "the broker's own listener" in problem


def test_two_listeners_on_one_port_are_a_problem() -> None:
    broker = FRONTED.replace("listeners=CLIENT", "listeners=OTHER://127.0.0.1:19095,CLIENT", 1).replace(
        "advertised.listeners=", "advertised.listeners=OTHER://b:9092,"
    )

    (problem,) = layout(broker=broker).problems

    assert "the gateway's listener OTHER uses" in problem


def test_a_port_that_is_chosen_at_the_start_cannot_be_fronted() -> None:
    assert why_past("CLIENT", broker=FRONTED.replace(":19092", ":0")) is Bypass.UNKNOWN_PORT


def test_a_listener_without_a_protocol_cannot_be_fronted() -> None:
    assert why_past("CLIENT", broker=FRONTED.replace("CLIENT:SASL_PLAINTEXT,", "")) is Bypass.UNKNOWN_PROTOCOL


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("brimline.gateway.listeners=9092", "is not NAME://host:port"),
        ("brimline.gateway.listeners=CLIENT://:0", "with a port from 1 to 65535"),
        ("brimline.gateway.listeners=CLIENT://:65536", "with a port from 1 to 65535"),
        ("brimline.gateway.listeners=CLIENT://:1,client://:2", "names CLIENT twice"),
        ("brimline.gateway.listeners=KLIENT://:9092", "no listener KLIENT; it has CLIENT, ADMIN"),
        ("brimline.gateway.listeners=ADMIN://:9193", "set another one with brimline.admin.listener"),
        ("brimline.gateway.security.protocol.map=CLIENT=SASL_SSL", "is not NAME:PROTOCOL"),
        ("brimline.gateway.security.protocol.map=CLIENT:TLS", "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("brimline.gateway.security.protocol.map=OTHER:SSL", "no listener OTHER"),
        ("brimline.gateway.security.protocol.map=CLIENT:SSL", "add or remove TLS, but not SASL"),
    ],
)
def test_a_mistake_in_our_own_keys_is_named_with_its_line(line: str, why: str) -> None:
    (problem,) = problems(line, FRONTED)

    assert problem.startswith(f"server.properties line {FIRST_LINE}: {line.split('=')[0]}")
    assert why in problem


DIRECT = """\
node.id=7
process.roles=broker
log.dirs=/data/a
listeners=PLAINTEXT://0.0.0.0:9092
advertised.listeners=PLAINTEXT://broker7.example.org:9092
"""
INTERCEPTED = "brimline.gateway.interception=tproxy\n"


def test_with_interception_clients_keep_their_listener_and_nothing_is_advertised_anew() -> None:
    listener = fronted(INTERCEPTED)

    assert (listener.name, listener.is_intercepted, str(listener.upstream)) == ("CLIENT", True, "127.0.0.1:19092")
    assert not listener.sends_clients_past
    assert why_past("ADMIN", INTERCEPTED) is Bypass.INTER_BROKER


def test_the_only_listener_of_a_broker_is_intercepted_too() -> None:
    assert layout(broker=DIRECT).fronted == ()
    listener = fronted(INTERCEPTED, broker=DIRECT)

    assert (listener.name, listener.upstream.port, listener.carries_replication) == ("PLAINTEXT", 9092, False)


def test_listeners_of_the_gateway_have_no_meaning_with_interception() -> None:
    (problem,) = problems(f"{INTERCEPTED}brimline.gateway.listeners=CLIENT://:9092\n", FRONTED)

    assert "no effect with brimline.gateway.interception=tproxy" in problem


def test_a_brokers_own_fetches_are_left_out_where_they_can_be_read() -> None:
    enforcing = f"{INTERCEPTED}brimline.enforcement=gateway\n"
    assert config(enforcing, FRONTED).skips_own_fetches
    assert config(enforcing, DIRECT).skips_own_fetches
    assert not config(f"{enforcing}brimline.follower.action=fence\n", FRONTED).skips_own_fetches
    for added, broker, why in (
        ("", FRONTED, "brimline.gateway.interception is off"),
        (INTERCEPTED, FRONTED, "brimline.enforcement is observe"),
        (enforcing, FRONTED.replace("ADMIN:PLAINTEXT", "ADMIN:SSL"), "the brokers use TLS among themselves (ADMIN)"),
        (
            f"{enforcing}brimline.admin.listener=CLIENT\n",
            FRONTED.replace("SASL_", ""),
            "does not use the brokers' own listener",
        ),
    ):
        assert why in str(config(added, broker).why_no_own_skips)

"""What the doctor says about a gateway: what goes through, what goes past, and what the broker sees differently."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from brimline.decide.disk_state import Breach, DiskState
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Weight
from brimline.guard.explain import explain_config, explain_disks
from brimline.guard.feature import Finding
from brimline.guard.gateway_link.findings import explain_addresses, explain_layout
from brimline.model import Bytes, Failure, FailureKind
from brimline.observe.cluster.address_rules import AddressRules
from brimline.observe.volumes import VolumeReading
from brimline.settings.config import GuardConfig
from tests.guard.files import config
from tests.settings.test_layout import FRONTED

ENFORCING = "brimline.enforcement=gateway\n"
DIRECT = FRONTED.replace("127.0.0.1:19092", "0.0.0.0:9092")
NOT_ASKED = AddressRules(acls_by_host={}, quotas_by_address={}, limits={})


def said(findings: Iterable[Finding], *words: str) -> Weight:
    """The weight of the one finding that has these words."""
    (found,) = (finding for finding in findings if all(word in finding.sentence for word in words))
    return found.weight


def layout(added: str = "", broker: str = FRONTED) -> list[Finding]:
    return list(explain_layout(config(added, broker)))


def addresses(added: str = "", asked: AddressRules | None = NOT_ASKED, seen: str = "127.0.92.1") -> list[Finding]:
    return list(explain_addresses(config(added, FRONTED), asked, [seen]))


def test_the_mode_and_the_error_are_named() -> None:
    observing = list(explain_config(config()))
    enforcing = list(explain_config(config(f"{ENFORCING}brimline.reject.error=44\n")))

    assert said(observing, "observe mode", "refuses nothing") is Weight.NOTE
    assert said(enforcing, "enforcing", "error 44 POLICY_VIOLATION") is Weight.FINE


def test_that_replication_depends_on_the_gateway_is_named() -> None:
    replicating = FRONTED.replace("inter.broker.listener.name=ADMIN", "inter.broker.listener.name=CLIENT")
    through = f"{ENFORCING}brimline.gateway.listeners=CLIENT://:9092\nbrimline.admin.listener=ADMIN\n"

    assert said(layout(through, replicating), "while it is down the ISR shrinks") is Weight.NOTE
    assert not any("the ISR shrinks" in each.sentence for each in layout(ENFORCING))


def full_volume(config: GuardConfig) -> DiskReport:
    reading = VolumeReading(
        device="8:1",
        log_dirs=("/data/a",),
        total_bytes=Bytes(100 << 30),
        usable_bytes=Bytes(1 << 20),
        reserved_bytes=Bytes(0),
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=0.0,
    )
    volume = VolumeStatus(
        reading=reading,
        fullness=DiskState.FULL,
        breaches=(Breach.MIN_FREE_BYTES,),
        bytes_to_limit=Bytes(0),
        fill_rate=None,
        seconds_left=None,
        next_look=60.0,
    )
    return DiskReport(volumes=(volume,), limits=config.limits)


def test_what_a_full_disk_means() -> None:
    observing, enforcing = config(), config(ENFORCING)

    would = list(explain_disks(observing, full_volume(observing), {}))
    does = list(explain_disks(enforcing, full_volume(enforcing), {}))

    assert said(would, "would refuse writes", "observe mode", "/data/a") is Weight.NOTE
    assert said(does, "are refused", "/data/a") is Weight.NOTE


def test_what_goes_through_and_what_goes_past() -> None:
    findings = layout()

    assert said(findings, "CLIENT: the gateway listens on *:9092 (SASL_PLAINTEXT)", "127.0.0.1:19092") is Weight.FINE
    assert said(findings, "ADMIN bypasses the gateway: used by the brokers for replication") is Weight.FINE
    assert len(findings) == 2


def test_without_a_gateway_there_is_one_hint_and_no_more() -> None:
    (finding,) = layout(broker=DIRECT)

    assert finding.weight is Weight.NOTE
    assert "advertised.listeners=CLIENT://HOST:9092" in finding.sentence


def test_enforcing_with_nothing_fronted_is_a_problem() -> None:
    assert said(layout(ENFORCING, DIRECT), "no listener goes through the gateway", "tproxy") is Weight.PROBLEM


def test_interception_is_not_advised_where_every_client_shows_a_certificate() -> None:
    only = DIRECT.replace("PLAINTEXT", "SSL", 1) + "\nlistener.name.client.ssl.client.auth=required\n"

    assert all("tproxy" not in each.sentence for each in layout(ENFORCING, only))
    intercepting = layout(ENFORCING + "brimline.gateway.interception=tproxy\n", only)
    assert said(intercepting, "no listener can be intercepted") is Weight.PROBLEM


@pytest.mark.parametrize(("mode", "weight"), [("", Weight.NOTE), (ENFORCING, Weight.WARNING)])
def test_a_client_listener_that_is_not_fenced_is_named(mode: str, weight: Weight) -> None:
    broker = FRONTED.replace("listeners=CLIENT", "listeners=OTHER://:9095,CLIENT", 1).replace(
        "advertised.listeners=", "advertised.listeners=OTHER://b:9095,"
    )

    assert said(layout(mode, broker), "OTHER bypasses the gateway", "never refused") is weight


def test_certificates_of_clients_are_explained_and_so_is_a_port_where_nobody_listens() -> None:
    findings = layout(
        "listener.name.client.ssl.client.auth=required\n" + ENFORCING, FRONTED.replace("PLAINTEXT", "SSL", 1)
    )

    assert (
        said(findings, "CLIENT bypasses the gateway", "asks clients for certificates", "never refused")
        is Weight.WARNING
    )
    assert said(findings, "CLIENT: clients are sent to port 9092", "bound to 19092") is Weight.WARNING


@pytest.mark.parametrize(
    ("bound", "weight"),
    [("0.0.0.0", Weight.WARNING), ("", Weight.WARNING), ("8.8.8.8", Weight.WARNING), ("10.0.0.7", Weight.NOTE)],
)
def test_a_broker_that_clients_can_reach_past_the_gateway(bound: str, weight: Weight) -> None:
    broker = FRONTED.replace("127.0.0.1:19092", f"{bound}:19092")

    assert said(layout(broker=broker), "own port 19092", "bypasses the gateway") is weight


def test_a_broker_that_advertises_itself() -> None:
    explicit = "brimline.gateway.listeners=CLIENT://:9192\n"

    assert said(layout(explicit, DIRECT), "where the broker answers") is Weight.WARNING
    assert said(layout(ENFORCING + explicit, DIRECT), "where the broker answers") is Weight.PROBLEM


def test_a_port_that_is_translated_on_the_way() -> None:
    findings = layout("brimline.gateway.listeners=CLIENT://:9192\n")

    assert (
        said(findings, "clients are sent to broker7.example.org:9092", "leads to the gateway's *:9192") is Weight.NOTE
    )


def test_a_port_that_is_taken_twice() -> None:
    assert said(layout("brimline.gateway.listeners=CLIENT://:9093\n"), "cannot listen on *:9093") is Weight.PROBLEM


def test_limits_that_are_off_leave_nothing_to_refuse() -> None:
    off = "disk.max.used.percent=100\ndisk.min.free.bytes=0\n"

    assert said(layout(ENFORCING + off), "both limits are off") is Weight.WARNING


def test_the_broker_sees_the_gateways_address() -> None:
    (finding,) = addresses()

    assert "sees the gateway's address" in finding.sentence


def test_nothing_changes_where_nothing_is_fronted() -> None:
    assert list(explain_addresses(config("max.connections.per.ip=1\n", DIRECT), NOT_ASKED)) == []


def test_connections_per_address_count_all_clients_as_one() -> None:
    assert said(addresses("max.connections.per.ip=100\n"), "takes 100 connections", "10000") is Weight.WARNING


def test_an_exception_for_the_gateway_is_enough() -> None:
    added = "max.connections.per.ip=100\nmax.connections.per.ip.overrides=127.0.92.1:10000\n"

    assert said(addresses(added), "are enforced by the gateway") is Weight.NOTE


def test_what_the_broker_says_now_wins_over_its_file() -> None:
    now = AddressRules(
        acls_by_host={},
        quotas_by_address={},
        limits={"max.connections.per.ip": "50", "max.connection.creation.rate": "7"},
    )

    findings = addresses("max.connections.per.ip=100000\n", now)

    assert said(findings, "takes 50 connections") is Weight.WARNING
    assert said(findings, "max.connection.creation.rate=7") is Weight.NOTE


def test_the_file_counts_when_the_broker_does_not_answer() -> None:
    silent = Failure(kind=FailureKind.NOT_AUTHORIZED, message="no")
    refused = AddressRules(acls_by_host=silent, quotas_by_address=silent, limits=silent)

    for asked in (None, refused):
        assert said(addresses("max.connections.per.ip=100\n", asked), "takes 100 connections") is Weight.WARNING


def test_a_rate_of_connections_and_a_class_that_names_clients() -> None:
    findings = addresses(
        "listener.name.client.max.connection.creation.rate=9\nprincipal.builder.class=com.example.Names\n"
    )

    assert said(findings, "listener.name.client.max.connection.creation.rate=9") is Weight.NOTE
    assert said(findings, "principal.builder.class=com.example.Names") is Weight.WARNING


def test_acls_and_quotas_by_address_are_counted_and_some_are_named() -> None:
    rules = AddressRules(
        acls_by_host={"10.0.0.1": 2, "10.0.0.2": 1, "10.0.0.3": 1, "10.0.0.4": 1},
        quotas_by_address={"10.0.0.9": 5.0},
        limits={},
    )

    findings = addresses(asked=rules)

    assert said(findings, "5 ACLs for hosts (10.0.0.1, 10.0.0.2, 10.0.0.3, …)") is Weight.WARNING
    assert said(findings, "1 quota of addresses (10.0.0.9)") is Weight.WARNING


@pytest.mark.parametrize("seen", ["127.0.0.1", "::1"])
def test_acls_for_the_address_that_the_gateway_comes_from_are_a_problem(seen: str) -> None:
    """They count for everybody. Java writes IPv6 addresses in full."""
    hosts = {"127.0.0.1": 2, "0:0:0:0:0:0:0:1": 2, "10.0.0.1": 1}
    rules = AddressRules(acls_by_host=hosts, quotas_by_address={}, limits={})

    findings = addresses(asked=rules, seen=seen)

    assert said(findings, "2 ACLs for ", "which the gateway connects from") is Weight.PROBLEM
    assert said(findings, "3 ACLs for hosts (") is Weight.WARNING


def test_what_we_may_not_ask_is_said() -> None:
    no = Failure(kind=FailureKind.NOT_AUTHORIZED, message="CLUSTER_AUTHORIZATION_FAILED")
    findings = addresses(asked=AddressRules(acls_by_host=no, quotas_by_address=no, limits={}))

    assert said(findings, "host-based ACLs", "unknown", "needs Describe") is Weight.NOTE
    assert said(findings, "quotas of addresses", "unknown") is Weight.NOTE

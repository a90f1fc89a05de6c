"""From which address a gateway connects: one that no rule of a broker means, where there is one."""

import socket

import pytest

from brimline.gateway.net.source import OWN_ADDRESS, SourceAddress, seen_address, source_for
from brimline.model import BadInput
from brimline.settings.gateway import ANY, OWN
from brimline.settings.layout import Address
from tests.guard.files import config, problems

V4, V6 = socket.AF_INET, socket.AF_INET6
NOT_OURS = "192.0.2.7"


@pytest.mark.parametrize(
    ("wish", "family", "upstream", "source"),
    [
        (OWN, V4, "127.0.0.1", OWN_ADDRESS),
        (OWN, V4, "127.1.2.3", OWN_ADDRESS),
        (OWN, V4, "10.0.0.5", None),
        (OWN, V6, "::1", None),
        (ANY, V4, "127.0.0.1", None),
        ("127.7.7.7", V4, "127.0.0.1", "127.7.7.7"),
        ("127.7.7.7", V6, "::1", None),
    ],
)
def test_which_address(wish: str, family: socket.AddressFamily, upstream: str, source: str | None) -> None:
    assert source_for(wish, family, upstream) == SourceAddress(address=source)


def test_where_there_is_no_second_loopback_address_the_gateway_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brimline.gateway.net.source.OWN_ADDRESS", NOT_OURS)

    source = source_for(OWN, V4, "127.0.0.1")

    assert source.address is None
    assert f"cannot connect from {NOT_OURS}" in (source.complaint or "")


def test_an_address_that_was_named_and_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match=f"source.address={NOT_OURS}: the gateway cannot connect from {NOT_OURS}"):
        source_for(NOT_OURS, V4, "127.0.0.1")


def test_what_the_broker_sees() -> None:
    broker = Address(host="127.0.0.1", port=9)

    assert seen_address(OWN, broker) == OWN_ADDRESS
    assert seen_address(ANY, broker) == "127.0.0.1"
    assert seen_address(OWN, Address(host="no.such.host.invalid", port=9)) is None


def test_what_is_no_address_is_refused_with_the_file() -> None:
    (problem,) = problems("brimline.gateway.source.address=localhost")

    assert "brimline.gateway.source.address=localhost" in problem
    config("brimline.gateway.source.address=10.0.0.1\n")

"""What the broker decides by address goes to the gateway; what it does not tell stays as it was."""

from typing import Any

import pytest

from brimline.documents.codec import to_json
from brimline.documents.orders import AddressLimitsOrder
from brimline.gateway.net.addresses import limits_in_file
from brimline.guard.gateway_link.address_limits import _INTERVAL, _SOONER, AddressTask
from brimline.model import BadInput, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.address_rules import ConnectionRules
from brimline.observe.properties.connection_limits import ConnectionLimits

REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="not for you")
LIMITS = {"max.connections.per.ip": "100", "max.connections.per.ip.overrides": "10.0.0.5:1000,localhost:7"}
NO_LIMITS = {"max.connections.per.ip": "2147483647", "max.connections.per.ip.overrides": ""}
QUOTAS = {"(default)": 5.0, "10.0.0.7": 9.0}


def told(rules: ConnectionRules) -> dict[str, Any]:
    heard: dict[str, Any] = {}

    def tell(said: AddressLimitsOrder) -> None:
        heard.update(to_json(said))

    assert AddressTask(lambda: rules, tell).step() == _INTERVAL
    return heard


def test_limits_and_quotas() -> None:
    said = told(ConnectionRules(limits=LIMITS, quotas_by_address=QUOTAS))
    assert said["connections"] == 100
    assert said["connectionsOf"]["10.0.0.5"] == 1000
    assert said["connectionsOf"]["127.0.0.1"] == 7
    assert (said["perSecond"], said["perSecondOf"]) == (5.0, {"10.0.0.7": 9.0})


def test_no_limits_are_said_too() -> None:
    said = told(ConnectionRules(limits=NO_LIMITS, quotas_by_address={}))
    assert said == {"connections": None, "connectionsOf": {}, "perSecond": None, "perSecondOf": {}}


def test_what_is_not_known_is_not_said() -> None:
    assert told(ConnectionRules(limits=REFUSED, quotas_by_address={})) == {"perSecond": None, "perSecondOf": {}}
    assert told(ConnectionRules(limits=NO_LIMITS, quotas_by_address=REFUSED)) == {
        "connections": None,
        "connectionsOf": {},
    }
    assert told(ConnectionRules(limits=REFUSED, quotas_by_address=REFUSED)) == {}


@pytest.mark.parametrize("error", [ObservationFailed(REFUSED), BadInput("an older gateway does not know that")])
def test_whoever_does_not_answer_is_asked_again_soon(error: Exception) -> None:
    def fail(_said: AddressLimitsOrder) -> None:
        raise error

    assert AddressTask(lambda: ConnectionRules(limits=LIMITS, quotas_by_address={}), fail).step() == _SOONER


def test_what_the_file_says() -> None:
    limits = limits_in_file(ConnectionLimits(per_ip=10, per_ip_overrides="127.0.0.1:200, no.such.host.invalid:5"))
    assert (limits.connections, limits.connections_of) == (10, {"127.0.0.1": 200})
    assert limits_in_file(ConnectionLimits()).connections is None

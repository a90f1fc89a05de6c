"""The JVM's command line: closed by default, standard properties passed through, no secret in ``ps``."""

from pathlib import Path

import pytest

from brimline.metrics.jmx_settings import JmxSettings
from brimline.model import BadInput

AUTHENTICATE = "com.sun.management.jmxremote.authenticate"


def test_by_default_it_listens_on_the_loopback_address_alone() -> None:
    assert JmxSettings(port=9999).system_properties() == {
        "com.sun.management.jmxremote.port": "9999",
        "com.sun.management.jmxremote.rmi.port": "9999",
        "com.sun.management.jmxremote.host": "127.0.0.1",
        "java.rmi.server.hostname": "127.0.0.1",
        "com.sun.management.jmxremote.authenticate": "false",
        "com.sun.management.jmxremote.ssl": "false",
    }


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "broker-1.example", "::"])
def test_an_open_port_must_be_asked_for(host: str) -> None:
    with pytest.raises(BadInput, match=f"{host} would be open to the network: set {AUTHENTICATE}"):
        JmxSettings(port=9999, host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_loopback_addresses_need_no_password(host: str) -> None:
    assert JmxSettings(port=9999, host=host).system_properties()[AUTHENTICATE] == "false"


def test_who_says_how_to_authenticate_may_open_it() -> None:
    settings = JmxSettings(port=9999, host="0.0.0.0", properties={AUTHENTICATE: "true"})

    assert settings.system_properties()[AUTHENTICATE] == "true"
    assert "com.sun.management.jmxremote.ssl" not in settings.system_properties()


def test_the_operators_properties_win() -> None:
    settings = JmxSettings(port=9999, properties={"java.rmi.server.hostname": "broker-1"})

    assert settings.system_properties()["java.rmi.server.hostname"] == "broker-1"


def test_other_properties_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"user\.home is not a property of the JMX agent"):
        JmxSettings(port=9999, properties={"user.home": "/"})


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_an_impossible_port_is_refused(port: int) -> None:
    with pytest.raises(BadInput, match=str(port)):
        JmxSettings(port=port)


def test_arguments_are_quoted_for_an_argument_file() -> None:
    settings = JmxSettings(port=9999, properties={"javax.net.ssl.keyStorePassword": 'a "b" \\c'})

    lines = settings.argument_file(Path("/with space/bridge.jar")).splitlines()

    assert '"-Djavax.net.ssl.keyStorePassword=a \\"b\\" \\\\c"' in lines
    assert lines[-3:] == ['"-cp"', '"/with space/bridge.jar"', '"BrimlineJmx"']


def test_the_operators_jvm_options_come_after_ours() -> None:
    lines = JmxSettings(port=9999, jvm_options=("-Xmx1g",)).argument_file(Path("b.jar")).splitlines()

    assert lines.index('"-Xmx1g"') > lines.index('"-Xmx256m"')

"""What another user of the machine can do by JMX, seen with the JDK's own client against a guard's real agent."""

import subprocess
from pathlib import Path

import pytest

from brimline.documents.notices import Weight
from brimline.guard.explain import explain_config
from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import BridgeStatus, JmxBridge
from brimline.metrics.jmx_settings import JmxLogin, JmxSettings
from brimline.observe.properties.java_properties import parse_properties
from brimline.sandbox.java import QUICK_START, find_java
from brimline.settings.config import read_config
from tests.guard.files import config
from tests.metrics.bridges import serving
from tests.processes import free_port
from tests.waiting import eventually

CLIENT = Path(__file__).parents[1] / "java" / "JmxClient.java"
SECRET = "the-key-stores-password"


def of_a_guard(state_dir: Path, more: str = "") -> JmxSettings:
    """As a guard reads them, with nothing said of logins."""
    text = f"""
node.id=7
log.dirs=/data/a
listeners=PLAINTEXT://127.0.0.1:9092
brimline.state.dir={state_dir}
brimline.jmx.port={free_port()}
brimline.jmx.javax.net.ssl.keyStorePassword={SECRET}
{more}"""
    jmx = read_config(parse_properties(text.encode(), "server.properties"), "server.properties", {}).jmx
    assert jmx is not None
    return jmx


def one_gauge() -> MetricBoard:
    board = MetricBoard()
    board.put(catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(3))
    return board


def attempts(port: int, dump: Path, *login: str) -> dict[str, str]:
    command = [str(find_java()), *QUICK_START, str(CLIENT), str(port), str(dump), *login]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    said: dict[str, str] = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    return said


@pytest.mark.integration
def test_a_stranger_is_refused_and_the_login_may_read_gauges_and_nothing_else(tmp_path: Path) -> None:
    settings, dump = of_a_guard(tmp_path), tmp_path / "heap.hprof"
    with serving(one_gauge(), settings):
        user, password = (tmp_path / "jmx-7.password").read_text().split()
        stranger = attempts(settings.port, dump)
        guessing = attempts(settings.port, dump, user, "guessed")
        known = attempts(settings.port, dump, user, password)

    assert stranger == guessing == {"connect": "SecurityException"}
    assert known == {
        "connect": "yes",
        "gauge": "3",
        "secrets": "InstanceNotFoundException",
        "arguments": "InstanceNotFoundException",
        "properties-command": "SecurityException",
        "write": "SecurityException",
        "load-code": "SecurityException",
        "dump": "SecurityException",
    }
    assert not dump.exists()


@pytest.mark.integration
def test_without_a_place_for_the_password_nothing_is_served(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    settings = of_a_guard(tmp_path / "state")
    bridge = JmxBridge.to_jvm(settings, lambda: ())
    bridge.start()
    try:
        eventually(lambda: bridge.state.status is BridgeStatus.WAITING)
        assert "JMX has no password to ask for, so it is not served" in (bridge.state.complaint or "")
    finally:
        bridge.close()


def test_the_login_is_made_once_and_for_this_user_alone(tmp_path: Path) -> None:
    login = JmxLogin(tmp_path / "state", 7)
    login.make()
    first = login.passwords.read_text()
    login.make()

    assert login.passwords.read_text() == first
    assert len(first.split()[1]) >= 32
    assert login.access.read_text() == "brimline readonly\n"
    assert login.passwords.stat().st_mode & 0o777 == login.access.stat().st_mode & 0o777 == 0o600


def test_a_password_that_others_may_have_read_or_put_there_is_replaced(tmp_path: Path) -> None:
    login = JmxLogin(tmp_path, 7)
    login.passwords.write_text("brimline known\n")
    login.passwords.chmod(0o644)
    theirs = tmp_path / "theirs"
    theirs.write_text("brimline readwrite\n")
    login.access.symlink_to(theirs)
    login.make()

    assert "known" not in login.passwords.read_text()
    assert login.access.read_text() == "brimline readonly\n"
    assert theirs.read_text() == "brimline readwrite\n"


def test_the_doctor_says_how_to_log_in_and_warns_of_an_open_port() -> None:
    closed = list(explain_config(config("brimline.jmx.port=9999\nbrimline.state.dir=/state\n")))
    chosen = "brimline.jmx.port=9999\nbrimline.jmx.com.sun.management.jmxremote.authenticate=false\n"
    opened = [finding for finding in explain_config(config(chosen)) if finding.weight is Weight.WARNING]

    assert any("for the user brimline with the password in /state/jmx-7.password" in each.sentence for each in closed)
    assert all(finding.weight is not Weight.WARNING for finding in closed)
    assert ["asks for no password" in finding.sentence for finding in opened] == [True]


@pytest.mark.parametrize(
    "chosen",
    [
        "brimline.jmx.com.sun.management.jmxremote.password.file=/etc/jmx.password",
        "brimline.jmx.com.sun.management.jmxremote.authenticate=false",
        "brimline.jmx.com.sun.management.jmxremote.login.config=Monitor",
        "brimline.jmx.com.sun.management.config.file=/etc/jmx.properties",
    ],
)
def test_whoever_chooses_a_login_or_none_gets_that(tmp_path: Path, chosen: str) -> None:
    settings = of_a_guard(tmp_path, chosen)

    assert settings.own_login is None
    assert settings.is_open is chosen.endswith("=false")
    assert str(tmp_path) not in str(settings.system_properties())

"""A real JVM: read by a JMX client that nobody here wrote, killed, hung, and orphaned."""

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import BridgeStatus, JmxBridge
from brimline.metrics.jmx_child import JvmChild
from brimline.metrics.jmx_settings import JmxSettings
from brimline.metrics.prometheus import PrometheusRenderer
from tests.metrics.bridges import serving
from tests.metrics.jmx_exporter import GENERAL_RULES, RULES, parse, scrape
from tests.processes import free_port, is_alive
from tests.waiting import eventually

pytestmark = pytest.mark.integration

PARTITIONS = (("my.topic_a-b", "0"), ("orders", "17"))
LOG_DIRS = (("/var/lib/kafka",), ('/with "quotes", comma=equals: colon*star?',), ("/größe",))
AGENT = "com.sun.management.jmxremote"


def board_of_everything() -> MetricBoard:
    board = MetricBoard()
    board.put(
        catalogue.LOG_RETENTION_SIZE.family(PARTITIONS, (0, 102)),
        catalogue.FUTURE_LOG_RETENTION_SIZE.family(PARTITIONS[:1], (40,)),
        catalogue.REMOTE_RETENTION_SIZE.family(PARTITIONS, (67, 5_000_000_000)),
        catalogue.LOCAL_RETENTION_SIZE.family(PARTITIONS, (100, 3)),
        catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(1),
        catalogue.LOG_DIRECTORY_DISK_FULL.family(LOG_DIRS, (0, 1, 0)),
    )
    return board


def pid_of(bridge: JmxBridge) -> int:
    child = bridge._child
    assert isinstance(child, JvmChild)
    return child.pid


def test_jmx_exporter_makes_the_same_series_of_our_beans_as_our_own_text(tmp_path: Path) -> None:
    board = board_of_everything()
    settings = JmxSettings(port=free_port())
    with serving(board, settings):
        found = scrape(settings.port, tmp_path, rules=RULES.read_text() + GENERAL_RULES)

    ours = parse(PrometheusRenderer().render(board.families()).decode())
    quoted = LOG_DIRS[1][0]
    # JMX's escapes inside the quotes stay: the exporter knows nothing of them
    escaped = quoted.replace('"', '\\"').replace("*", "\\*").replace("?", "\\?")
    name = catalogue.LOG_DIRECTORY_DISK_FULL.prometheus
    ours[name, (("logDirectory", escaped),)] = ours.pop((name, (("logDirectory", quoted),)))
    assert {key: value for key, value in found.items() if key[0].startswith(("kafka_", "brimline_"))} == ours
    assert found["jmx_scrape_error", ()] == 0


def test_the_general_rules_alone_show_why_the_catalogue_deviates(tmp_path: Path) -> None:
    settings = JmxSettings(port=free_port())
    with serving(board_of_everything(), settings):
        found = scrape(settings.port, tmp_path, rules=f"rules:\n{GENERAL_RULES}")

    names = {name for name, _ in found if name.startswith("kafka_")}
    assert names == {
        "kafka_log_log_retentionsizeinpercent",
        "kafka_log_log_retentionsizeinpercent_topic_my_topic_a_b",
        "kafka_log_logmanager_diskfulllogdirectorycount",
        "kafka_log_logmanager_logdirectorydiskfull",
    }
    assert ("kafka_log_logmanager_logdirectorydiskfull", (("logDirectory", '"/var/lib/kafka"'),)) in found


def test_beans_follow_the_board(tmp_path: Path) -> None:
    board = board_of_everything()
    settings = JmxSettings(port=free_port())
    with serving(board, settings) as bridge:
        board.put(catalogue.LOG_RETENTION_SIZE.family((("orders", "17"), ("new", "0")), (103, 5)))
        board.remove("remote_retention_size_in_percent", "local_retention_size_in_percent")
        eventually(lambda: bridge.state.beans == 7)
        found = scrape(settings.port, tmp_path, rules=RULES.read_text() + GENERAL_RULES)

    assert {key: value for key, value in found.items() if "retentionsizeinpercent" in key[0]} == {
        ("kafka_log_log_retentionsizeinpercent", (("partition", "17"), ("topic", "orders"))): 103,
        ("kafka_log_log_retentionsizeinpercent", (("partition", "0"), ("topic", "new"))): 5,
    }


def test_a_killed_jvm_comes_back_with_all_its_beans(tmp_path: Path) -> None:
    settings = JmxSettings(port=free_port())
    with serving(board_of_everything(), settings) as bridge:
        beans = bridge.state.beans
        os.kill(pid_of(bridge), signal.SIGKILL)
        eventually(lambda: bridge.state.restarts >= 1 and bridge.state.status is BridgeStatus.SERVING)
        found = scrape(settings.port, tmp_path, rules=RULES.read_text() + GENERAL_RULES)

    assert beans == 11
    assert found["kafka_log_logmanager_diskfulllogdirectorycount", ()] == 1


def test_a_hung_jvm_blocks_nobody_and_is_ended_by_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would end a hung JVM within this test; so whoever waited for it would wait as long."""
    monkeypatch.setattr("brimline.metrics.jmx_child.ANSWER_SECONDS", 3600.0)
    board = board_of_everything()
    bridge = JmxBridge.to_jvm(JmxSettings(port=free_port()), board.families)
    board.on_change = bridge.changed
    bridge.start()
    eventually(lambda: bridge.state.status is BridgeStatus.SERVING)
    pid = pid_of(bridge)
    os.kill(pid, signal.SIGSTOP)

    for number in range(1000):
        board.put(catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(number))
    assert is_alive(pid)
    assert bridge.state.restarts == 0
    bridge.close()

    eventually(lambda: not is_alive(pid))


ORPHAN = """
import signal, sys, time
from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import JmxBridge
from brimline.metrics.jmx_settings import JmxSettings
board = MetricBoard()
board.put(catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(1))
bridge = JmxBridge.to_jvm(JmxSettings(port=int(sys.argv[1])), board.families)
bridge.start()
while not bridge.state.batches:
    time.sleep(0.01)
print(bridge._child.pid, flush=True)
signal.pause()
"""


def test_the_jvm_dies_with_its_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(free_port())], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()

    eventually(lambda: not is_alive(pid))


def test_a_port_that_is_taken_is_named() -> None:
    settings = JmxSettings(port=free_port())
    with serving(board_of_everything(), settings):
        second = JmxBridge.to_jvm(settings, lambda: ())
        second.start()
        # One that is slow to end is said to run still; it is tried again.
        eventually(lambda: "exit code 1" in (second.state.complaint or ""))
        complaint, status = second.state.complaint or "", second.state.status
        second.close()

    assert status is BridgeStatus.WAITING
    assert f"Port already in use: {settings.port}" in complaint


def test_no_secret_is_on_the_command_line() -> None:
    settings = JmxSettings(port=free_port(), properties={"javax.net.ssl.keyStorePassword": "s3cret"})
    with serving(board_of_everything(), settings) as bridge:
        command = Path(f"/proc/{pid_of(bridge)}/cmdline").read_bytes()

    assert b"s3cret" not in command


def test_a_password_is_asked_for_when_the_properties_say_so(tmp_path: Path) -> None:
    passwords, access = tmp_path / "jmx.password", tmp_path / "jmx.access"
    passwords.write_text("monitor s3cret\n")
    access.write_text("monitor readonly\n")
    passwords.chmod(0o600)
    settings = JmxSettings(
        port=free_port(),
        properties={
            f"{AGENT}.authenticate": "true",
            f"{AGENT}.ssl": "false",
            f"{AGENT}.password.file": str(passwords),
            f"{AGENT}.access.file": str(access),
        },
    )
    with serving(board_of_everything(), settings):
        rules = RULES.read_text() + GENERAL_RULES
        stranger = scrape(settings.port, tmp_path, rules=rules)
        known = scrape(settings.port, tmp_path, rules=rules, options={"username": "monitor", "password": "s3cret"})

    assert stranger["jmx_scrape_error", ()] == 1
    assert known["jmx_scrape_error", ()] == 0
    assert known["kafka_log_logmanager_diskfulllogdirectorycount", ()] == 1


def test_tls_by_the_standard_properties(tmp_path: Path) -> None:
    store = tmp_path / "store.p12"
    keytool = ["keytool", "-genkeypair", "-alias", "bridge", "-keyalg", "EC", "-dname", "CN=127.0.0.1"]
    keytool += ["-ext", "SAN=IP:127.0.0.1", "-storetype", "PKCS12", "-storepass", "s3cret", "-keystore", str(store)]
    subprocess.run(keytool, check=True, capture_output=True)
    settings = JmxSettings(
        port=free_port(),
        properties={
            f"{AGENT}.authenticate": "false",
            f"{AGENT}.ssl": "true",
            f"{AGENT}.registry.ssl": "true",
            "javax.net.ssl.keyStore": str(store),
            "javax.net.ssl.keyStorePassword": "s3cret",
        },
    )
    trust = (f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=s3cret")
    with serving(board_of_everything(), settings):
        rules = RULES.read_text() + GENERAL_RULES
        plain = scrape(settings.port, tmp_path, rules=rules)
        encrypted = scrape(settings.port, tmp_path, rules=rules, options={"ssl": "true"}, system_properties=trust)

    assert plain["jmx_scrape_error", ()] == 1
    assert encrypted["kafka_log_logmanager_diskfulllogdirectorycount", ()] == 1


def test_a_jvm_that_takes_no_updates_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    board = board_of_everything()
    with serving(board, JmxSettings(port=free_port())) as bridge:
        hung = pid_of(bridge)
        os.kill(hung, signal.SIGSTOP)
        numbers = count(3)

        def is_ended_by_updates() -> bool:
            """A stopped JVM may take one more before all its threads have stopped."""
            board.put(catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(next(numbers)))
            return not is_alive(hung)

        with monkeypatch.context() as impatient:
            impatient.setattr("brimline.metrics.jmx_child.ANSWER_SECONDS", 0.5)
            eventually(is_ended_by_updates)
        eventually(lambda: bridge.state.restarts >= 1 and bridge.state.status is BridgeStatus.SERVING)

        assert bridge.state.beans == 11

"""What SIGHUP changes, and what it only names."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.settings import keys
from brimline.settings.reload import reloaded
from tests.guard.files import BROKER, config
from tests.waiting import PATIENCE_SECONDS, eventually


def test_nothing_changed_is_nothing_to_say() -> None:
    assert reloaded(config(), config())[1] == ()


def test_a_limit_takes_effect_at_once() -> None:
    now, (change,) = reloaded(config("disk.max.used.percent=90\n"), config("disk.max.used.percent=80\n"))

    assert now.limits.max_used_percent == 80
    assert str(change) == "disk.max.used.percent: 90 -> 80"


def test_a_port_needs_a_restart_and_keeps_its_old_value() -> None:
    now, (change,) = reloaded(config(), config("brimline.metrics.port=1234\n"))

    assert now.number(keys.METRICS_PORT) == 9827
    assert not change.takes_effect
    assert "restart" in str(change)


def test_the_brokers_own_keys_need_a_restart() -> None:
    now, (change,) = reloaded(config(), config(broker=BROKER.replace("/data/b", "/data/c")))

    assert now.broker.log_dirs == ("/data/a", "/data/b")
    assert "/data/c" in str(change)


def test_credentials_are_named_without_their_value() -> None:
    now, (change,) = reloaded(config(), config("brimline.admin.client.id=other\n"))

    assert change.key == "brimline.admin.*"
    assert not change.takes_effect
    assert now.admin.client_id == "brimline-guard"


@pytest.mark.parametrize("key", [key for key in keys.KEYS if key.kind is keys.KeyKind.TEXT], ids=lambda key: key.name)
def test_no_login_is_said_whatever_key_it_stands_in(key: keys.Key) -> None:
    running = config()
    other = {key.name: replace(running.settings[key.name], value="s3://KEY:MAR/KER@bucket")}

    _, (change,) = reloaded(running, replace(running, settings={**running.settings, **other}))

    assert "bucket" in str(change)
    assert "KEY" not in str(change)
    assert "KER" not in str(change)


def test_a_reload_that_is_asked_for_before_the_start_is_done_after_it(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    properties, log = tmp_path / "server.properties", tmp_path / "log"
    os.mkfifo(properties)
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "brimline.cli", "guard", "--config", str(properties)]
        guard = subprocess.Popen(command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        with properties.open("w") as being_read:  # it waits for the rest of its configuration
            guard.send_signal(signal.SIGHUP)
            properties.unlink()
            properties.write_text(
                f"node.id=1\nlog.dirs={tmp_path / 'logs'}\nlisteners=PLAINTEXT://127.0.0.1:1\n"
                f"brimline.metrics.port=0\nbrimline.state.dir={tmp_path / 'state'}\n"
            )
            being_read.write(properties.read_text())
        eventually(lambda: guard.poll() is not None or " reloaded " in log.read_text())
        assert guard.poll() is None
        assert " started " in log.read_text().partition(" reloaded ")[0]
    finally:
        guard.terminate()
        guard.wait(PATIENCE_SECONDS)

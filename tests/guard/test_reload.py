"""What SIGHUP changes, and what it only names."""

from dataclasses import replace

import pytest

from brimline.guard import keys
from brimline.guard.reload import reloaded
from tests.guard.files import BROKER, config


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


@pytest.mark.parametrize("key", [key for key in keys.KEYS if key.kind is keys.Kind.TEXT], ids=lambda key: key.name)
def test_no_login_is_said_whatever_key_it_stands_in(key: keys.Key) -> None:
    running = config()
    other = {key.name: replace(running.settings[key.name], value="s3://KEY:MAR/KER@bucket")}

    _, (change,) = reloaded(running, replace(running, settings={**running.settings, **other}))

    assert "bucket" in str(change)
    assert "KEY" not in str(change)
    assert "KER" not in str(change)

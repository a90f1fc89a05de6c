"""The units for systemd: they are well-formed, and they agree with each other and with the defaults of the keys."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from brimline.settings import keys

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
GUARD, GATEWAY, SOCKET = (
    UNITS / name for name in ("brimline-guard.service", "brimline-gateway.service", "brimline-gateway.socket")
)


def settings(unit: Path) -> dict[str, str]:
    lines = [line.partition("=") for line in unit.read_text().splitlines() if not line.startswith(("#", "["))]
    return {name: value for name, is_setting, value in lines if is_setting}


def test_guard_and_gateway_share_user_and_state() -> None:
    guard, gateway = settings(GUARD), settings(GATEWAY)

    for name in ("User", "SupplementaryGroups", "StateDirectory", "StateDirectoryMode"):
        assert guard[name] == gateway[name]
    assert f"/var/lib/{gateway['StateDirectory']}" == keys.STATE_DIR.default


def test_a_gateway_that_drains_is_not_killed() -> None:
    seconds = int(settings(GATEWAY)["TimeoutStopSec"].removesuffix("s"))

    assert isinstance(keys.GATEWAY_DRAIN_TIMEOUT.default, int)
    assert seconds * 1000 > keys.GATEWAY_DRAIN_TIMEOUT.default


def test_the_ports_are_held_for_the_gateway_where_that_is_wanted() -> None:
    assert settings(SOCKET)["Service"] == GATEWAY.name
    assert "Sockets" not in settings(GATEWAY), "it would start the socket, which takes an intercepted broker's port"


def test_what_they_start_is_installed() -> None:
    commands = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    started = [value for unit in UNITS.glob("*.service") for name, value in settings(unit).items() if "Exec" in name]

    assert {words.split()[1] for words in started if words.startswith("/usr/bin/env ")} == set(commands)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", sorted(UNITS.iterdir()), ids=lambda unit: unit.name)
def test_systemd_takes_them(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )

    complaints = [line for line in done.stderr.splitlines() if "brimline" in line]  # others' units are others' business
    assert complaints == []

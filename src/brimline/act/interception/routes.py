"""What bears our mark stays on this machine: a rule and a route for each family, and one switch of the kernel.

The switch (``net.ipv4.tcp_fwmark_accept``) lets a connection that the broker accepts bear the mark of its first packet.
All three do nothing without the rules' table; they are there while somebody may be turned aside, and ``sweep`` removes
what an earlier process left.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

from brimline.act.interception.nftables import InterceptionFailed
from brimline.decide.interception import MARK

TABLE = 25202
_MARKS = f"{hex(MARK)}/0xfffffffe"
"""``MARK`` and ``FETCH_MARK``, which differ in the last bit."""
_FAMILIES = ("-4", "-6")
_OURS, _THEIRS = "boot", "static"
"""Who has the switch on. A route has room for such a word, and outlives the process that made it."""
_SWITCH = "net.ipv4.tcp_fwmark_accept"
_INHERITED = Path("/proc/sys", *_SWITCH.split("."))
_PATIENCE_SECONDS = 10


def lay() -> None:
    """Again is no harm. A switch that somebody else has on stays on: the route says so to whoever sweeps."""
    is_on = _INHERITED.read_text().strip() == "1"
    is_theirs = _is_switch_theirs() if _is_laid("-4") else is_on
    origin = _THEIRS if is_theirs else _OURS
    for family in _FAMILIES:
        if family == "-6" and not Path("/proc/net/if_inet6").exists():
            continue
        if not _is_laid(family):
            _ip(family, "rule", "add", "fwmark", _MARKS, "lookup", str(TABLE))
        _ip(family, "route", "replace", "local", "default", "dev", "lo", "table", str(TABLE), "proto", origin)
    if is_on:
        return
    try:
        _INHERITED.write_text("1")
    except OSError as error:
        raise InterceptionFailed(
            f"{_INHERITED} cannot be set ({error.strerror}); in a container start it with --sysctl {_SWITCH}=1"
        ) from error


def sweep() -> None:
    """Nothing where nothing of ours is."""
    if not _is_laid("-4"):
        return
    is_theirs = _is_switch_theirs()
    for family in _FAMILIES:
        with suppress(InterceptionFailed):
            while _is_laid(family):
                _ip(family, "rule", "del", "fwmark", _MARKS, "lookup", str(TABLE))
        with suppress(InterceptionFailed):
            _ip(family, "route", "flush", "table", str(TABLE))
    if not is_theirs:
        with suppress(OSError):
            _INHERITED.write_text("0")


def _is_laid(family: str) -> bool:
    return f"lookup {TABLE}" in _ip(family, "rule", "list")


def _is_switch_theirs() -> bool:
    try:
        return f"proto {_THEIRS}" in _ip("-4", "route", "show", "table", str(TABLE))
    except InterceptionFailed:  # there is a rule and no route
        return False


def _ip(*words: str) -> str:
    command = ["ip", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True)
    except FileNotFoundError as error:
        raise InterceptionFailed("ip is not installed: apt install iproute2") from error
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (getattr(error, "stderr", "") or "").strip().partition("\n")[0]
        raise InterceptionFailed(f"{' '.join(command)}: {said or error}") from error
    return done.stdout

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
_SWITCH = "net.ipv4.tcp_fwmark_accept"
_INHERITED = Path("/proc/sys", *_SWITCH.split("."))
_PATIENCE_SECONDS = 10


def lay() -> bool:
    """Again is no harm. ``False``: somebody else has the switch on, and it stays so in the end."""
    were_here = _is_laid("-4")
    for family in _FAMILIES:
        if family == "-6" and not Path("/proc/net/if_inet6").exists():
            continue
        if not _is_laid(family):
            _ip(family, "rule", "add", "fwmark", _MARKS, "lookup", str(TABLE))
        _ip(family, "route", "replace", "local", "default", "dev", "lo", "table", str(TABLE))
    if _INHERITED.read_text().strip() == "1":
        return were_here
    try:
        _INHERITED.write_text("1")
    except OSError as error:
        raise InterceptionFailed(
            f"{_INHERITED} cannot be set ({error.strerror}); in a container start it with --sysctl {_SWITCH}=1"
        ) from error
    return True


def sweep(*, restore_switch: bool) -> None:
    """Nothing where nothing of ours is."""
    if not _is_laid("-4"):
        return
    for family in _FAMILIES:
        with suppress(InterceptionFailed):
            while _is_laid(family):
                _ip(family, "rule", "del", "fwmark", _MARKS, "lookup", str(TABLE))
        with suppress(InterceptionFailed):
            _ip(family, "route", "flush", "table", str(TABLE))
    if restore_switch:
        with suppress(OSError):
            _INHERITED.write_text("0")


def _is_laid(family: str) -> bool:
    return f"lookup {TABLE}" in _ip(family, "rule", "list")


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

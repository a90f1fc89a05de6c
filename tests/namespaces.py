"""What a test needs of the machine to have a network of its own."""

import shutil
import subprocess

import pytest


def _why_not() -> str | None:
    if shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return "nft is not installed"
    tried = ["unshare", "--net", "/usr/sbin/nft", "add table inet t { flags owner ; }"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no network namespace with rules of its own: {done.stderr.strip()[:80]}"


_HINDRANCE = _why_not()
needs_network_namespaces = pytest.mark.skipif(_HINDRANCE is not None, reason=str(_HINDRANCE))

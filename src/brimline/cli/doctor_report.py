"""``brimline doctor --report``: what somebody who cannot see this machine needs to know of it.

It comes before the findings and needs nothing that could fail with them: a file that cannot be used is why reports are
written.
"""

import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from shutil import which

from brimline import __version__
from brimline.cli.shared.glyphs import printable
from brimline.model.secrets import HIDDEN, shown
from brimline.observe.client.config import KNOWN
from brimline.observe.properties.java_properties import load_properties
from brimline.settings.config import is_read
from brimline.settings.keys import ADMIN_PREFIX, BY_NAME, JMX_PREFIX

_OWN = "brimline."
_JAVA_SECONDS = 20


def machine_lines() -> Iterator[str]:
    versions = dict(_package_versions())
    yield f"Brimline {__version__}"
    yield f"  Python    {platform.python_version()} ({sys.executable})"
    yield f"  system    {platform.system()} {platform.release()} {platform.machine()}, {_distribution()}"
    yield f"  Java      {_java()}"
    yield f"  packages  {', '.join(f'{name} {version}' for name, version in versions.items() if version)}"
    absent = [name for name, version in versions.items() if version is None]
    if absent:
        yield f"  absent    {', '.join(absent)}"


def setting_lines(path: str) -> Iterator[str]:
    """Of the broker's file only what Brimline reads: its other keys may hold secrets."""
    properties = load_properties(path)
    read = {key: printable(_shown(key, value)) for key, value in properties.items() if is_read(key)}
    yield f"{Path(path).absolute()}: {len(properties)} keys, {len(read)} of them read"
    yield from (f"  {key}={value}" for key, value in sorted(read.items()))


def _shown(key: str, value: str) -> str:
    """A key that nobody knows is a misspelt one: what it holds may be a secret."""
    is_client = key.removeprefix(ADMIN_PREFIX.name) in KNOWN
    is_known = key in BY_NAME or not key.startswith(_OWN) or is_client or key.startswith(JMX_PREFIX.name)
    return shown(key, value) if is_known else HIDDEN


def _java() -> str:
    java = which("java")
    if java is None:
        return "none on the PATH"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False)
        return f"{java}: {said.stderr.partition(chr(10))[0]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{java}: {error}"


def _package_versions() -> Iterator[tuple[str, str | None]]:
    """Of everything that Brimline or one of its extras asks for; ``None``: not installed."""
    for requirement in metadata.requires("brimline") or ():
        (name,) = re.findall(r"^[A-Za-z0-9._-]+", requirement)
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, None


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown distribution")
    except OSError:
        return "unknown distribution"

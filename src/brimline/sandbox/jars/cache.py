"""The per-user cache of what can be fetched again, and Kafka's jars in it, checked against the lock file.

Invariant: a version's directory in the cache is complete and verified, or it is not there. Jars are downloaded and
checked in a staging directory, which is renamed into place as the last step; a file lock lets one process fetch
while the others wait for it. A warm cache needs neither network nor JVM.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from brimline.sandbox.errors import JarMismatch
from brimline.sandbox.jars import ivy
from brimline.sandbox.jars.lock import Coordinates, LockedJar, jars_of


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/brimline``, by the XDG base directory rules: a relative value counts as unset."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "brimline"


Retrieve = Callable[[Sequence[Coordinates], Path], None]


def kafka_jars(version: str) -> tuple[Path, ...]:
    """The jars of a Kafka version, downloaded first if the cache does not have them."""
    return install(jars_of(version), cache_dir() / "jars" / "kafka" / version, ivy.retrieve)


def install(jars: Sequence[LockedJar], home: Path, retrieve: Retrieve) -> tuple[Path, ...]:
    """Have ``home`` hold exactly these jars; returns their paths, in the lock file's order."""
    paths = tuple(home / jar.coordinates.file_name for jar in jars)
    if _is_complete(home, paths):
        return paths
    home.parent.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(home):
        if not _is_complete(home, paths):
            _fetch(jars, home, retrieve)
    return paths


def verify(jars: Sequence[LockedJar], directory: Path) -> None:
    """Raise for the first jar whose bytes are not those of the lock file."""
    for jar in jars:
        found = sha256_of(directory / jar.coordinates.file_name)
        if found != jar.sha256:
            raise JarMismatch(
                f"{jar.coordinates} is not the jar of the lock file: expected sha256 {jar.sha256}, found {found}; "
                f"nothing was installed; fetch it again"
            )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_complete(home: Path, paths: Sequence[Path]) -> bool:
    return home.is_dir() and set(paths) <= set(home.iterdir())


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    with home.with_name(f"{home.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(jars: Sequence[LockedJar], home: Path, retrieve: Retrieve) -> None:
    """Download, verify, rename. What an interrupted run left goes first."""
    print(f"brimline: fetching {home.parent.name} {home.name} ({len(jars)} jars) …", file=sys.stderr, flush=True)
    for stale in (home, *home.parent.glob(f"{home.name}.staging-*")):
        shutil.rmtree(stale, ignore_errors=True)
    # A new name each time: the Ivy of a killed run may still be writing into the old one
    staging = Path(tempfile.mkdtemp(prefix=f"{home.name}.staging-", dir=home.parent))
    try:
        retrieve([jar.coordinates for jar in jars], staging)
        verify(jars, staging)
        shutil.rmtree(staging / "ivy-cache", ignore_errors=True)
        staging.rename(home)
    finally:
        shutil.rmtree(staging, ignore_errors=True)

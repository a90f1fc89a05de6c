"""Delta's jars for Spark: exactly those of the lock file, from the per-user cache. No registry is asked at run time.

Only what Spark does not bring is locked: the POMs name a Hadoop and a Parquet of their own, older than Spark's.
``python -m brimline.fleet.session.delta_jars`` fills the cache; with ``lock`` it makes the lock file anew.
"""

import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from brimline.fleet.session.errors import FleetError
from brimline.sandbox.errors import SandboxError
from brimline.sandbox.jars import ivy
from brimline.sandbox.jars.cache import cache_dir, install, sha256_of
from brimline.sandbox.jars.lock import Coordinates, LockedJar, read_lock, write_lock

LOCK_FILE = Path(__file__).with_name("delta-jars.lock")
ROOT = Coordinates("io.delta", "delta-spark_4.2_2.13", "4.4.0")
_GROUPS_SPARK_LACKS = ("io.delta", "io.unitycatalog")
_HEADER = """\
# The jars of Delta Lake for Spark: version, coordinates, sha256.
# Made by `python -m brimline.fleet.session.delta_jars lock`; do not edit.
"""


def delta_jars() -> tuple[Path, ...]:
    """Downloaded first if the cache does not have them, which is said on stderr."""
    _check_version()
    try:
        return install(
            read_lock(LOCK_FILE)[ROOT.revision], cache_dir() / "jars" / "delta" / ROOT.revision, ivy.retrieve
        )
    except SandboxError as error:
        raise FleetError(str(error)) from error


def _check_version() -> None:
    """The Python package's version says which jars fit."""
    try:
        installed = version("delta-spark")
    except PackageNotFoundError:
        raise FleetError("Spark and Delta are not installed: pip install 'brimline[fleet]'") from None
    if installed != ROOT.revision:
        raise FleetError(
            f"delta-spark {installed} is installed, {ROOT.revision} is wanted: pip install 'brimline[fleet]'"
        )


def _lock() -> list[LockedJar]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ivy.resolve([ivy.dependency(ROOT, transitive=True)], directory)
        jars = [(Coordinates.of_file(path.name), sha256_of(path)) for path in directory.glob("*.jar")]
    return [LockedJar(ROOT.revision, jar, checksum) for jar, checksum in jars if jar.group in _GROUPS_SPARK_LACKS]


def main(arguments: Sequence[str]) -> int:
    try:
        if arguments == ["lock"]:
            write_lock(_lock(), LOCK_FILE, _HEADER)
        else:
            delta_jars()
    except (FleetError, SandboxError) as error:
        print(f"brimline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

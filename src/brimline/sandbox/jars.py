"""Fill the jar cache (``fetch [VERSION…]``) or make the lock file anew (``lock``), from the command line."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from brimline.sandbox import ivy
from brimline.sandbox.class_archive import make_archive
from brimline.sandbox.errors import SandboxError
from brimline.sandbox.jar_cache import kafka_jars, sha256_of
from brimline.sandbox.lock import Coordinates, LockedJar, locked_versions, write_lock
from brimline.sandbox.recipes import RECIPES, dependencies_of


def lock_versions(versions: Sequence[str]) -> list[LockedJar]:
    """Resolve every version from its recipe, POMs obeyed, and take the checksums of what came."""
    locked = []
    for version in versions:
        print(f"brimline: resolving Kafka {version} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            ivy.resolve(dependencies_of(version), directory)
            for path in directory.glob("*.jar"):
                locked.append(LockedJar(version, Coordinates.of_file(path.name), sha256_of(path)))
    return locked


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m brimline.sandbox.jars", description="Kafka's jars.")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("lock", help="resolve every version anew and write the lock file")
    fetch = actions.add_parser("fetch", help="fill the cache")
    fetch.add_argument("--quick", action="store_true", help="make class archives too, with which brokers start sooner")
    fetch.add_argument("version", nargs="*", help="default: every locked version")
    options = parser.parse_args(arguments)
    try:
        if options.action == "lock":
            write_lock(lock_versions(list(RECIPES)))
        else:
            for version in options.version or locked_versions():
                kafka_jars(version)
                if options.quick:
                    make_archive(version)
    except SandboxError as error:
        print(f"brimline: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

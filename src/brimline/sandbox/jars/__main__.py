"""What to ask the registry for to get a Kafka of each version; read only when the lock file is made.

A broker's own module brings nearly everything. Added to it: the command-line tools (alone: their POM drags in
Connect), the test jars with LocalTieredStorage where tiered storage exists, and the logging binding that Kafka's
distribution adds and its POMs leave out: log4j 2 since 4.0, reload4j before.

Fill the jar cache (``fetch [VERSION…]``) or make the lock file anew (``lock``), from the command line.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from brimline.sandbox.errors import SandboxError
from brimline.sandbox.jars import ivy
from brimline.sandbox.jars.cache import kafka_jars, sha256_of
from brimline.sandbox.jars.ivy import dependency
from brimline.sandbox.jars.lock import Coordinates, LockedJar, locked_versions, write_lock
from brimline.sandbox.java import make_archive

_KAFKA = "org.apache.kafka"


@dataclass(frozen=True, slots=True)
class Recipe:
    logging: tuple[Coordinates, ...]
    """The binding must be of the log4j version that the broker's POM brings."""
    tiered: bool = True


def _log4j(revision: str) -> tuple[Coordinates, ...]:
    return (Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", revision),)


_RELOAD4J = (Coordinates("org.slf4j", "slf4j-reload4j", "1.7.36"), Coordinates("ch.qos.reload4j", "reload4j", "1.2.25"))

RECIPES = {
    "3.2.3": Recipe(_RELOAD4J, tiered=False),
    "3.9.2": Recipe(_RELOAD4J),
    "4.1.2": Recipe(_log4j("2.25.3")),
    "4.3.1": Recipe(_log4j("2.25.4")),
}


def dependencies_of(version: str) -> Iterator[str]:
    recipe = RECIPES[version]
    yield dependency(Coordinates(_KAFKA, "kafka_2.13", version), transitive=True)
    yield dependency(Coordinates(_KAFKA, "kafka-tools", version), transitive=False)
    if recipe.tiered:
        for artifact in ("kafka-storage", "kafka-clients"):
            yield dependency(Coordinates(_KAFKA, artifact, version), transitive=True, classifiers=("", "test"))
    for binding in recipe.logging:
        yield dependency(binding, transitive=False)


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
    actions.add_parser("lock", help="resolve every version again and write the lock file")
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

"""A lock file: exactly which jars make a Kafka of each version, with their checksums; Delta's is of this form too.

One line per jar: version, Maven coordinates (group:artifact:revision[:classifier]), SHA-256. Sorted, so that
a new version or a new jar is a small diff.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from brimline.sandbox.errors import BadSpec

LOCK_FILE = Path(__file__).with_name("kafka-jars.lock")
BETWEEN = "__"
"""Between the parts of a jar's coordinates in its file's name."""

_HEADER = """\
# The jars of every Kafka version that a sandbox can run: version, coordinates, sha256.
# Made by `python -m brimline.sandbox.jars lock`; do not edit.
"""


@dataclass(frozen=True, slots=True, order=True)
class Coordinates:
    """A jar's name in a Maven registry."""

    group: str
    artifact: str
    revision: str
    classifier: str = ""

    def __str__(self) -> str:
        return ":".join(part for part in (self.group, self.artifact, self.revision, self.classifier) if part)

    @property
    def file_name(self) -> str:
        """Carries all of the coordinates: two groups publish a ``metrics-core``.

        In characters that a URL has too: Java shares no class of a jar whose name it must escape.
        """
        return f"{str(self).replace(':', BETWEEN)}.jar"

    @classmethod
    def of_file(cls, file_name: str) -> "Coordinates":
        return cls(*file_name.removesuffix(".jar").split(BETWEEN))


@dataclass(frozen=True, slots=True, order=True)
class LockedJar:
    version: str
    coordinates: Coordinates
    sha256: str


def read_lock(path: Path = LOCK_FILE) -> dict[str, tuple[LockedJar, ...]]:
    """Every locked version with its jars."""
    jars = [_parse(line) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {version: tuple(j for j in jars if j.version == version) for version in _versions(jars)}


def write_lock(jars: Iterable[LockedJar], path: Path = LOCK_FILE, header: str = _HEADER) -> None:
    ordered = sorted(jars, key=lambda jar: (_version_key(jar.version), jar.coordinates))
    lines = [f"{jar.version} {jar.coordinates} {jar.sha256}\n" for jar in ordered]
    path.write_text(header + "".join(lines))


def locked_versions() -> list[str]:
    return list(read_lock())


def jars_of(version: str) -> tuple[LockedJar, ...]:
    lock = read_lock()
    if version not in lock:
        raise BadSpec(f"no Kafka {version} for a sandbox: choose one of {', '.join(lock)}")
    return lock[version]


def _parse(line: str) -> LockedJar:
    version, coordinates, sha256 = line.split()
    return LockedJar(version, Coordinates(*coordinates.split(":")), sha256)


def _versions(jars: Iterable[LockedJar]) -> list[str]:
    return sorted({jar.version for jar in jars}, key=_version_key)


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))

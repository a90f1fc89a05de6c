"""The JMX bridge's classes: compiled from the Java source beside this file, and provably from that source.

Invariant: a jar is used only if the hash it carries is the hash of the source. The wheel's build puts such a jar
beside the source; a checkout, which has none, compiles one on first use into a per-user cache, named by the hash.

The build hook loads this file by its path, before anything of Brimline can be imported: so it imports the standard
library only.
"""

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from shutil import which

MAIN_CLASS = "BrimlineJmx"
SOURCE = Path(__file__).with_name("java") / f"{MAIN_CLASS}.java"
JAR_NAME = "brimline-jmx.jar"
OLDEST_JAVA = 11
_HASH_ENTRY = "META-INF/source.sha256"


class NoBridge(Exception):
    """There are no classes to run, and none can be made. Its text says what to do."""


def find_jar(cache: Path | None = None, source: Path = SOURCE, javac: Path | None = None) -> Path:
    """The jar of the wheel, else that of the cache, compiled first if need be."""
    wanted = source_hash(source)
    shipped = source.with_name(JAR_NAME)
    cached = (cache or default_cache()) / f"{wanted}.jar"
    for jar in (shipped, cached):
        if recorded_hash(jar) == wanted:
            return jar
    compiler = javac or find_tool("javac")
    if compiler is None:
        raise NoBridge(
            f"the JMX bridge is not compiled in this installation and there is no javac to do it: install Brimline "
            f"from a wheel, or a JDK {OLDEST_JAVA} or newer"
        )
    compile_jar(compiler, cached, source)
    return cached


def compile_jar(javac: Path, jar: Path, source: Path = SOURCE) -> None:
    """Same source, same compiler, same bytes. The jar appears whole or not at all."""
    with tempfile.TemporaryDirectory(prefix="brimline-jmx-") as name:
        command = [str(javac), "--release", str(OLDEST_JAVA), "-Xlint:all", "-Werror", "-encoding", "UTF-8"]
        done = subprocess.run(
            [*command, "-d", name, str(source)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise NoBridge(f"{javac} could not compile {source}: {done.stderr.strip() or done.stdout.strip()}")
        _pack(jar, sorted(Path(name).glob("*.class")), source_hash(source))


def source_hash(source: Path = SOURCE) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()


def recorded_hash(jar: Path) -> str | None:
    """Of which source the jar says it was made; ``None`` if it does not say or is not there."""
    try:
        with zipfile.ZipFile(jar) as file:
            return file.read(_HASH_ENTRY).decode("ascii", "replace").strip()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def find_tool(name: str) -> Path | None:
    """``java`` or ``javac``: of $JAVA_HOME if that is set, else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = which(name, path=str(Path(home) / "bin")) if home else which(name)
    return Path(found) if found else None


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/brimline/jmx``, by the XDG base directory rules: a relative value counts as unset."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "brimline" / "jmx"


def _pack(jar: Path, classes: Iterable[Path], made_of: str) -> None:
    jar.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{jar.name}-", dir=jar.parent)
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            # ZipInfo's own date, not today's: two builds of one source are equal
            archive.writestr(zipfile.ZipInfo(_HASH_ENTRY), f"{made_of}\n")
            for path in classes:
                archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
        unfinished.chmod(0o644)
        unfinished.replace(jar)
    finally:
        unfinished.unlink(missing_ok=True)

"""Maven jars by Apache Ivy: the one inside pyspark where that is installed, else Debian's package.

Ivy knows the public registry by itself; where it is, is not our business. Two ways to use it: *resolve*, with POMs
and all that they drag in, makes the lock file; *retrieve* takes exact coordinates and asks for nothing else, which
is five times faster.
"""

import subprocess
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import quoteattr

from brimline.sandbox.errors import DownloadFailed, MissingPart
from brimline.sandbox.jars.lock import BETWEEN, Coordinates
from brimline.sandbox.java import QUICK_START, find_java

SYSTEM_IVY = Path("/usr/share/java/ivy.jar")
"""Where Debian's package ivy puts it."""
_NAME_PATTERN = BETWEEN.join(("[organisation]", "[artifact]", f"[revision]({BETWEEN}[classifier]).[ext]"))

_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="brimline" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{}
  </dependencies>
</ivy-module>
"""

# Exact coordinates need no POM, and the lock file's SHA-256 makes the registry's own checksums superfluous.
_EXACT_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="false" useMavenMetadata="false" checksums=""/>
  </resolvers>
</ivysettings>
"""


def find_ivy() -> Path:
    """Ivy's jar: in the installed pyspark, found without importing it (that takes a second), or the system's."""
    spec = find_spec("pyspark")
    jars = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    found = [*sorted(jars.glob("ivy-*.jar") if jars else (), reverse=True), SYSTEM_IVY]
    if not found[0].exists():
        raise MissingPart("Apache Ivy, which fetches jars, is not installed: apt install ivy, or pip install pyspark")
    return found[0]


def retrieve(coordinates: Sequence[Coordinates], directory: Path) -> None:
    """Download exactly these jars into ``directory``, an empty one; a jar is named by its coordinates."""
    settings = directory / "settings.xml"
    settings.write_text(_EXACT_SETTINGS)
    _run(_exact_dependencies(coordinates), directory, ["-settings", str(settings)])
    settings.unlink()


def resolve(dependencies: Iterable[str], directory: Path) -> None:
    """Download whatever the given ``<dependency>`` elements need, POMs obeyed, into ``directory``."""
    _run(dependencies, directory, [])


def dependency(coordinates: Coordinates, *, transitive: bool, classifiers: Iterable[str] = ()) -> str:
    """An Ivy ``<dependency>``; ``classifiers`` name the artifacts wanted, "" being the plain jar."""
    c = coordinates
    artifacts = "".join(
        f"<artifact name={quoteattr(c.artifact)} type='jar' ext='jar'"
        + (f" m:classifier={quoteattr(classifier)}/>" if classifier else "/>")
        for classifier in classifiers
    )
    return (
        f"<dependency org={quoteattr(c.group)} name={quoteattr(c.artifact)} rev={quoteattr(c.revision)} "
        f"conf='default->default' transitive='{str(transitive).lower()}'>{artifacts}</dependency>"
    )


def _exact_dependencies(coordinates: Iterable[Coordinates]) -> list[str]:
    modules = groupby(sorted(coordinates), key=lambda c: Coordinates(c.group, c.artifact, c.revision))
    return [
        dependency(module, transitive=False, classifiers=[jar.classifier for jar in jars]) for module, jars in modules
    ]


def _run(dependencies: Iterable[str], directory: Path, options: Sequence[str]) -> None:
    """One Ivy run. Its cache is beside the jars: the caller throws away or keeps the whole directory."""
    module = directory / "ivy.xml"
    module.write_text(_MODULE.format("\n".join(dependencies)))
    command = [str(find_java()), *QUICK_START, "-jar", str(find_ivy()), *options, "-ivy", str(module)]
    command += ["-cache", str(directory / "ivy-cache"), "-confs", "default"]
    command += ["-retrieve", str(directory / _NAME_PATTERN)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    module.unlink()
    if done.returncode != 0:
        raise DownloadFailed(f"the jars could not be downloaded: {_complaint(done.stdout + done.stderr)}")


def _complaint(output: str) -> str:
    """Ivy says a lot. Java's own exception says best what is wrong; to Ivy every jar behind it is just "not found"."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    telling = (line for word in ("Exception", "Host ", "not found", "FAILED") for line in lines if word in line)
    return next(telling, lines[0] if lines else "Ivy gave no reason")

"""A class archive for Spark's JVM (AppCDS): one that finds its classes read and checked starts with half the work.

The first run makes it when its JVM ends, from the classes that the run has used; ``make setup`` makes it from a run
over a small made-up fleet. It is kept in the user's cache, by the Java and the class path that it is for. Java looks
whether it fits, and goes on without it where it does not. Where it cannot be written nothing is different.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from brimline.sandbox.jars.cache import cache_dir
from brimline.sandbox.java import SILENT_ARCHIVE, java_stamp

MAKE_SECONDS = 600
"""Only for one that hangs: it takes some seconds, on a busy machine a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassArchive:
    path: Path
    unfinished: Path
    """A name of this process alone: the archive is there whole or not at all."""

    @property
    def is_there(self) -> bool:
        return self.path.is_file()

    @property
    def flags(self) -> list[str]:
        """To use it, or to make it."""
        if self.is_there:
            return [f"-XX:SharedArchiveFile={self.path}", SILENT_ARCHIVE]
        return [f"-XX:ArchiveClassesAtExit={self.unfinished}", SILENT_ARCHIVE] if self._can_be_made() else []

    def finish(self) -> None:
        """When the JVM has ended."""
        with suppress(OSError):  # there is none, or another run was quicker
            self.unfinished.replace(self.path)

    def _can_be_made(self) -> bool:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return False
        return os.access(self.path.parent, os.W_OK)


def archive_for(class_path: Sequence[Path]) -> ClassArchive:
    stamp = hashlib.sha256("\n".join([java_stamp(), *map(str, class_path)]).encode()).hexdigest()[:12]
    folder = cache_dir() / "fleet"
    return ClassArchive(path=folder / f"spark-{stamp}.jsa", unfinished=folder / f"spark-{stamp}.{os.getpid()}.partial")


def make() -> None:
    """From a run over a small made-up fleet, unless it is there."""
    from brimline.fleet.session.session import SessionSettings, class_path, spark_session

    if archive_for(class_path()).is_there:
        return
    from brimline.fleet.jobs.run import run_round
    from brimline.fleet.session.progress import Lines, Progress
    from brimline.fleet.synth.spec import FleetSpec
    from brimline.fleet.synth.synth import synthesise
    from brimline.fleet.tables.warehouse import Warehouse

    print("brimline: preparing a class archive, with which Spark starts faster …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="brimline-") as folder, Path(os.devnull).open("w") as nowhere:
        landing = str(Path(folder) / "landing")
        spec = FleetSpec(until_ms=1_700_000_000_000, clusters=1, brokers=2, replicas=20, days=1)
        synthesise(spec, landing, lambda _: None)
        settings = SessionSettings(master="local[2]", cores=2)
        with spark_session(settings) as spark:
            run_round(spark, landing, Warehouse(str(Path(folder) / "warehouse")), Progress(Lines(nowhere)), tasks=2)


if __name__ == "__main__":
    make()

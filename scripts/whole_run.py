"""What a run that takes long is known by: its commit, its date, its machine, its time. And how it ends when told to."""

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from brimline.sandbox.errors import MissingPart
from brimline.sandbox.java import find_java

ROOT = Path(__file__).parent.parent
WRITTEN_BY_RUNS = ("docs/benchmarks.md", "docs/test-long.md")
"""That one of them has just been written does not make a commit another one."""


class WholeRun:
    """From now on; what it says of the sources is how they are now."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._date = datetime.now(UTC)
        self._commit = commit()
        self._begin = time.monotonic()

    def time_so_far(self) -> str:
        return duration(time.monotonic() - self._begin)

    def head(self) -> list[str]:
        """Lines of a document."""
        return [
            f"One whole run: `{self._command}` at commit {self._commit}, {self._date:%Y-%m-%d %H:%M} UTC,"
            f" {self.time_so_far()}.",
            "",
            f"Machine: {machine()}.",
        ]


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def commit() -> str:
    """Short, and whether there was more than what is committed."""
    try:
        short = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--", ".", *(f":(exclude){path}" for path in WRITTEN_BY_RUNS))
    except (OSError, subprocess.CalledProcessError):
        return "unknown (not a git clone)"
    return f"{short}, with changes that are not committed" if changed else short


def _git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return ", ".join(
        (
            _after(Path("/proc/cpuinfo"), "model name", ":") or platform.machine(),
            f"{len(os.sched_getaffinity(0))} cores",
            f"{memory / (1 << 30):.0f} GiB of memory",
            f"Linux {platform.release()}",
            f"Python {platform.python_version()}",
            _java(),
        )
    )


def _java() -> str:
    try:
        release = find_java().resolve().parent.parent / "release"
    except MissingPart:
        return "no Java"
    version = _after(release, "JAVA_VERSION", "=").strip('"')
    return f"Java {version or 'of an unknown version'}"


def _after(path: Path, name: str, separator: str) -> str:
    """The value in the first line with that name; empty where there is none."""
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    found = (line.partition(separator) for line in lines if line.startswith(name))
    return next((value.strip() for _, _, value in found), "")


@contextmanager
def nothing_left_behind(prefix: str) -> Iterator[Path]:
    """A folder for everything temporary, of children too, gone at the end; told to end is interrupted, as by ctrl-C.

    Once: whoever signals a whole group has it signalled again by its make, in the middle of cleaning up.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    # Both: what is started in the background ignores the latter, and so would its children
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    # What Spark's JVM leaves when it is killed is here as well.
    names = ("TMPDIR", "SPARK_LOCAL_DIRS")
    known = {name: os.environ.get(name) for name in names}
    try:
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
            os.environ.update(dict.fromkeys(names, folder))
            tempfile.tempdir = None  # it is remembered from the first time that it was asked for
            yield Path(folder)
    finally:
        for name, value in known.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None
        for number, handler in before.items():
            signal.signal(number, handler)


def sayer(name: str) -> Callable[[str], None]:
    """What is said stands beside the results, which may go into a file."""
    return lambda text: print(f"{name}: {text}", file=sys.stderr, flush=True)


def exit_with(main: Callable[[], int], say: Callable[[str], None]) -> NoReturn:
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; nothing is written")
        sys.exit(130)

"""A command, and the most memory that it and everything it started ever held together.

Memory is the proportional set size, in which a page that several processes share counts once. It is looked at every
200 ms from outside: a shorter peak may go unseen, and looking more often would slow down what is measured.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_EVERY_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    seconds: float
    peak_megabytes: float
    output: str


def watched(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Watched:
    """Raises ``CalledProcessError`` when the command fails, and shows then what it said on stderr."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        # ctrl-C is for us: a default session's JVM does not listen to it
        start_new_session=True,
    )
    watcher = _Watcher(child.pid)
    watcher.start()
    try:
        output, said = child.communicate()
    except BaseException:
        _end(child)
        raise
    finally:
        seconds = time.perf_counter() - begin
        watcher.end.set()
        watcher.join()
    if child.returncode:
        print(said, file=sys.stderr)
        raise subprocess.CalledProcessError(child.returncode, command)
    return Watched(seconds=seconds, peak_megabytes=watcher.peak_kilobytes / 1000, output=output)


def _end(child: "subprocess.Popen[str]") -> None:
    """With everything it started: what it has no time to take away itself is in a folder of this run's."""
    started = _tree(child.pid)
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    child.wait()


class _Watcher(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.end = threading.Event()
        self.peak_kilobytes = 0

    def run(self) -> None:
        while not self.end.wait(_EVERY_SECONDS):
            self.peak_kilobytes = max(self.peak_kilobytes, sum(map(_kilobytes, _tree(self._pid))))


def _tree(pid: int) -> list[int]:
    """The process and its descendants, as far as they live."""
    found = [pid]
    for parent in found:
        found += _children(parent)
    return found


def cpu_seconds(pid: int) -> float:
    """Of a process and of all that it started, whether they live or have been waited for."""
    return sum(map(_ticks, _tree(pid))) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0  # it has ended
    return sum(map(int, fields[11:15]))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # this thread of it has
                found += map(int, (task / "children").read_text().split())
    return found


def _kilobytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has ended
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)

"""Runs ``brimline`` with a clock that can be moved while it runs: by the seconds that stand in a file. A script.

    python -m brimline.torture.faults.jumping_clock OFFSET_FILE guard --config …

Only what Brimline itself reads is moved: the time of day of Python's ``time`` and of the guard's clock. The clock that
measures intervals never jumps, on a real machine either.
"""

import runpy
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

_REAL_TIME = time.time


def moved_time(offset_file: Path) -> float:
    offset = 0.0
    with suppress(OSError, ValueError):
        offset = float(offset_file.read_text())
    return _REAL_TIME() + offset


if __name__ == "__main__":
    file = Path(sys.argv[1])
    time.time = lambda: moved_time(file)
    clock = import_module("brimline.service.clock")
    clock.SystemClock.now = lambda _: datetime.fromtimestamp(moved_time(file), UTC)
    sys.argv = ["brimline", *sys.argv[2:]]
    runpy.run_module("brimline.cli", run_name="__main__")

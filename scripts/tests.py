"""``make test``'s tests: pytest with these arguments. However it is told to end, nothing stays: no broker, no file.

SIGTERM to make reaches its own child alone. A shell would wait for pytest before it hears of it, and pytest dies of it
without a word to its processes, which go on with their tests. So this stands in between, and interrupts pytest.
"""

import subprocess
import sys
from collections.abc import Sequence

from scripts.test_long import end
from scripts.whole_run import ROOT, exit_with, nothing_left_behind, sayer


def main(words: Sequence[str] | None = None) -> int:
    with nothing_left_behind("brimline-test-") as folder:
        folder.chmod(0o711)  # for what tests run as other users
        command = [sys.executable, "-m", "pytest", *(sys.argv[1:] if words is None else words)]
        # In a session of its own: ctrl-C is for us.
        command.append(f"--basetemp={folder / 'tests'}")
        process = subprocess.Popen(command, cwd=ROOT, text=True, start_new_session=True)
        try:
            return process.wait()
        finally:
            end([process])


if __name__ == "__main__":
    exit_with(main, sayer("tests"))

"""The exit codes, in one place: scripts depend on them, and ``--help`` prints them."""

import re
from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    PARTIAL = 3
    INTERRUPTED = 130
    PIPE_CLOSED = 141


EXIT_CODES_HELP = """\
exit codes:
  0    done; every broker answered
  1    nothing to show: wrong usage or input, or no answer from the cluster
  3    partial: at least one broker answered and at least one did not
  130  interrupted from the keyboard
  141  the output was closed early"""

EVERYWHERE = {
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
    ExitCode.PIPE_CLOSED: "the output was closed early",
}
"""What they mean for every command, whether its help says so or not."""
_HEADING = "exit codes:\n"
_CODE = re.compile(r"^  (\d+)  +(.*(?:\n {7}.*)*)", re.MULTILINE)


def exit_codes_in(epilog: str | None) -> dict[ExitCode, str]:
    """What a command's help says of its exit codes, each in one line."""
    _, _, listed = (epilog or "").partition(_HEADING)
    return {ExitCode(int(code)): " ".join(meaning.split()) for code, meaning in _CODE.findall(listed)}

"""The exit codes, in one place: scripts depend on them, and ``--help`` prints them."""

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
       (with --output kafka-json this is 1, without any JSON, as in the stock tool)
  130  interrupted from the keyboard
  141  the reader of the output went away"""

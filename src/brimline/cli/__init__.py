"""The command line: one result, many renderings. It asks the other rooms and computes nothing itself.

Expected errors end in one sentence on stderr and a stable exit code; a traceback is for ``--debug`` only.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from brimline.cli.exit_codes import ExitCode
from brimline.cli.parser import build_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser(arguments)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as done:  # argparse has printed help, a version or what is wrong
        return done.code if isinstance(done.code, int) else ExitCode.DONE
    if args.command is None:
        parser.print_help(sys.stderr)
        return ExitCode.FAILED
    return _run(args, debug=args.debug or os.environ.get("BRIMLINE_DEBUG", "") not in ("", "0"))


def _run(args: Namespace, *, debug: bool) -> int:
    from brimline.cli.output import discard
    from brimline.model.failures import BrimlineError

    _set_up_logging(debug=debug)
    try:
        code: int = args.func(args)
        sys.stdout.flush()
    except BrimlineError as error:
        if debug:
            raise
        print(f"brimline: {error}", file=sys.stderr)
        return ExitCode.FAILED
    except BrokenPipeError:
        discard(sys.stdout)
        return ExitCode.PIPE_CLOSED
    except KeyboardInterrupt:
        if debug:
            raise
        return ExitCode.INTERRUPTED
    return code


def _set_up_logging(*, debug: bool) -> None:
    """The client library logs every retry; an operator reads one sentence instead, unless debugging."""
    import logging

    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    elif not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())

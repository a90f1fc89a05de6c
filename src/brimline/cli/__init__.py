"""The command line: one result, many renderings. It asks the other rooms and computes nothing itself.

Expected errors end in one sentence on stderr and a stable exit code; a traceback is for ``--debug`` only.

Nearly all of a short run is imports, and that is where a ctrl-C finds it: at the top stand only those that Python has
made already.
"""

import os
import sys

# Type checkers know the name. To import typing takes longer than everything else before `main`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command; returns the exit code."""
    debug = False
    try:
        arguments = sys.argv[1:] if argv is None else list(argv)
        debug = "--debug" in arguments or os.environ.get("BRIMLINE_DEBUG", "") not in ("", "0")
        return _run(arguments, debug=debug)
    except KeyboardInterrupt:
        if debug:
            raise
        return 130  # ExitCode.INTERRUPTED, whose import may be what was interrupted


def _run(arguments: "Sequence[str]", *, debug: bool) -> int:
    from brimline.cli.parser import build_parser
    from brimline.cli.shared.exit_codes import ExitCode

    _open_closed_streams()
    parser = build_parser(arguments)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as done:  # argparse has printed help, a version or what is wrong
        return done.code if isinstance(done.code, int) else ExitCode.DONE
    if args.command is None:
        parser.print_help(sys.stderr)
        return ExitCode.FAILED
    return _obey(args, debug=debug)


def _open_closed_streams() -> None:
    """A stream that the caller closed (``>&-``) is ``None``, has no methods, and ``print`` takes it for stdout.

    In the order of their numbers: each open takes the lowest that is free, so no later file or socket becomes stderr.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (open to the end)


def _obey(args: "Namespace", *, debug: bool) -> int:
    from brimline.cli.shared.exit_codes import ExitCode
    from brimline.cli.shared.output import discard
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
    return code


def _set_up_logging(*, debug: bool) -> None:
    """The client library logs every retry; an operator reads one sentence instead, unless debugging."""
    import logging

    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    elif not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())

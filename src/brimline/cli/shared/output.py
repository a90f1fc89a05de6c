"""Standard output as the renderings need it, and the one way to a rich console. A closed pipe is left to ``main``."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.text import Text

from brimline.model.failures import BrimlineError

_NARROWEST_TABLE = 60
_UNBOUNDED = 1_000_000
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[KMGTP]iB|B|ms|s|min|h|days?)\b)")
_GLUE = "\ue000"
"""A character of nobody's, for a space at which no line may break: rich breaks at a no-break space too."""


class _PassingOn(Console):
    def on_broken_pipe(self) -> None:
        """Called while a ``BrokenPipeError`` is handled. Rich's own would end the process with exit code 1."""
        raise BrokenPipeError


def console_on(out: TextIO) -> Console:
    """Without rich's guesses at what in a text is a number, markup or an emoji."""
    return _PassingOn(file=out, highlight=False, markup=False, emoji=False)


def room_on(console: Console) -> int:
    """How wide a table may be: without a terminal there is no width to keep."""
    return max(console.width, _NARROWEST_TABLE) if console.is_terminal else _UNBOUNDED


def print_hanging(console: Console, line: Text, indent: int) -> None:
    """In a terminal what does not fit goes on below the text, not at the margin; in a pipe a line stays a line."""
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        return
    first, rest = line[:indent], line[indent:]
    rest.plain = _BEFORE_UNIT.sub(_GLUE, rest.plain)
    for number, part in enumerate(rest.wrap(console, max(console.width - indent, indent))):
        part.rstrip()
        part.plain = part.plain.replace(_GLUE, " ")
        console.print(Text.assemble(" " * indent if number else first, part), soft_wrap=True)


@contextmanager
def writing_to(stream: TextIO, *, utf_8: bool) -> Iterator[TextIO]:
    """Write, and have it written at the end: a full disk is one sentence, a closed pipe is left to the caller.

    What programs read is UTF-8 whatever the locale says. What people read is in the locale's encoding, with an escape
    where it lacks a character. Lines end as the renderer wrote them.
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8" if utf_8 else None, errors="backslashreplace", newline="")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as failure:
        discard(stream)
        raise BrimlineError(f"cannot write the output: {failure.strerror}") from failure


def discard(stream: TextIO) -> None:
    """What is left in the buffer cannot be written: keep the interpreter from trying again on its way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

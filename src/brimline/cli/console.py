"""The one way to a rich console: it draws what it is given, and leaves a closed pipe to ``main``."""

from typing import TextIO

from rich.console import Console
from rich.text import Text


class _PassingOn(Console):
    def on_broken_pipe(self) -> None:
        """Called while a ``BrokenPipeError`` is handled. Rich's own would end the process with exit code 1."""
        raise BrokenPipeError


def console_on(out: TextIO) -> Console:
    """Without rich's guesses at what in a text is a number, markup or an emoji."""
    return _PassingOn(file=out, highlight=False, markup=False, emoji=False)


def print_hanging(console: Console, line: Text, indent: int) -> None:
    """In a terminal what does not fit goes on below the text, not at the margin; in a pipe a line stays a line."""
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        return
    first, rest = line[:indent], line[indent:]
    for number, part in enumerate(rest.wrap(console, max(console.width - indent, indent))):
        part.rstrip()
        console.print(Text.assemble(" " * indent if number else first, part), soft_wrap=True)

"""The one way to a rich console: it draws what it is given, and leaves a closed pipe to ``main``."""

from typing import TextIO

from rich.console import Console


class _PassingOn(Console):
    def on_broken_pipe(self) -> None:
        """Called while a ``BrokenPipeError`` is handled. Rich's own would end the process with exit code 1."""
        raise BrokenPipeError


def console_on(out: TextIO) -> Console:
    """Without rich's guesses at what in a text is a number, markup or an emoji."""
    return _PassingOn(file=out, highlight=False, markup=False, emoji=False)

"""Standard output, as the renderings need it."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from brimline.model.failures import BrimlineError


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

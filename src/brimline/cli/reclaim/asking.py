"""What ``brimline reclaim`` asks before a deletion (where nobody can be asked, the answer is no), and shows during it.

It shows what a cycle by hand is doing just now: one line on a terminal's stderr, nothing anywhere else.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from brimline.guard.reclaim.preview import Preview
from brimline.model import BrimlineError, counted, human_bytes, human_count

if TYPE_CHECKING:
    from brimline.guard.reclaim.hand import CycleProgress


def refuse_without_terminal(answers: TextIO) -> None:
    """Raises ``BrimlineError``."""
    if not answers.isatty():
        raise BrimlineError("nothing was deleted: no terminal to ask on; use --yes")


def consent(shown: Preview, answers: TextIO, questions: TextIO) -> bool:
    questions.write(f"{_question(shown)}\nDelete? Type yes to continue: ")
    questions.flush()
    return answers.readline().strip().lower() == "yes"


def _question(shown: Preview) -> str:
    partitions, segments, groups = len(shown.trims), shown.trimmed_segments, len(shown.radius.groups)
    what = (
        f"{human_bytes(shown.trimmed_bytes)} in {counted(segments, 'segment')} of "
        f"{counted(partitions, 'partition')}, at most {human_count(shown.radius.records)} "
        "records, will be deleted on every replica. This cannot be undone."
    )
    if groups:
        what += f"\n{counted(groups, 'consumer group')} would lose records."
    return what


_USUAL_WIDTH = 80  # of a terminal that does not say
_TO_LINE_START_AND_CLEAR = "\r\x1b[K"


@contextmanager
def status_on(stream: TextIO) -> Iterator[Callable[[str], None]]:
    """Every text takes the place of the one before; afterwards the line is empty again."""
    if not stream.isatty():
        yield lambda _: None
        return
    width = os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH

    def draw(text: str) -> None:
        # A line that ran over could not be cleared whole.
        stream.write(f"{_TO_LINE_START_AND_CLEAR}{text[: width - 1]}")
        stream.flush()

    try:
        yield draw
    finally:
        draw("")


def progress_text(progress: "CycleProgress", *, is_waiting: bool) -> str:
    trims = human_count(progress.trims)
    if progress.sent < progress.trims:
        return f"trimming: {human_count(progress.sent)} of {trims} partitions requested"
    if not is_waiting:
        return f"trimming: all {trims} partitions requested"
    return (
        f"waiting for the broker to remove the files: {human_bytes(progress.freed_bytes)} of "
        f"{human_bytes(progress.planned_bytes)} freed, {human_count(progress.ended)} of {trims} partitions"
    )

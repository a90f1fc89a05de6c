"""The characters a table is drawn with, and text made to fit: nothing here knows about Kafka."""

import textwrap
from dataclasses import dataclass
from typing import TextIO

_PROSE_WIDTH = 100
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyphs:
    full: str
    rest: str
    rule: str
    dot: str
    ellipsis: str
    branch: str
    last_branch: str
    cross: str
    superscripts: bool

    def bar(self, share: float, width: int) -> tuple[str, str]:
        """The filled and the empty part. Not quite full never looks full, and not quite empty never looks empty."""
        filled = round(min(max(share, 0.0), 1.0) * width)
        if share < 1.0:
            filled = min(filled, width - 1)
        if share > 0.0:
            filled = max(filled, 1)
        return self.full * filled, self.rest * (width - filled)

    def note_mark(self, number: int) -> str:
        return str(number).translate(_SUPERSCRIPTS) if self.superscripts else f"[{number}]"

    def without_middle(self, text: str, width: int) -> str:
        """For names whose end matters as much as their beginning, such as ``topic-17``."""
        if len(text) <= width:
            return text
        kept = max(width - len(self.ellipsis), 0)
        tail = (kept + 1) // 2
        return f"{text[: kept - tail]}{self.ellipsis}{text[len(text) - tail :]}"

    def without_beginning(self, text: str, width: int) -> str:
        """For paths, which differ at their end."""
        if len(text) <= width:
            return text
        return self.ellipsis + text[len(text) - max(width - len(self.ellipsis), 0) :]


UNICODE = Glyphs(
    full="█", rest="░", rule="─", dot="·", ellipsis="…", branch="├", last_branch="└", cross="✗", superscripts=True
)
ASCII = Glyphs(
    full="#", rest=".", rule="-", dot="-", ellipsis="...", branch="|", last_branch="|", cross="!", superscripts=False
)


def glyphs_for(stream: TextIO) -> Glyphs:
    """ASCII where the terminal's encoding has no box drawing."""
    try:
        "".join([UNICODE.full, UNICODE.cross, UNICODE.branch, "¹⁰"]).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def printable(text: str) -> str:
    """Names come from outside; none may move the cursor or change a colour."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def wrapped(mark: str, prose: str, room: int) -> list[str]:
    """Sentences behind a mark, no wider than the room, nor than is good to read."""
    width = min(room, _PROSE_WIDTH)
    return textwrap.wrap(printable(prose), width, initial_indent=mark, subsequent_indent=" " * len(mark))

"""An entry as a line of the ledger and back: one JSON object a line, the last of its members a checksum of the rest.

::

    {"v":1,"seq":7,"at":"2026-01-01T00:00:00.000Z","kind":"plan","cycle":"…", … ,"crc":"89abcdef"}

**Invariant.** A line whose checksum is right was written whole. Whatever else is at the end of a file (half a line,
zeros, nothing) was never confirmed to be on the disk, so nothing was sent because of it.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from zlib import crc32

from brimline.act.ledger_entries import Recorded
from brimline.act.ledger_reading import Fields, entry_of
from brimline.act.ledger_writing import document_of

_VERSION = 1
_CHECKSUM = b',"crc":"%08x"}'
_CHECKSUM_LENGTH = len(_CHECKSUM % 0)


class BadLine(ValueError):
    """A line that is no entry. ``is_whole``: it was written so, by another version; else it is damaged or cut short."""

    def __init__(self, message: str, *, is_whole: bool) -> None:
        super().__init__(message)
        self.is_whole = is_whole


def write_line(recorded: Recorded) -> bytes:
    """With its newline."""
    place = {"v": _VERSION, "seq": recorded.sequence, "at": time_text(recorded.at)}
    document = {**place, **document_of(recorded.entry)}
    body = json.dumps(document, separators=(",", ":")).encode()[:-1]
    return body + _CHECKSUM % crc32(body) + b"\n"


def read_line(line: bytes) -> Recorded:
    """Raises ``BadLine``. ``line`` is without its newline."""
    body = line[:-_CHECKSUM_LENGTH]
    if not body or line[len(body) :] != _CHECKSUM % crc32(body):
        raise BadLine("damaged or cut short", is_whole=False)
    try:
        fields = Fields(json.loads(body + b"}"))
        version = fields.number("v")
        if version == _VERSION:
            return Recorded(sequence=fields.number("seq"), at=read_time(fields.text("at")), entry=entry_of(fields))
    except (ValueError, KeyError, IndexError) as error:
        raise BadLine(f"no entry that this version knows ({error!r})", is_whole=True) from error
    raise BadLine(f"written by a later Brimline (version {version} of the format)", is_whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """``good_bytes``: up to the end of the last line that was written whole. ``damaged``: lines before that which count
    for nothing, and ``entries_before_damage``: the last of them stood behind so many entries."""

    recorded: tuple[Recorded, ...]
    good_bytes: int
    damaged: int
    entries_before_damage: int


def read_lines(content: bytes) -> Lines:
    """Raises ``BadLine`` for an entry of another version: what it means, and perhaps forbids, is not known."""
    recorded: list[Recorded] = []
    position = good = damaged = since_good = entries_before_damage = 0
    for line in content.split(b"\n")[:-1]:  # behind the last newline: nothing, or a line cut short
        position += len(line) + 1
        try:
            recorded.append(read_line(line))
        except BadLine as bad:
            if bad.is_whole:
                raise
            since_good += 1
        else:
            if since_good:
                entries_before_damage = len(recorded) - 1
            good, damaged, since_good = position, damaged + since_good, 0
    return Lines(
        recorded=tuple(recorded), good_bytes=good, damaged=damaged, entries_before_damage=entries_before_damage
    )


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""The ledger on disk: its lines, its files, and reading all of its history.

A line is one JSON object, the last of its members a checksum of the rest::

    {"v":1,"seq":7,"at":"2026-01-01T00:00:00.000Z","kind":"plan","cycle":"…", … ,"crc":"89abcdef"}

**Invariant.** A line whose checksum is right was written whole. Whatever else is at the end of a file (half a line,
zeros, nothing) was never confirmed to be on the disk, so nothing was sent because of it.

The files::

    ledger-1.jsonl                    what is written to
    ledger-1-000000004711.jsonl.gz    a part of the past, named after its last entry; nothing ever removes it
    ledger-1.lock                     held by whoever writes

**Invariant.** Every entry is in at least one file from the moment it is on the disk. An entry may be in two: the
present file begins with copies of what is still under way, and a rotation that was killed half-way leaves both the old
file and its compressed copy. Sequence numbers tell: whoever reads drops what it has seen.
"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zlib import crc32

from brimline.act.ledger.entries import Recorded
from brimline.act.ledger.reading import Fields, entry_of
from brimline.act.ledger.writing import document_of
from brimline.documents.codec import read_json
from brimline.model import BrimlineError
from brimline.model.times import read_time, time_text
from brimline.service.durable_files import open_state

_VERSION = 1
_CHECKSUM = b',"crc":"%08x"}'
_CHECKSUM_LENGTH = len(_CHECKSUM % 0)


class BadLine(ValueError):
    """A line that is no entry. ``is_whole``: it was written so, by another version; else it is damaged or truncated."""

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
        raise BadLine("damaged or truncated", is_whole=False)
    try:
        fields = Fields(read_json(object, body + b"}"))
        version = fields.number("v")
        if version == _VERSION:
            return Recorded(sequence=fields.number("seq"), at=read_time(fields.text("at")), entry=entry_of(fields))
    except (ValueError, KeyError, IndexError) as error:
        raise BadLine(f"no entry that this version knows ({error!r})", is_whole=True) from error
    raise BadLine(f"written by a later Brimline (format version {version})", is_whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLines:
    """``good_bytes``: up to the end of the last line that was written whole. ``damaged``: lines before that which count
    for nothing, and ``entries_before_damage``: the last of them stood behind so many entries."""

    recorded: tuple[Recorded, ...]
    good_bytes: int
    damaged: int
    entries_before_damage: int


def read_lines(content: bytes) -> LedgerLines:
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
    return LedgerLines(
        recorded=tuple(recorded), good_bytes=good, damaged=damaged, entries_before_damage=entries_before_damage
    )


_PART_SUFFIX = ".jsonl.gz"
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    folder: Path
    node_id: int

    @property
    def current(self) -> Path:
        return self.folder / f"ledger-{self.node_id}.jsonl"

    @property
    def lock(self) -> Path:
        return self.folder / f"ledger-{self.node_id}.lock"

    def part(self, last_sequence: int) -> Path:
        return self.folder / f"ledger-{self.node_id}-{last_sequence:0{_DIGITS}}{_PART_SUFFIX}"

    def parts(self) -> list[Path]:
        """The past, oldest first."""
        return sorted(self.folder.glob(f"ledger-{self.node_id}-{'[0-9]' * _DIGITS}{_PART_SUFFIX}"))

    def last_sequence_of_parts(self) -> int:
        """0: there is no past yet."""
        parts = self.parts()
        return int(parts[-1].name[: -len(_PART_SUFFIX)][-_DIGITS:]) if parts else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A place where the ledger does not tell what it should."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def read_history(files: LedgerFiles, since: datetime | None = None) -> Iterator[Recorded | Damage]:
    """Every entry once, in order. Parts that were closed before ``since`` are left out.

    Takes no lock: what is being written at this moment is left out, and a rotation meanwhile is noticed by nobody,
    because the present file is opened before the others are listed.
    """
    try:
        current = os.fdopen(open_state(files.current, os.O_RDONLY), "rb")
    except FileNotFoundError:
        raise BrimlineError(f"no ledger yet: {files.current} does not exist") from None
    except OSError as error:
        raise BrimlineError(f"{files.current} cannot be read: {error.strerror}") from error
    with current:
        last: int | None = None
        for place in _places(files, current, since):
            if isinstance(place, Damage):
                yield place
                continue
            where, recorded = place
            if last is not None and recorded.sequence <= last:
                continue
            if last is not None and recorded.sequence > last + 1:
                yield Damage(where=where, what=f"entries {last + 1} to {recorded.sequence - 1} are missing before it")
            last = recorded.sequence
            yield recorded


def _places(
    files: LedgerFiles, current: Iterable[bytes], since: datetime | None
) -> Iterator[tuple[str, Recorded] | Damage]:
    for part in files.parts():
        try:
            if since is not None and part.stat().st_mtime < since.timestamp():
                continue
            with os.fdopen(open_state(part, os.O_RDONLY), "rb") as packed, gzip.open(packed, "rb") as lines:
                yield from _entries(part, lines)
        except (OSError, EOFError) as error:
            yield Damage(where=str(part), what=f"cannot be read to its end ({error})")
    yield from _entries(files.current, current)


def _entries(path: Path, lines: Iterable[bytes]) -> Iterator[tuple[str, Recorded] | Damage]:
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            return  # being written, or cut short by a crash: whoever writes next takes it away
        where = f"{path} line {number}"
        try:
            yield where, read_line(line[:-1])
        except BadLine as bad:
            yield Damage(where=where, what=str(bad))

"""The ledger's files, and reading all of its history.

::

    ledger-1.jsonl                    what is written to
    ledger-1-000000004711.jsonl.gz    a part of the past, named after its last entry; nothing ever removes it
    ledger-1.lock                     held by whoever writes

**Invariant.** Every entry is in at least one file from the moment it is on the disk. An entry may be in two: the
present file begins with copies of what is still under way, and a rotation that was killed half-way leaves both the old
file and its compressed copy. Sequence numbers tell: whoever reads drops what it has seen.
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brimline.act.ledger_entries import Recorded
from brimline.act.ledger_lines import BadLine, read_line
from brimline.durable_files import open_state
from brimline.model import BrimlineError

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
        raise BrimlineError(f"there is no ledger yet: {files.current} does not exist") from None
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

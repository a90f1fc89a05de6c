"""Which of a batch's files are taken in, and why the others are not. Pure: facts in, verdict out.

Rules, in this order:

* a file that was refused before stays refused, and one that was taken in is not taken in again;
* what ``examine`` could not read is refused for its reason;
* a snapshot taken more than an hour after now is of a clock that is wrong: refused;
* a snapshot of a day that history has been thinned for comes too late: refused;
* a snapshot that is there already under another name is a duplicate: refused. Of several in one batch the first by
  name is taken.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

from brimline.fleet.ingest.file import Examined, taken_at
from brimline.landing.header import Header
from brimline.landing.seal import QuarantineReason
from brimline.model.reclaim import AN_HOUR_MS

FUTURE_TOLERANCE_MS = AN_HOUR_MS


class FleetReason(Enum):
    """Beside landing's reasons: what only a warehouse can tell."""

    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the warehouse says of the files of a batch."""

    snapshots: Mapping[str, str]
    """The file that each snapshot id was taken in from."""
    refused: Collection[str]
    """Files."""
    closed_before: date | None
    """History before this day has been thinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    path: str
    file_bytes: int
    header: Header


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFile:
    path: str
    reason: str
    detail: str
    header: Header | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    accepted: tuple[Accepted, ...]
    refused: tuple[RefusedFile, ...]


def judge(files: Iterable[Examined], known: Known, now: datetime) -> FileVerdict:
    accepted: list[Accepted] = []
    refused: list[RefusedFile] = []
    taken_from = dict(known.snapshots)
    for file in sorted(files, key=lambda each: each.path):
        if file.path in known.refused:
            continue
        if file.header is None or file.failure is not None:
            assert file.failure is not None, "a file without a header has a reason"
            refused.append(_refused(file, file.failure.reason, file.failure.detail))
            continue
        if taken_from.get(file.header.snapshot_id) == file.path:
            continue
        why = _objection(file.header, known, taken_from, now)
        if why is not None:
            refused.append(_refused(file, *why))
            continue
        taken_from[file.header.snapshot_id] = file.path
        accepted.append(Accepted(path=file.path, file_bytes=file.file_bytes, header=file.header))
    return FileVerdict(accepted=tuple(accepted), refused=tuple(refused))


def _objection(
    header: Header, known: Known, taken_from: Mapping[str, str], now: datetime
) -> tuple[QuarantineReason | FleetReason, str] | None:
    moment = taken_at(header)
    if header.taken_at_ms > int(now.timestamp() * 1000) + FUTURE_TOLERANCE_MS:
        return QuarantineReason.CLOCK_IN_FUTURE, f"taken at {moment.isoformat()}, more than an hour after now"
    if known.closed_before is not None and moment.date() < known.closed_before:
        return FleetReason.LATE, f"taken on {moment.date()}, and history before {known.closed_before} has been thinned"
    if header.snapshot_id in taken_from:
        return QuarantineReason.DUPLICATE, f"the same snapshot as {taken_from[header.snapshot_id]}"
    return None


def _refused(file: Examined, reason: QuarantineReason | FleetReason, detail: str) -> RefusedFile:
    return RefusedFile(path=file.path, reason=reason.value, detail=detail, header=file.header)

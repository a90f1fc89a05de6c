"""The brakes of other brokers' guards that counted here before this version: kept until a person confirms.

Versions before this one shared brakes through Kafka, where every client may write; nothing is shared any more. The
first look after such an upgrade reads the notes a last time. A pause becomes one of this broker, which ``brimline
reclaim resume`` ends. The others are filed here and go on to count until ``brimline.reclaim.brakes=own``::

    foreign-brakes-1.json   {"version": 1, "brokers": [2], "brakes": {"minRetentionMs": 86400000, …}}

**Invariant.** The file is there once the notes are known, even if nothing is in it: so they are read once, and a guard
that never was of a version before reads none. Notes that are there and cannot be had, or a file that cannot be read,
stop deleting; a right that is missing does not, for then they never counted.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from brimline.act.ledger.ledger import Ledger
from brimline.decide.reclaim.brakes import Brakes, is_quick, strictest
from brimline.documents.guard_state import PausedReclaim
from brimline.documents.state_files import read_state_file, read_versioned, write_state_file
from brimline.guard.followers.words import named_brokers
from brimline.model import BrokerId, Failure, FailureKind, ObservationFailed
from brimline.model.reclaim import ReclaimPolicy
from brimline.observe.cluster.group_notes import Note
from brimline.service.clock import Clock
from brimline.service.log_lines import say
from brimline.settings import keys
from brimline.settings.config import GuardConfig

VERSION = 1
COUNTED_FOR = timedelta(hours=24)
"""A note that was older did not count for the version before either."""
_END_IT = f"write what of it is wanted into this broker's file, then set {keys.RECLAIM_BRAKES.name}={keys.OWN}"


class NotesClient(Protocol):
    def replica_holders(self) -> Mapping[BrokerId, str]: ...

    def guard_notes(self, brokers: Collection[BrokerId]) -> Mapping[BrokerId, Note]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    version: int = VERSION
    written_at: datetime
    paused: PausedReclaim | None = None
    brakes: Brakes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = VERSION
    brokers: tuple[int, ...] = ()
    brakes: Brakes = field(default_factory=Brakes)


class InheritedBrakes:
    """For one thread. ``writes``: else nothing is filed or paused, as for a dry run."""

    def __init__(self, config: GuardConfig, client: NotesClient, clock: Clock, *, writes: bool) -> None:
        self._ledger = Ledger(config.state_dir, config.node_id, clock.now)
        self._path = config.state_dir / f"foreign-brakes-{config.node_id}.json"
        self._client = client
        self._clock = clock
        self._writes = writes
        self._is_upgrade = _may_be_there(self._ledger.files.current)
        self._kept: _Filed | None = None

    def policy(self, own: ReclaimPolicy) -> ReclaimPolicy:
        """Raises ``ObservationFailed`` or ``NotRecorded``: then nothing is to be planned."""
        if not own.shares_brakes:
            return own
        try:
            self._kept = read_state_file(_Filed, self._path, VERSION)
        except FileNotFoundError:
            self._kept = self._read_notes(self._client.replica_holders()) if self._is_upgrade else _Filed()
            if self._writes:
                write_state_file(self._path, self._kept)
        except (OSError, ValueError) as error:
            if isinstance(error, PermissionError) and not self._writes:
                return own  # whoever only looks need not read the state dir
            message = f"{self._path} cannot be read ({error}): it may hold brakes; {_END_IT}"
            raise ObservationFailed(Failure(kind=FailureKind.UNREADABLE, message=message)) from error
        return strictest(own, [self._kept.brakes])

    def sentences(self, own: ReclaimPolicy) -> tuple[str, ...]:
        kept = self._kept
        if kept is None or not own.shares_brakes or strictest(own, [kept.brakes]) == own:
            return ()
        told = f"brakes that {named_brokers(kept.brokers)} shared before the upgrade still count here"
        return (f"{told} ({', '.join(Brakes.of(own).lacks(kept.brakes))}): {_END_IT}",)

    def _read_notes(self, brokers: Collection[BrokerId]) -> _Filed:
        notes = {
            broker: noted
            for broker, note in (self._client.guard_notes(brokers) if brokers else {}).items()
            if (noted := self._counted(broker, note)) is not None
        }
        paused = next(((broker, each.paused) for broker, each in sorted(notes.items()) if each.paused), None)
        if paused is not None and self._writes and self._ledger.pause is None:
            broker, pause = paused
            assert pause is not None
            by = f"{pause.by} on broker {broker}, before the upgrade"
            self._ledger.pause_file.write(by=by, reason=pause.reason, since=pause.since)
        own = ReclaimPolicy()
        merged = Brakes.of(strictest(own, [each.brakes for each in notes.values()]))
        kept = _Filed(brokers=tuple(sorted(notes)), brakes=merged)
        if merged != Brakes() and self._writes:
            say(logging.WARNING, "reclaim-brakes-kept", f"kept from {named_brokers(kept.brokers)}: {_END_IT}")
        return kept

    def _counted(self, broker: BrokerId, note: Note) -> _Noted | None:
        if isinstance(note, Failure):
            if note.kind is FailureKind.NOT_AUTHORIZED:
                return None
            message = (
                f"which brakes broker {broker} shared before the upgrade is not known yet: {note}; if it shared none, "
                f"set {keys.RECLAIM_BRAKES.name}={keys.OWN}"
            )
            raise ObservationFailed(Failure(kind=note.kind, message=message))
        try:
            noted = None if note is None else read_versioned(_Noted, note, VERSION)
        except ValueError:
            return None  # it did not count before either
        is_usable = noted is not None and all(map(is_quick, noted.brakes.protected_topics))
        return noted if noted and is_usable and self._clock.now() - noted.written_at < COUNTED_FOR else None


def _may_be_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a state dir that this user may not enter: whoever plans is told of it
        return True

"""This guard's brakes, left in Kafka for the guards of other replicas (``peers`` is who reads them).

The note is left at the start, at every change and every hour, by a guard that has a ceiling and shares its brakes;
``pause`` and ``resume`` leave it at once. One that has given up its ceiling takes back what it has said.
"""

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import Pause
from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.guard_note import GuardNote, NotedPause, NoteRefused, note_text
from brimline.model import ObservationFailed
from brimline.model.reclaim import CEILING_OFF, ReclaimPolicy
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded
from brimline.service.log_lines import say

RENEWED_EVERY = 3600.0
_LOOK_EVERY = 5.0
_TRY_AGAIN = 30.0
_WHILE_ALONE = 60.0

_Said = tuple[Brakes, NotedPause | None]
_NOTHING: _Said = (Brakes(), None)


class NotePoster:
    """For one thread. ``leave`` raises ``ObservationFailed``, and tells whether there is anybody to read it."""

    def __init__(
        self, policy: Callable[[], ReclaimPolicy], ledger: Ledger, leave: Callable[[str], bool], clock: Clock
    ) -> None:
        self._policy = policy
        self._ledger = ledger
        self._leave = leave
        self._clock = clock
        self._left: _Said | None = None
        self._left_at = -math.inf
        self.problem: str | None = None

    def step(self) -> float:
        """How many seconds later to come back."""
        policy, now = self._policy(), self._clock.seconds()
        wanted = _said(policy, self._pause()) if is_shared(policy) else None
        is_left = wanted == self._left and (wanted is None or now - self._left_at < RENEWED_EVERY)
        if is_left:
            self._tell(None)
            return _LOOK_EVERY
        try:
            is_read = self._leave(_text(wanted or _NOTHING, self._clock.now()))
        except (ObservationFailed, NoteRefused) as error:
            self._tell(str(error))
            return _TRY_AGAIN
        self._tell(None)
        if not is_read:
            return _WHILE_ALONE
        self._left, self._left_at = wanted, now
        return _LOOK_EVERY

    def _pause(self) -> Pause | None:
        with suppress(NotRecorded):  # the pause's own file tells it all the same
            self._ledger.refresh()
        return self._ledger.pause

    def _tell(self, why: str | None) -> None:
        before, self.problem = self.problem, None if why is None else not_told(why)
        if self.problem is not None and self.problem != before:
            say(logging.WARNING, "reclaim-brakes-not-shared", self.problem)
        elif before is not None and self.problem is None:
            say(logging.INFO, "reclaim-brakes-shared", "this broker's brakes are shared with other guards")


def is_shared(policy: ReclaimPolicy) -> bool:
    return policy.shares_brakes and policy.ceiling_percent < CEILING_OFF


def current_note(policy: ReclaimPolicy, pause: Pause | None, now: datetime) -> str:
    """Raises ``NoteRefused``."""
    return _text(_said(policy, pause), now)


def not_told(why: str) -> str:
    return f"this broker's brakes cannot be shared with other guards: {why}"


def _said(policy: ReclaimPolicy, pause: Pause | None) -> _Said:
    return Brakes.of(policy), None if pause is None else NotedPause.of(pause.by, pause.reason, pause.since)


def _text(said: _Said, now: datetime) -> str:
    """While it is paused nothing goes, whatever is protected: a pause is told although the rest has no room."""
    brakes, paused = said
    try:
        return note_text(GuardNote(written_at=now, paused=paused, brakes=brakes))
    except NoteRefused:
        if paused is None:
            raise
        return note_text(GuardNote(written_at=now, paused=paused, brakes=Brakes()))

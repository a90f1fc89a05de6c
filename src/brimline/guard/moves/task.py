"""Moves into full log dirs: found, held up by ``act.move_pause``, and let go on when the log dir has room.

**Invariant.** While the guard enforces, moves are held up if and only if one of them goes into a full log dir, as of
the last look; a move that was begun since, and a throttle that somebody cleared, are found with the next look. A log
dir that cannot be watched or listed changes nothing: what is held up stays so. A guard that only observes holds up
nothing, and lets go what it held up when it was configured otherwise.

The broker is asked only while something is, or is to be, held up. ``decided`` only leaves a note and wakes the task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from brimline.act.move_pause import Hold, Pause
from brimline.decide.disk_state import DiskState
from brimline.disks.task import DiskReport
from brimline.model import Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.service.clock import Clock
from brimline.service.durable_files import NotRecorded

LOOK = 0.5
"""An unthrottled move writes up to 400 MB in this time; the look itself is a listing and one small request."""
RETRY_REFUSED = 30.0
"""A missing permission does not come by itself, and the broker logs every refusal."""
_UNTIL_WOKEN = 60.0
_REFUSALS = (FailureKind.NOT_AUTHORIZED, FailureKind.NOT_AUTHENTICATED)

MovesInto = Mapping[str, Sequence[TopicPartition]]
"""Full log dir → what is being moved into it."""


class MoveHolder(Protocol):
    """What holds the moves up; ``MovePause`` does it on a real broker."""

    @property
    def pause(self) -> Pause | None: ...

    def hold(self) -> Hold: ...

    def release(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """``is_held``: seen held up at the last look. ``failure``: why they could not be held up, or not let go on."""

    moves: MovesInto = field(default_factory=dict)
    is_held: bool = False
    hold: Hold | None = None
    """What there was to do for it."""
    pause: Pause | None = None
    failure: Failure | None = None

    @property
    def is_quiet(self) -> bool:
        """Nothing to speak of."""
        return not self.moves and self.pause is None and self.failure is None

    @property
    def partitions(self) -> frozenset[tuple[str, TopicPartition]]:
        return frozenset((log_dir, each) for log_dir, found in self.moves.items() for each in found)


class MovePauseTask:
    """``look`` lists the moves into a log dir; ``changed`` is told of every look, ``wake`` ends the wait before it."""

    def __init__(
        self,
        holder: MoveHolder,
        look: Callable[[str], Sequence[TopicPartition]],
        clock: Clock,
        wake: Callable[[], None],
        changed: Callable[[MoveReport], None],
        *,
        is_enforced: bool,
    ) -> None:
        self._holder = holder
        self._look = look
        self._clock = clock
        self._wake = wake
        self._changed = changed
        self._is_enforced = is_enforced
        self._states: Mapping[str, DiskState] = {}
        self._retry_at = clock.seconds()
        self.report = MoveReport(is_held=holder.pause is not None, pause=holder.pause)

    def decided(self, disks: DiskReport) -> None:
        """From any thread; returns at once."""
        states = disks.states
        is_news = states != self._states
        self._states = states
        if is_news:
            self._wake()

    def step(self) -> float:
        """Look, and do what is to be done; returns the seconds until the next look."""
        states = self._states
        full = [path for path, state in states.items() if state is DiskState.FULL]
        if not full and self.report.is_quiet:
            return _UNTIL_WOKEN
        moves, unlisted = self._moves_into(full)
        is_certain = unlisted is None and bool(states) and DiskState.UNKNOWN not in states.values()
        self._tell(self._acted(moves, is_certain=is_certain, unlisted=unlisted))
        return LOOK if full or not self.report.is_quiet else _UNTIL_WOKEN

    def _moves_into(self, full: Sequence[str]) -> tuple[MovesInto, Failure | None]:
        moves: dict[str, Sequence[TopicPartition]] = {}
        failure = None
        for path in full:
            try:
                found = self._look(path)
            except ObservationFailed as error:
                failure = error.failure
            else:
                if found:
                    moves[path] = found
        return moves, failure

    def _acted(self, moves: MovesInto, *, is_certain: bool, unlisted: Failure | None) -> MoveReport:
        is_to_hold = bool(moves) and self._is_enforced
        is_to_release = not is_to_hold and self._holder.pause is not None and (is_certain or not self._is_enforced)
        if (is_to_hold or is_to_release) and self._clock.seconds() < self._retry_at:
            return MoveReport(moves=moves, pause=self._holder.pause, failure=self.report.failure)
        try:
            if is_to_hold:
                hold = self._holder.hold()
                return MoveReport(moves=moves, is_held=True, hold=hold, pause=self._holder.pause, failure=unlisted)
            if is_to_release:
                self._holder.release()
        except ObservationFailed as error:
            return self._failed(moves, error.failure)
        except NotRecorded as error:
            return self._failed(moves, Failure(kind=FailureKind.UNREADABLE, message=str(error)))
        return MoveReport(
            moves=moves, is_held=self._holder.pause is not None, pause=self._holder.pause, failure=unlisted
        )

    def _failed(self, moves: MovesInto, failure: Failure) -> MoveReport:
        if failure.kind in _REFUSALS:
            self._retry_at = self._clock.seconds() + RETRY_REFUSED
        return MoveReport(moves=moves, pause=self._holder.pause, failure=failure)

    def _tell(self, report: MoveReport) -> None:
        self.report = report
        self._changed(report)

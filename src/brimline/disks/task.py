"""The disks of a broker: every log dir looked at from a thread of its own, every volume judged.

**Invariant** of a log dir. A file system that never answers costs exactly one thread, for ever, and nothing else: no
other log dir waits for it, no second look is started while one is under way, and the process can still end (the thread
is a daemon). Whoever asks for the reading gets one at once, always: the last answer, or, when a look has been under way
for longer than the stall timeout, a reading that says so. When the file system comes back, so do its readings, by
themselves.

A thread cannot be cancelled while it is inside a system call, so waiting for it with a timeout and starting another
would pile up threads until the process is out of them. Therefore nothing here waits.

**Invariant** of the task, which looks at every log dir when it is due and knows the state of every volume. ``step``
never blocks and never fails because of a file system. After every step the states are those that the newest readings
imply; a look that is overdue is a reading too, and its volume is UNKNOWN. Each volume has its own pace: one that nears
its limit is looked at often, its neighbours are not.

The limits of a volume are the operator's and, where they are known, its reserve and its fewest inodes
(``disks.reserves``). They are looked up at every judgement, so a guard and a gateway that read the same reserves have
the same limits.

The history of a volume (for its fill rate) belongs to the device, and ends when the device cannot be read: a rate must
not be drawn across a gap that nobody saw.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from brimline.decide.commits import is_past_line
from brimline.decide.disk_state import Breach, DiskLimits, DiskState, Space, breaches, bytes_to_limit, next_state
from brimline.decide.fill_rate import (
    READINGS_KEPT,
    Pace,
    UsableAt,
    fill_rate,
    look_before_inodes_run_out,
    next_look,
    seconds_left,
)
from brimline.model import Bytes
from brimline.model.failures import FailureKind
from brimline.observe.volumes import LogDirReading, VolumeReading, by_volume, look_at, stalled
from brimline.service.clock import Clock

Look = Callable[[str, str | None, datetime, float], LogDirReading]


class LogDirWatch:
    """``answered`` is called, from the watch's thread, whenever a look is over."""

    def __init__(self, path: str, clock: Clock, answered: Callable[[], None], look: Look = look_at) -> None:
        self.path = path
        self._clock = clock
        self._look = look
        self._answered = answered
        self._lock = threading.Lock()
        self._asked = threading.Semaphore(0)
        self._begun: float | None = None
        self._last: LogDirReading | None = None
        self._device: str | None = None
        threading.Thread(target=self._run, name=f"look-at-{path}", daemon=True).start()

    @property
    def is_looking(self) -> bool:
        with self._lock:
            return self._begun is not None

    def ask(self) -> bool:
        """Begin a look; ``False``, and nothing happens, while the last one is still under way."""
        with self._lock:
            if self._begun is not None:
                return False
            self._begun = self._clock.seconds()
        self._asked.release()
        return True

    def reading(self, stall_timeout: float) -> LogDirReading | None:
        """What is known now; ``None`` only before the first answer, as long as that is not overdue."""
        with self._lock:
            waited = 0.0 if self._begun is None else self._clock.seconds() - self._begun
            if waited >= stall_timeout:
                overdue = stalled(self.path, self._device, self._clock.now(), self._clock.seconds(), waited)
                return replace(overdue, answered=self._last.answered if self._last else None)
            return self._last

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            begun = self._clock.seconds()
            reading = self._look(self.path, self._device, self._clock.now(), begun)
            answered = self._clock.seconds()
            with self._lock:
                self._last = replace(reading, answered=answered, took=answered - begun)
                self._device = reading.device
                self._begun = None
            self._answered()


_LONGEST_WAIT = 1.0
"""A step is cheap, and a stalled file system does not wake anybody: so there is one every second at least."""
_RETRY_UNKNOWN = 5.0
"""A volume that cannot be read is not protected: do not wait a whole check interval to find it back."""
_APART = 0.05
"""Two log dirs of one volume are read within microseconds: a rate drawn between those would be noise."""

NO_RESERVE = Bytes(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSettings:
    """``ballast_reserve``: usable bytes below which a ballast is given back; like a limit it is neared with frequent
    looks.
    """

    limits: DiskLimits
    pace: Pace
    stall_timeout: float
    ballast_reserve: Bytes = NO_RESERVE


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeStatus:
    """A volume as the guard sees it now. ``fill_rate`` is bytes a second; ``seconds_left`` is until the limit.

    ``fullness`` is OK, FULL or UNKNOWN, by these ``limits``; ``offline`` has those of its log dirs that the broker
    holds offline.
    """

    reading: VolumeReading
    fullness: DiskState
    breaches: tuple[Breach, ...]
    bytes_to_limit: Bytes | None
    fill_rate: float | None
    seconds_left: float | None
    next_look: float
    limits: DiskLimits = field(default_factory=DiskLimits)
    offline: frozenset[str] = frozenset()

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.reading.log_dirs

    @property
    def state(self) -> DiskState:
        return DiskState.OFFLINE if self.offline >= set(self.log_dirs) else self.fullness

    def state_of(self, log_dir: str) -> DiskState:
        return DiskState.OFFLINE if log_dir in self.offline else self.fullness


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReport:
    """All volumes after one step. ``limits`` are the operator's own, before reserves; ``checked`` is when, on the
    monotonic clock."""

    volumes: tuple[VolumeStatus, ...] = ()
    limits: DiskLimits
    checked: float = 0.0

    @property
    def states(self) -> dict[str, DiskState]:
        """By log dir."""
        return {path: volume.state_of(path) for volume in self.volumes for path in volume.log_dirs}

    @property
    def offline(self) -> frozenset[str]:
        return frozenset(path for volume in self.volumes for path in volume.offline)

    @property
    def full_log_dirs(self) -> tuple[str, ...]:
        return tuple(path for volume in self.volumes if volume.fullness is DiskState.FULL for path in volume.log_dirs)

    def past_line(self, percent: int, before: frozenset[str]) -> frozenset[str]:
        """Log dirs of full volumes with less than so much of what they must keep free. One that gives no reading any
        more stays what it was ``before``."""
        return frozenset(
            path
            for volume in self.volumes
            for path in volume.log_dirs
            if volume.fullness is DiskState.FULL
            and (
                path in before
                if (space := space_of(volume.reading)) is None
                else is_past_line(space, volume.limits, percent)
            )
        )


@dataclass(slots=True)
class _Place:
    """What is remembered of one log dir between steps."""

    watch: LogDirWatch
    due: float = 0.0
    is_wanted: bool = False
    paced_by: float | None = None
    state: DiskState = DiskState.UNKNOWN
    announced: DiskState | None = None
    announced_failure: FailureKind | None = None


@dataclass(slots=True)
class _History:
    readings: deque[UsableAt] = field(default_factory=lambda: deque(maxlen=READINGS_KEPT))

    def add(self, reading: VolumeReading) -> None:
        newer = not self.readings or reading.seconds >= self.readings[-1].seconds + _APART
        if newer and reading.usable_bytes is not None:
            self.readings.append(UsableAt(reading.seconds, reading.usable_bytes))


LimitsOf = Callable[[VolumeReading, DiskLimits], DiskLimits]


class DiskTask:
    """``changed`` is told of every volume whose state differs from the one before, of the first state, and of a full
    volume that gives no reading any more."""

    def __init__(
        self,
        log_dirs: Sequence[str],
        settings: DiskSettings,
        clock: Clock,
        wake: Callable[[], None],
        changed: Callable[[DiskState, VolumeStatus], None],
        look: Look = look_at,
        limits_of: LimitsOf = lambda _reading, limits: limits,
    ) -> None:
        """``limits_of`` adds to the operator's limits what is worked out for a volume."""
        self.settings = settings
        self.offline: Collection[str] = ()
        """The log dirs that the broker holds offline; replaced from any thread."""
        self._limits_of = limits_of
        self._clock = clock
        self._changed = changed
        self._places = {path: _Place(LogDirWatch(path, clock, wake, look)) for path in log_dirs}
        self._histories: dict[str, _History] = {}
        self.report = DiskReport(limits=settings.limits)

    def look_now(self) -> None:
        """Everything is looked at again, by a look that begins after this call. From any thread."""
        for place in self._places.values():
            place.is_wanted = True

    def has_answers(self) -> bool:
        """Whether every log dir has a reading, or is overdue."""
        return all(place.watch.reading(self.settings.stall_timeout) is not None for place in self._places.values())

    def step(self) -> float:
        """Ask what is due, judge what is there; returns how many seconds later to come back at the latest."""
        readings = [self._reading(place) for place in self._places.values()]
        volumes = tuple(self._judge(volume) for volume in by_volume(reading for reading in readings if reading))
        self.report = DiskReport(volumes=volumes, limits=self.settings.limits, checked=self._clock.seconds())
        self._forget_devices_that_are_gone(volumes)
        self._announce(volumes)
        self._ask_what_is_due()
        now = self._clock.seconds()
        idle = [place for place in self._places.values() if not place.watch.is_looking]
        waits = [0.0 if place.is_wanted else place.due - now for place in idle]
        return min([_LONGEST_WAIT, *(max(wait, 0.0) for wait in waits)])

    def _reading(self, place: _Place) -> LogDirReading | None:
        return place.watch.reading(self.settings.stall_timeout)

    def _judge(self, reading: VolumeReading) -> VolumeStatus:
        history = self._histories.setdefault(reading.device, _History())
        history.add(reading)
        readings = list(history.readings)
        space = space_of(reading)
        limits = self._limits_of(reading, self.settings.limits)
        # Log dirs that were apart and now share a device: full if one of them was.
        was = [self._places[path].state for path in reading.log_dirs]
        is_gone = reading.failure is not None and reading.failure.kind is FailureKind.GONE
        state = next_state(DiskState.FULL if DiskState.FULL in was else was[0], space, limits, is_gone=is_gone)
        distance = None if space is None else bytes_to_limit(space, limits)
        rate = fill_rate(readings) if space is not None else None
        wait = self._next_look(readings, space, distance)
        if space is not None and space.usable_files is not None and limits.min_free_files:
            wait = look_before_inodes_run_out(wait, space.usable_files - limits.min_free_files, self.settings.pace)
        if space is None:
            wait = min(wait, _RETRY_UNKNOWN)
        for path in reading.log_dirs:
            place = self._places[path]
            place.state = state
            if place.paced_by != reading.seconds:  # a reading sets the next look once
                place.paced_by = reading.seconds
                place.due = reading.seconds + wait
        return VolumeStatus(
            reading=reading,
            fullness=state,
            limits=limits,
            offline=frozenset(self.offline).intersection(reading.log_dirs),
            breaches=() if space is None else breaches(space, limits),
            bytes_to_limit=distance,
            fill_rate=rate,
            seconds_left=seconds_left(distance, rate),
            next_look=wait,
        )

    def _next_look(self, readings: list[UsableAt], space: Space | None, distance: Bytes | None) -> float:
        wait = next_look(readings, distance, self.settings.pace)
        if space is None or not self.settings.ballast_reserve:
            return wait
        until_reserve = Bytes(space.usable - self.settings.ballast_reserve)
        return min(wait, next_look(readings, until_reserve, self.settings.pace))

    def _forget_devices_that_are_gone(self, volumes: Sequence[VolumeStatus]) -> None:
        readable = {volume.reading.device for volume in volumes if volume.reading.failure is None}
        self._histories = {device: kept for device, kept in self._histories.items() if device in readable}

    def _announce(self, volumes: Sequence[VolumeStatus]) -> None:
        for volume in volumes:
            places = [self._places[path] for path in volume.log_dirs]
            failure = None if volume.reading.failure is None else volume.reading.failure.kind
            was = next((place.announced for place in places if place.announced is not volume.state), volume.state)
            fails_anew = failure is not None and any(place.announced_failure is not failure for place in places)
            if was is not volume.state or (fails_anew and volume.state is DiskState.FULL):
                self._changed(was or DiskState.UNKNOWN, volume)
            for place in places:
                place.announced, place.announced_failure = volume.state, failure

    def _ask_what_is_due(self) -> None:
        now = self._clock.seconds()
        for place in self._places.values():
            is_wanted, place.is_wanted = place.is_wanted, False
            if (is_wanted or place.due <= now) and not place.watch.ask() and is_wanted:
                place.is_wanted = True  # the look under way may have read before it was wanted


def space_of(reading: VolumeReading) -> Space | None:
    if reading.total_bytes is None or reading.usable_bytes is None:
        return None
    return Space(
        total=reading.total_bytes,
        usable=reading.usable_bytes,
        total_files=reading.total_files,
        usable_files=reading.usable_files,
    )

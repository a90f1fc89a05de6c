"""The broker's log cleaner, held near a limit by settings that are borrowed from the broker (``act.borrowed``).

``log.cleaner.min.cleanable.ratio=1`` lets no cleaning begin, because Kafka asks for more than that; its threads live,
and retention of compacted topics goes on. A change of ``log.cleaner.backoff.ms`` restarts the cleaner's threads, which
ends a cleaning under way at its next chunk; both go into one request, and stay while it is held, so that a broker that
is started again is held, too. ``log.cleaner.io.max.bytes.per.second`` is never the hold: Kafka would sleep it out in
one uninterruptible sleep, under the lock of all cleaner threads. It is the pace of a window, set while nothing runs.

The coordinators' topics go on being cleaned, by a ratio of their own and with a deletion delay of a second: what
compaction removes there is nearly all of it, and nobody can refuse what is written to them.

What was tried, on which versions: docs/reserve.md.
"""

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from brimline.act.borrowed import BorrowedSettings, DynamicValues
from brimline.decide.cleaner_hold import CleanedVolume, HoldMemory, HoldState, next_hold
from brimline.decide.disk_state import DiskState
from brimline.disks.reserves import Reserves
from brimline.disks.task import DiskReport
from brimline.documents.notices import Notice, Weight
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.reserve import STATE_DELETE_DELAY, STATE_TOPICS
from brimline.metrics import catalogue
from brimline.model import Bytes, Failure, FailureKind, ObservationFailed
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.cleaner_settings import ask_cleaner_settings
from brimline.observe.cluster.dynamic_values import BROKER, TOPIC, Place, Values, alter_values, own_values
from brimline.service.durable_files import NotRecorded
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings.config import GuardConfig

RATIO, BACKOFF = "log.cleaner.min.cleanable.ratio", "log.cleaner.backoff.ms"
DELETE_DELAY, PACE = "log.segment.delete.delay.ms", "log.cleaner.io.max.bytes.per.second"
HELD_RATIO = "1.00"
BACKOFFS = ("1013", "1014")
"""Written as nobody else writes them, so that they are known as ours where the record is lost; two, because each hold
needs a change."""
WINDOW_DELAY, PACE_MARK = "1013", ".013"
"""The same of a window's settings."""
STATE_RATIO = "0.5"
_LOOK, _LOOK_IN_WINDOW, _LOOK_WHILE_FREE = 0.5, 0.25, 30.0
_RETRY_REFUSED = 30.0
_CHECK_RIGHTS = 600.0
_PATIENCE = timedelta(seconds=10)
WINDOW_AFTER = 75.0
"""Seconds: Kafka's deletion delay of a minute and its cleaner's backoff."""
_WINDOW_OPENS = 5.0
"""Seconds until one opens where there is room for it."""
_REVERTED_TOO_OFTEN = 3
_NEEDED = ("cleaner", "coordinators")
"""Parts of the reserve that are written while the cleaner is held."""
_HELD = (HoldState.HELD, HoldState.ENDED)
_HELD_TEXT = (
    f"the log cleaner is held ({RATIO}={HELD_RATIO}) because a disk is at its limit; it goes on by itself when there "
    "is room"
)
_REFUSALS = (FailureKind.NOT_AUTHORIZED, FailureKind.NOT_AUTHENTICATED, FailureKind.UNSUPPORTED)


class CleanerValues(DynamicValues, Protocol):
    """What is asked of the broker; every method raises ``ObservationFailed``."""

    def check(self, values: Values) -> None:
        """Whether it could be altered so; changes nothing."""

    def pace(self) -> float | None:
        """What the cleaner may read and write in a second, whoever has set it; ``None`` without a limit."""


class CleanerClient(Reconnecting):
    """Asks a real one."""

    def __init__(self, config: GuardConfig) -> None:
        super().__init__(config.admin)
        self._broker = config.node_id

    def own_values(self, places: Collection[Place]) -> Values:
        with self.connected() as connection:
            return own_values(connection, self._broker, places, Deadline(_PATIENCE))

    def alter(self, values: Values) -> None:
        with self.connected() as connection:
            alter_values(connection, self._broker, values, Deadline(_PATIENCE))

    def check(self, values: Values) -> None:
        with self.connected() as connection:
            alter_values(connection, self._broker, values, Deadline(_PATIENCE), only_check=True)

    def pace(self) -> float | None:
        with self.connected() as connection:
            return ask_cleaner_settings(connection, self._broker, Deadline(_PATIENCE)).bytes_per_second


def _is_ours(value: str) -> bool:
    return value in (HELD_RATIO, *BACKOFFS, WINDOW_DELAY) or value.endswith(PACE_MARK)


def hold_record(config: GuardConfig) -> Path:
    return config.state_dir / f"cleaner-hold-{config.node_id}.json"


def _by_hand(config: GuardConfig) -> str:
    return (
        f"put back what {hold_record(config)} says was there before: kafka-configs.sh --bootstrap-server HOST:PORT "
        f"--entity-type brokers --entity-name {config.node_id} --alter …, then delete that file"
    )


def wanted_settings(
    state: HoldState, broker: int, backoff: str, pace: str = "", *, with_topics: bool = True
) -> dict[Place, str]:
    if state is HoldState.FREE:
        return {}
    own = str(broker)
    delay = str(int(STATE_DELETE_DELAY * 1000))
    wanted = {}
    if state is HoldState.WINDOW:
        wanted[Place(BROKER, own, DELETE_DELAY)] = WINDOW_DELAY
        if pace:
            wanted[Place(BROKER, own, PACE)] = pace
    else:
        wanted[Place(BROKER, own, RATIO)] = HELD_RATIO
    if backoff:
        wanted[Place(BROKER, own, BACKOFF)] = backoff
    for topic in STATE_TOPICS if with_topics else ():
        wanted[Place(TOPIC, topic, "min.cleanable.dirty.ratio")] = STATE_RATIO
        wanted[Place(TOPIC, topic, "file.delete.delay.ms")] = delay
    return wanted


def cleaned_volumes(disks: DiskReport, reserves: Reserves) -> list[CleanedVolume]:
    """Those that hold anything that is compacted, or of which that is not known. Not those that the broker holds
    offline: its cleaner leaves them alone."""
    found = []
    for volume in disks.volumes:
        reserve, usable, distance = reserves.of(volume.log_dirs), volume.reading.usable_bytes, volume.bytes_to_limit
        parts = {part.what: part.bytes for part in reserve.parts} if reserve else {}
        groups = sum(size for what, size in parts.items() if what in _NEEDED)
        if volume.offline.issuperset(volume.log_dirs) or (reserve is not None and not groups):
            continue
        if usable is None and volume.fullness is DiskState.FULL:
            found.append(CleanedVolume(usable=-1))
        elif usable is not None and distance is not None:
            kept = usable - distance
            if reserve is not None:
                kept = min(kept, max(reserve.bytes, volume.limits.min_free_bytes))
            rate = max(volume.fill_rate or 0.0, 0.0)
            passes = parts.get("passes", Bytes(0))
            found.append(CleanedVolume(usable=usable, kept=kept, groups=groups, passes=passes, fill_rate=rate))
    return found


class CleanerHold(Feature):
    name = "cleaner"

    def __init__(self, core: Core, client: CleanerValues | None = None) -> None:
        super().__init__(core)
        config = core.config
        self._client = client or CleanerClient(config)
        self._borrowed = BorrowedSettings(
            self._client,
            hold_record(config),
            core.clock.now,
            wanted_settings(HoldState.ENDED, core.broker, BACKOFFS[0])
            | wanted_settings(HoldState.WINDOW, core.broker, BACKOFFS[0], PACE_MARK),
        )
        kept = self._borrowed.places.get(self._place(BACKOFF))
        self._backoff = kept.ours[-1] if kept else ""
        self._pace = ""
        was_held = HoldState.ENDED if kept else HoldState.HELD if self._borrowed.places else HoldState.FREE
        self._memory = HoldMemory(state=was_held, since=core.clock.seconds(), emptier=core.clock.seconds())
        self._applied: HoldState | None = None
        self._with_topics = True
        self._failure: Failure | None = None
        self._retry_at = self._check_at = core.clock.seconds()
        self._worker = Worker(self.name, self.step, at_end=self._say_what_stays)
        self.workers = [self._worker]

    @property
    def warnings(self) -> Sequence[str]:
        return self._borrowed.warnings

    def decided(self, disks: DiskReport) -> None:
        if self._next(disks).state is not self._memory.state:
            self._worker.wake()

    def step(self) -> float:
        core, now = self.core, self.core.clock.seconds()
        before = self._memory
        self._memory = self._next(core.disks) if core.config.holds_cleaner else HoldMemory()
        state = self._memory.state
        if state is HoldState.WINDOW:
            core.look_at_disks()
        if state is not HoldState.FREE or self._borrowed.places:
            self._apply(state)
        elif core.config.holds_cleaner and (before.state is not state or now >= self._check_at):
            self._check_rights()
        core.is_cleaner_held = bool(self._borrowed.places)
        is_refused = self._failure is not None and self._failure.kind in (*_REFUSALS, FailureKind.UNREADABLE)
        core.can_hold_cleaner = core.config.holds_cleaner and not is_refused and not self._is_reverted
        is_held = self._place(RATIO) in self._borrowed.places and (state is HoldState.FREE or self._failure is None)
        core.board.put(catalogue.CLEANER_HELD.single(int(is_held)))
        if state is HoldState.FREE:
            return _LOOK if self._borrowed.places else _LOOK_WHILE_FREE
        return _LOOK_IN_WINDOW if state is HoldState.WINDOW else _LOOK

    def _place(self, key: str) -> Place:
        return Place(BROKER, str(self.core.broker), key)

    def _say_what_stays(self) -> None:
        """A guard that ends leaves it held: a broker that dies is worse, and the next guard gives it back."""
        if self._borrowed.places:
            say(logging.WARNING, "cleaner-stays-held", f"the log cleaner stays held: {_by_hand(self.core.config)}")

    @property
    def _is_reverted(self) -> bool:
        return self._borrowed.reverted >= _REVERTED_TOO_OFTEN

    def _next(self, disks: DiskReport) -> HoldMemory:
        volumes = cleaned_volumes(disks, self.core.reserves)
        return next_hold(self._memory, volumes, self.core.clock.seconds(), WINDOW_AFTER)

    def _apply(self, state: HoldState) -> None:
        now = self.core.clock.seconds()
        if now < self._retry_at:
            return
        if state is HoldState.ENDED and self._applied is not state:
            # Never that of the hold before: for a moment after it was given back the broker still has it
            self._backoff = next(each for each in BACKOFFS if each != self._backoff)
        backoff = "" if state is HoldState.HELD else self._backoff
        try:
            if state is HoldState.WINDOW and self._applied is not state:
                theirs = self._client.pace()
                is_slower = theirs is not None and theirs <= self._memory.pace
                self._pace = "" if is_slower else f"{self._memory.pace}{PACE_MARK}"
            self._take(wanted_settings(state, self.core.broker, backoff, self._pace, with_topics=self._with_topics))
            self._applied, self._failure = state, None
        except ObservationFailed as error:
            self._failure = error.failure
            if error.failure.kind in _REFUSALS:
                self._retry_at = now + _RETRY_REFUSED
        except NotRecorded as error:
            self._failure = Failure(kind=FailureKind.UNREADABLE, message=str(error))

    def _take(self, wanted: dict[Place, str]) -> None:
        try:
            self._borrowed.take(wanted)
        except ObservationFailed as error:
            if error.failure.kind not in _REFUSALS:
                raise
            self._borrowed.forget_refused(TOPIC if self._with_topics else BROKER)
            if not self._with_topics:
                raise
            # Without rights on the coordinators' topics the broker's own settings can still be had
            self._with_topics = False
            self._take({place: value for place, value in wanted.items() if place.resource == BROKER})

    def _check_rights(self) -> None:
        """Whether it could be held is known before it must be: the reserve depends on it. What a guard has left whose
        state dir is lost is found here, too, and given back with the next step."""
        self._check_at = self.core.clock.seconds() + _CHECK_RIGHTS
        wanted = wanted_settings(HoldState.ENDED, self.core.broker, BACKOFFS[0], with_topics=False)
        window = wanted_settings(HoldState.WINDOW, self.core.broker, "", PACE_MARK, with_topics=False)
        try:
            self._client.check(wanted)
            found = self._client.own_values(wanted | window)
            self._borrowed.adopt({place: value for place, value in found.items() if value and _is_ours(value)})
            self._failure, self._with_topics = None, True
        except ObservationFailed as error:
            self._failure = error.failure
            self._check_at = self.core.clock.seconds() + _RETRY_REFUSED
        except NotRecorded as error:
            self._failure = Failure(kind=FailureKind.UNREADABLE, message=str(error))

    def notices(self) -> Sequence[Notice]:
        found = []
        state = self._memory.state
        if self._failure is not None and state is HoldState.FREE and self._borrowed.places:
            found.append(
                self._notice(
                    "stays",
                    Weight.PROBLEM,
                    "HELD",
                    f"the log cleaner stays held, because what was borrowed cannot be given back: {self._failure}",
                    _by_hand(self.core.config),
                )
            )
        elif not self.core.config.holds_cleaner:
            return ()
        elif self._failure is not None and (state is not HoldState.FREE or self._failure.kind in _REFUSALS):
            found.append(
                self._notice(
                    "failed",
                    Weight.PROBLEM if state is not HoldState.FREE else Weight.WARNING,
                    "CLEANER",
                    f"the log cleaner cannot be held when a disk is full: {self._failure}",
                    "the reserve counts it instead; docs/reserve.md names the rights",
                )
            )
        elif state is not HoldState.FREE and self._is_reverted:
            found.append(
                self._notice(
                    "reverted",
                    Weight.WARNING,
                    "CLEANER",
                    f"somebody takes back {RATIO} and {BACKOFF} of this broker: the log cleaner is not held for long",
                    "the reserve counts it instead; leave these keys alone while a disk is full",
                )
            )
        elif self._memory.is_stuck(self.core.clock.seconds(), WINDOW_AFTER + _WINDOW_OPENS):
            found.append(
                self._notice(
                    "stuck",
                    Weight.WARNING,
                    "HELD",
                    "the log cleaner is held, and there is no room for its next group: what only compaction can remove "
                    "stays",
                    "make room: delete a topic, or shorten the retention of one that is not compacted",
                )
            )
        elif state in _HELD:
            found.append(self._notice("held", Weight.NOTE, "HELD", _HELD_TEXT))
        elif state is HoldState.WINDOW:
            found.append(
                self._notice(
                    "window",
                    Weight.NOTE,
                    "CLEANS",
                    "the disk gets no emptier by itself: the log cleaner runs while there is room for its next group",
                )
            )
        if not self._with_topics and self._failure is None and state is not HoldState.FREE:
            found.append(
                self._notice(
                    "topics",
                    Weight.WARNING,
                    "CLEANER",
                    f"{', '.join(STATE_TOPICS)} are not compacted while the cleaner is held: this principal needs "
                    "ALTER_CONFIGS and DESCRIBE_CONFIGS on these topics",
                )
            )
        return found

    def _notice(self, key: str, weight: Weight, word: str, text: str, cure: str = "") -> Notice:
        since = self._borrowed.since
        facts = {"state": self._memory.state.value, "since": since}
        return Notice(feature=self.name, key=key, weight=weight, word=word, text=text, cure=cure, facts=facts)

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        config = looked.config
        if os.path.exists(hold_record(config)):  # noqa: PTH110 (no error where it may not be read)
            sentence = f"the log cleaner is held; a guard gives it back when there is room, else {_by_hand(config)}"
            yield Finding(topic="limits", weight=Weight.NOTE, sentence=sentence)
        if not (looked.broker_answers and config.holds_cleaner):
            return
        client = CleanerClient(config)
        places = wanted_settings(HoldState.ENDED, config.node_id, BACKOFFS[0])
        try:
            found = client.own_values(places)
            client.check({place: value for place, value in places.items() if place in found})
        except ObservationFailed as error:
            sentence = f"the log cleaner cannot be held near a limit, so the reserve counts it: {error}"
            yield Finding(topic="permissions", weight=Weight.WARNING, sentence=sentence)
        finally:
            client.close()

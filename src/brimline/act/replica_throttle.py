"""Holds replicas of a full disk that are not in sync by their leader's replication throttle, and lets them go on.

Where a follower cannot be skipped, one that lags, or was newly put there, fetches its backlog until its disk is full.
The leader's throttle at one byte a second stops it wholly; a follower in sync is exempt from it. Its rate is the whole
broker's, so it is used only where nobody else uses it.

**Invariant.** What is ours is on disk before it is set, and taken back before it is forgotten. Nothing was there before
us, so putting back is taking away. As soon as anybody else's rate or list is seen (``*`` included), ours is withdrawn,
and theirs is not touched. So a guard that is killed between any two steps finds, when it is started again, what to take
back, and takes away only what still is as it set it.

::

    throttle-1.json   {"version": 1, "topics": {"orders": [0, 2]}, "since": "…Z"}

Set in the order record, lists, rate; taken back in the order rate, lists, record: a list without a rate does nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from brimline.documents.state_files import LaterVersion, read_state_file, remove_state_file, write_state_file
from brimline.model import BrokerId
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.alter_broker_config import alter_own_dynamic_value
from brimline.observe.cluster.replication_throttle import RATE, SeenThrottle, alter_lists, look_at_throttle

OUR_RATE = "1"
_VERSION = 1
_PATIENCE = timedelta(seconds=10)

Partitions = Mapping[str, tuple[int, ...]]
"""Topic → numbers."""


class ThrottleSetting(Protocol):
    """What is asked of the cluster; ``LeaderThrottle`` asks a real one. Methods raise ``ObservationFailed``."""

    def look(self) -> SeenThrottle: ...

    def alter_lists(self, lists: Mapping[str, str | None]) -> None: ...

    def alter_rate(self, value: str | None) -> None: ...


class LeaderThrottle(Reconnecting):
    def __init__(self, config: ClientConfig, broker: BrokerId) -> None:
        super().__init__(config)
        self._broker = broker

    def look(self) -> SeenThrottle:
        with self.connected() as connection:
            return look_at_throttle(connection, self._broker, Deadline(_PATIENCE))

    def alter_lists(self, lists: Mapping[str, str | None]) -> None:
        with self.connected() as connection:
            alter_lists(connection, self._broker, lists, Deadline(_PATIENCE))

    def alter_rate(self, value: str | None) -> None:
        with self.connected() as connection:
            alter_own_dynamic_value(connection, self._broker, RATE, value, Deadline(_PATIENCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    topics: Partitions
    since: datetime

    @property
    def partitions(self) -> int:
        return sum(map(len, self.topics.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = _VERSION
    topics: Partitions
    since: datetime


class ThrottleRecord:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    @classmethod
    def of(cls, state_dir: Path, broker: BrokerId) -> "ThrottleRecord":
        return cls(state_dir / f"throttle-{broker}.json")

    def read(self, now: datetime) -> Held | None:
        """``None``: nothing is ours. A file that cannot be understood tells that the rate is."""
        self.warnings = []
        try:
            filed = read_state_file(_Filed, self.path, _VERSION)
            return Held(topics=filed.topics, since=filed.since)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.warnings = [
                f"{self.path} cannot be read ({error.strerror}): a throttle of an earlier guard may still be set"
            ]
            return None
        except ValueError as error:
            what = error if isinstance(error, LaterVersion) else "damaged"
            self.warnings = [f"{self.path} is {what}: {RATE} is removed if it is {OUR_RATE}, topic lists stay"]
            return Held(topics={}, since=now)

    def write(self, held: Held) -> None:
        write_state_file(self.path, _Filed(topics=held.topics, since=held.since))

    def remove(self) -> None:
        remove_state_file(self.path)


class ReplicaThrottle:
    """For one thread. Methods raise ``ObservationFailed`` or ``NotRecorded``; the next call goes on from there."""

    def __init__(
        self, setting: ThrottleSetting, record: ThrottleRecord, broker: BrokerId, now: Callable[[], datetime]
    ) -> None:
        self._setting = setting
        self._record = record
        self._broker = broker
        self._now = now
        self.held = record.read(now())

    @property
    def warnings(self) -> list[str]:
        return self._record.warnings

    def hold(self, wanted: Partitions) -> str | None:
        """What is wanted is held, and nothing else; or whose throttle is in the way, and then nothing is ours."""
        seen = self._setting.look()
        foreign = self._not_ours(seen)
        if foreign is not None:
            self._take_back(seen)
            return foreign
        before = self.held or Held(topics={}, since=self._now())
        lists: dict[str, str | None] = {
            name: self._listed(numbers)
            for name, numbers in wanted.items()
            if _entries(seen.lists.get(name, "")) != _entries(self._listed(numbers))
        }
        lists |= {name: None for name in seen.lists if name not in wanted}
        if lists or seen.own_rate is None or before.topics != wanted:
            self._keep(Held(topics=_both(before.topics, wanted), since=before.since))
            self._setting.alter_lists(lists)
            if seen.own_rate is None:
                self._setting.alter_rate(OUR_RATE)
            self._keep(Held(topics=dict(wanted), since=before.since))
        return None

    def release(self) -> None:
        if self.held is not None:
            self._take_back(self._setting.look())

    def _take_back(self, seen: SeenThrottle) -> None:
        if self.held is None:
            return
        if seen.own_rate == OUR_RATE:
            self._setting.alter_rate(None)
        self._setting.alter_lists({name: None for name, text in seen.lists.items() if self._is_ours(name, text)})
        self._record.remove()
        self.held = None

    def _not_ours(self, seen: SeenThrottle) -> str | None:
        own = seen.own_rate
        theirs = [*seen.other_rates, *([own] if own is not None and (self.held is None or own != OUR_RATE) else [])]
        if theirs:
            return f"{RATE}={theirs[0]}"
        lists = [
            f"a list of topic {name} ({text})" for name, text in seen.lists.items() if not self._is_ours(name, text)
        ]
        return lists[0] if lists else None

    def _is_ours(self, topic: str, text: str) -> bool:
        numbers = () if self.held is None else self.held.topics.get(topic, ())
        return _entries(text) <= _entries(self._listed(numbers))

    def _listed(self, numbers: Iterable[int]) -> str:
        return ",".join(f"{number}:{self._broker}" for number in sorted(numbers))

    def _keep(self, held: Held) -> None:
        self._record.write(held)
        self.held = held


def _entries(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _both(first: Partitions, second: Partitions) -> Partitions:
    """While one is replaced by the other, either may stand."""
    return {name: tuple(sorted({*first.get(name, ()), *second.get(name, ())})) for name in sorted({*first, *second})}

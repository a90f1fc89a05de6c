"""Dynamic settings of the broker that are ours for a while, and are given back as they were.

**Invariant.** What stood in a place before us is on disk before the value there is ours, and is put back before it is
forgotten. So a guard that is killed between any two steps finds, when it is started again, either nothing to do or what
to put back:

==================  ==================  ===================================  =====================================
on record           the own value       to take                              / to give back
==================  ==================  ===================================  =====================================
nothing             ours                leave it: somebody else's            / leave it
nothing             anything, or none   record it, set ours                  / leave it
before us           ours                it stands                            / put back, forget
before us           the same            set ours (we were killed)            / put back again, forget
before us           another one         record that one, set ours            / leave it to them, forget
==================  ==================  ===================================  =====================================

The last line: an operator has changed the setting meanwhile. In the one before it a value that we have just set may not
be visible yet, which is why it is put back though it seems to stand there already.

A file that cannot be understood still tells that settings are ours: then nothing was there before, which leaves no
broker with our values for ever::

    cleaner-hold-1.json   {"version": 1, "since": "…Z", "places": [{"resource": "broker", "name": "1",
                           "key": "log.cleaner.min.cleanable.ratio", "ours": ["1"], "before": null}]}
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from brimline.documents.state_files import LaterVersion, read_state_file, remove_state_file, write_state_file
from brimline.observe.cluster.dynamic_values import Place, Values

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowedPlace:
    """``ours``: every value that we have set there since; ``before``: what is put back."""

    resource: str
    name: str
    key: str
    ours: tuple[str, ...]
    before: str | None

    @property
    def place(self) -> Place:
        return Place(self.resource, self.name, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    version: int = _VERSION
    since: datetime
    places: tuple[BorrowedPlace, ...]


class DynamicValues(Protocol):
    """What is asked of the broker; both raise ``ObservationFailed``."""

    def own_values(self, places: Collection[Place]) -> Values: ...

    def alter(self, values: Values) -> None: ...


class BorrowedSettings:
    """For one thread. Methods raise ``ObservationFailed`` or ``NotRecorded``; the next call goes on from there.

    ``if_damaged``: what may be ours when the file cannot be understood.
    """

    def __init__(
        self, values: DynamicValues, path: Path, now: Callable[[], datetime], if_damaged: Mapping[Place, str]
    ) -> None:
        self._values = values
        self._path = path
        self._now = now
        self.since: datetime | None = None
        """Since when anything is ours."""
        self.warnings: list[str] = []
        self.places: dict[Place, BorrowedPlace] = {}
        self.reverted = 0
        """How often a value that stood as ours was another one when it was looked at again."""
        self._stood: set[Place] = set()
        self._read(if_damaged)

    def take(self, wanted: Mapping[Place, str]) -> bool:
        """These and no others are to be ours; whether anything had to be changed. Places of topics that do not exist
        are left out."""
        found = self._values.own_values([*wanted, *self.places])
        changes: dict[Place, str | None] = {}
        places = dict(self.places)
        for place, value in wanted.items():
            if place not in found:
                places.pop(place, None)
                continue
            there, kept = found[place], self.places.get(place)
            if there == value:
                self._stood.add(place)
                continue  # it stands, or is somebody else's
            if place in self._stood and kept is not None and there not in kept.ours:
                self.reverted += 1
            self._stood.discard(place)
            before = there if kept is None or there not in (*kept.ours, kept.before) else kept.before
            ours = tuple(dict.fromkeys((*(kept.ours if kept else ()), value)))
            places[place] = BorrowedPlace(
                resource=place.resource, name=place.name, key=place.key, ours=ours, before=before
            )
            changes[place] = value
        returned = self._returned(found, self.places.keys() - wanted.keys())
        self._stood -= returned.keys()
        self._record(places)
        self._values.alter({**changes, **returned})
        self._record({place: kept for place, kept in places.items() if place in wanted})
        return bool(changes or returned)

    def give_back(self) -> bool:
        """Whether there was anything to give back."""
        return self.take({}) if self.places else False

    def adopt(self, found: Values) -> None:
        """These are ours, though no record says so; what was there before is not known."""
        self._record({**self.places, **{place: _without_past(place, value) for place, value in found.items() if value}})

    def forget_refused(self, resource: str) -> None:
        """Of this kind of resource what never became ours: the right to change it is missing."""
        found = self._values.own_values(list(self.places))
        ours = {place for place, kept in self.places.items() if found.get(place) in kept.ours}
        self._record(
            {place: kept for place, kept in self.places.items() if place.resource != resource or place in ours}
        )

    def _returned(self, found: Values, places: Collection[Place]) -> dict[Place, str | None]:
        kept = ((place, self.places[place]) for place in places if place in found)
        return {place: each.before for place, each in kept if found[place] in (*each.ours, each.before)}

    def _record(self, places: Mapping[Place, BorrowedPlace]) -> None:
        if places == self.places:
            return
        if places:
            since = self.since or self._now()
            write_state_file(self._path, _Filed(since=since, places=tuple(places.values())))
            self.since = since
        else:
            remove_state_file(self._path)
            self.since = None
        self.places = dict(places)

    def _read(self, if_damaged: Mapping[Place, str]) -> None:
        try:
            filed = read_state_file(_Filed, self._path, _VERSION)
        except FileNotFoundError:
            return
        except OSError as error:
            self.warnings.append(f"{self._path} cannot be read ({error.strerror}): settings may still be borrowed")
            return
        except ValueError as error:
            what = error if isinstance(error, LaterVersion) else "damaged"
            self.warnings.append(f"{self._path} is {what}: its settings are removed when they are given back")
            filed = _Filed(
                since=self._now(),
                places=tuple(_without_past(place, value) for place, value in if_damaged.items()),
            )
        self.since = filed.since
        self.places = {each.place: each for each in filed.places}


def _without_past(place: Place, value: str) -> BorrowedPlace:
    return BorrowedPlace(resource=place.resource, name=place.name, key=place.key, ours=(value,), before=None)

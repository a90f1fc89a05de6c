"""Settings that are borrowed: every line of the table, and ``kill -9`` after every step."""

import json
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.act.borrowed import BorrowedSettings
from brimline.model import Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.dynamic_values import BROKER, TOPIC, Place, Values
from brimline.service.durable_files import NotRecorded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RATIO = Place(BROKER, "1", "log.cleaner.min.cleanable.ratio")
BACKOFF = Place(BROKER, "1", "log.cleaner.backoff.ms")
OF_TOPIC = Place(TOPIC, "__consumer_offsets", "min.cleanable.dirty.ratio")
WANTED = {RATIO: "1", BACKOFF: "1013"}


class Killed(BaseException):
    """Nobody catches it."""


class Broker:
    """Values in memory. ``dies_at``: the guard is killed at this request; ``before``: before or after it counts."""

    def __init__(self, **values: str) -> None:
        self.values: dict[Place, str] = {}
        self.topics = {"__consumer_offsets"}
        self.asked = 0
        self.changes: list[Values] = []
        self.dies_at: tuple[int, bool] | None = None
        self.problem: ObservationFailed | None = None

    def own_values(self, places: Collection[Place]) -> Values:
        if self.problem is not None:
            raise self.problem
        known = [each for each in places if each.resource == BROKER or each.name in self.topics]
        return {place: self.values.get(place) for place in known}

    def alter(self, values: Values) -> None:
        if not values:
            return
        self.asked += 1
        if self.dies_at == (self.asked, True):
            raise Killed
        self.changes.append(dict(values))
        for place, value in values.items():
            if value is None:
                self.values.pop(place, None)
            else:
                self.values[place] = value
        if self.dies_at == (self.asked, False):
            raise Killed


@pytest.fixture
def broker() -> Broker:
    return Broker()


def borrowed(broker: Broker, folder: Path) -> BorrowedSettings:
    return BorrowedSettings(broker, folder / "hold.json", lambda: NOW, WANTED)


def test_what_was_there_comes_back(broker: Broker, tmp_path: Path) -> None:
    broker.values[BACKOFF] = "30000"
    settings = borrowed(broker, tmp_path)

    assert settings.take(WANTED)
    assert broker.values == WANTED
    assert len(broker.changes) == 1, "both in one request"

    assert settings.give_back()
    assert broker.values == {BACKOFF: "30000"}
    assert list(tmp_path.iterdir()) == []


def test_taken_again_nothing_changes(broker: Broker, tmp_path: Path) -> None:
    settings = borrowed(broker, tmp_path)
    settings.take(WANTED)

    assert not settings.take(WANTED)
    assert len(broker.changes) == 1


def test_what_somebody_else_has_set_so_is_left_to_them(broker: Broker, tmp_path: Path) -> None:
    broker.values[RATIO] = "1"
    settings = borrowed(broker, tmp_path)

    settings.take(WANTED)
    settings.give_back()

    assert broker.values == {RATIO: "1"}


def test_what_somebody_sets_meanwhile_is_theirs_when_it_is_given_back(broker: Broker, tmp_path: Path) -> None:
    settings = borrowed(broker, tmp_path)
    settings.take(WANTED)
    broker.values[RATIO] = "0.3"

    settings.give_back()

    assert broker.values == {RATIO: "0.3"}


def test_what_somebody_takes_back_is_taken_again_and_then_theirs(broker: Broker, tmp_path: Path) -> None:
    settings = borrowed(broker, tmp_path)
    settings.take(WANTED)
    broker.values[RATIO] = "0.3"

    assert settings.take(WANTED)
    assert broker.values == WANTED
    settings.give_back()

    assert broker.values == {RATIO: "0.3"}


def test_other_settings_replace_those_before_in_one_request(broker: Broker, tmp_path: Path) -> None:
    settings = borrowed(broker, tmp_path)
    settings.take(WANTED)

    settings.take({BACKOFF: "1014"})

    assert broker.values == {BACKOFF: "1014"}
    assert len(broker.changes) == 2
    settings.give_back()
    assert broker.values == {}


def test_a_topic_that_does_not_exist_is_left_out(broker: Broker, tmp_path: Path) -> None:
    broker.topics.clear()
    settings = borrowed(broker, tmp_path)

    settings.take({**WANTED, OF_TOPIC: "0.5"})

    assert broker.values == WANTED


def test_a_topic_that_is_deleted_meanwhile_holds_nothing_up(broker: Broker, tmp_path: Path) -> None:
    settings = borrowed(broker, tmp_path)
    settings.take({**WANTED, OF_TOPIC: "0.5"})
    broker.topics.clear()

    settings.give_back()

    assert set(broker.values) == {OF_TOPIC}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("request_number", [1, 2])
@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("goes_on", [True, False])
def test_killed_anywhere_it_ends_as_it_began(
    broker: Broker, tmp_path: Path, request_number: int, *, is_before: bool, goes_on: bool
) -> None:
    broker.values[BACKOFF] = "30000"
    broker.dies_at = (request_number, is_before)
    settings = borrowed(broker, tmp_path)
    with suppress(Killed):
        settings.take(WANTED)
        settings.give_back()
    assert broker.asked == request_number

    again = borrowed(broker, tmp_path)
    if goes_on:
        again.take(WANTED)
        assert broker.values == WANTED
    again.give_back()

    assert broker.values == {BACKOFF: "30000"}
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_changed_that_is_not_on_record(broker: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.write_text("a file where the folder should be")
    settings = borrowed(broker, folder)

    with pytest.raises(NotRecorded):
        settings.take(WANTED)

    assert broker.values == {}


def test_a_damaged_record_still_lets_go(broker: Broker, tmp_path: Path) -> None:
    borrowed(broker, tmp_path).take(WANTED)
    (tmp_path / "hold.json").write_text("{")

    settings = borrowed(broker, tmp_path)
    settings.give_back()

    assert settings.warnings
    assert broker.values == {}


def test_the_record_says_what_was_before(broker: Broker, tmp_path: Path) -> None:
    broker.values[BACKOFF] = "30000"
    borrowed(broker, tmp_path).take(WANTED)

    filed = json.loads((tmp_path / "hold.json").read_text())

    assert filed["version"] == 1
    assert {each["key"]: (each["ours"], each["before"]) for each in filed["places"]} == {
        RATIO.key: (["1"], None),
        BACKOFF.key: (["1013"], "30000"),
    }


def test_a_broker_without_an_answer_changes_nothing(broker: Broker, tmp_path: Path) -> None:
    settings = borrowed(broker, tmp_path)
    settings.take(WANTED)
    broker.problem = ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="gone"))

    with pytest.raises(ObservationFailed):
        settings.give_back()

    broker.problem = None
    settings.give_back()
    assert broker.values == {}

"""The guards of other replicas: what they want kept is kept here, and a pause of theirs is one here."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.entries import GivenUp
from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.guard_note import GuardNote, NotedPause, note_text
from brimline.guard.reclaim.peers import COUNTS_FOR_MS
from brimline.guard.reclaim.report import Doing
from brimline.guard.reclaim.survey import Surveyor
from brimline.model import BrokerId, Failure, FailureKind
from brimline.model.reclaim import ReclaimPolicy
from tests.guard.reclaim.brokers import Guarded, SmallBroker, SmallLock
from tests.service.ticking import TickingClock

TWO, THREE = BrokerId(2), BrokerId(3)
REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="no permission: this principal needs DESCRIBE")
SINCE = datetime(2026, 1, 30, tzinfo=UTC)
PAUSED = NotedPause.of("root", "a replay", SINCE)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def broker(tmp_path: Path, clock: TickingClock) -> SmallBroker:
    """Used to 60 %, of which 10 % are beyond the ceiling: five segments, of two topics in turns."""
    made = SmallBroker(tmp_path, clock, bills=8, orders=8)
    made.fill_to(60)
    return made


@pytest.fixture
def guarded(broker: SmallBroker, tmp_path: Path, clock: TickingClock) -> Iterator[Guarded]:
    made = Guarded(broker, tmp_path / "state", clock)
    made.settings = replace(made.settings, policy=replace(made.settings.policy, shares_brakes=True))
    yield made
    made.kill()
    SmallLock.holder, SmallLock.is_waited_for = None, False


def left(clock: TickingClock, paused: NotedPause | None = None, **brakes: object) -> str:
    return note_text(GuardNote(written_at=clock.now(), paused=paused, brakes=Brakes(**brakes)))  # type: ignore[arg-type]


def trimmed(broker: SmallBroker) -> set[str]:
    return {topic for topic, start in broker.log_starts.items() if start}


def test_what_another_guard_protects_stays(guarded: Guarded, broker: SmallBroker, clock: TickingClock) -> None:
    broker.notes = {TWO: left(clock, protected_topics=("bil.*",)), THREE: left(clock)}

    report = guarded.run(600)

    assert trimmed(broker) == {"orders"}
    assert report.brakes == ("stricter brakes of the guards of broker 2 apply here too",)


def test_own_brakes_ask_nobody(guarded: Guarded, broker: SmallBroker, clock: TickingClock) -> None:
    guarded.settings = replace(guarded.settings, policy=ReclaimPolicy(ceiling_percent=50))
    broker.notes = {TWO: left(clock, PAUSED)}

    guarded.run(600)

    assert trimmed(broker) == {"bills", "orders"}
    assert broker.asked_for_notes == []


def test_nobody_is_asked_where_no_other_broker_has_a_replica(guarded: Guarded, broker: SmallBroker) -> None:
    guarded.run(600)

    assert trimmed(broker) == {"bills", "orders"}
    assert broker.asked_for_notes == []


def test_a_pause_of_another_guard_holds_until_it_ends(
    guarded: Guarded, broker: SmallBroker, clock: TickingClock
) -> None:
    broker.notes = {TWO: left(clock, PAUSED)}

    paused = guarded.run(600)

    assert (paused.doing, broker.requests) == (Doing.PAUSED, [])
    assert paused.pause is not None
    assert paused.pause.who == "root on broker 2"
    assert SmallLock.holder is None, "whoever shares the volume may go on"
    assert len(guarded.said("reclaim-paused")) == 1
    assert "resume: brimline reclaim resume on broker 2" in guarded.said("reclaim-paused")[0]["message"]

    broker.notes = {TWO: left(clock)}
    after = guarded.run(600)

    assert trimmed(broker) == {"bills", "orders"}
    assert after.pause is None
    assert len(guarded.said("reclaim-resumed")) == 1


def test_a_pause_in_the_middle_of_a_cycle_stops_the_next_batch(
    guarded: Guarded, broker: SmallBroker, clock: TickingClock
) -> None:
    broker.notes = {TWO: left(clock)}

    def somebody_pauses() -> None:
        broker.notes = {TWO: left(clock, PAUSED)}
        clock.tick(10)

    broker.before_trim = somebody_pauses
    guarded.run(120)

    sent = sum(map(len, broker.requests))
    why = [trim.why for entry in guarded.entries() if isinstance(entry, GivenUp) for trim in entry.trims]
    assert sent == 1, "one batch, which was on its way"
    assert why == ["paused by root on broker 2: a replay (resume: brimline reclaim resume on broker 2)"]


def test_what_was_known_counts_while_nobody_answers_and_a_note_grows_old(
    broker: SmallBroker, clock: TickingClock
) -> None:
    own = ReclaimPolicy(ceiling_percent=50, shares_brakes=True)
    surveyor, log_dirs = Surveyor(broker, clock, broker.disk), [str(broker.log_dir)]
    broker.notes = {TWO: left(clock, min_retention_ms=7)}
    believed = surveyor.survey(own, log_dirs).tables.tables.devices[0].believed_ms
    assert believed is not None, "the newest record is older than the note, and time is counted from there"

    broker.notes = {TWO: REFUSED}
    known = surveyor.survey(own, log_dirs)
    clock.tick((COUNTS_FOR_MS + clock.now().timestamp() * 1000 - believed) / 1000)
    old = surveyor.survey(own, log_dirs)

    assert (known.policy.min_retention_ms, list(known.peers.unknown)) == (7, [])
    assert old.policy.min_retention_ms == 0
    assert list(old.peers.unknown) == [
        "brakes of the guards of broker 2 unknown, not applied here: no permission: this principal needs DESCRIBE"
    ]


@pytest.mark.parametrize("note", ["{", '{"version": 2}', REFUSED], ids=["damaged", "later", "refused"])
def test_a_note_that_cannot_be_read_stops_nobody_and_is_told(
    guarded: Guarded, broker: SmallBroker, note: str | Failure
) -> None:
    broker.notes = {TWO: note}

    report = guarded.run(600)

    assert trimmed(broker) == {"bills", "orders"}
    assert len(report.brakes) == 1
    assert report.brakes[0].startswith("brakes of the guards of broker 2 unknown, not applied here: ")


def test_who_was_refused_once_is_not_waited_for_again(guarded: Guarded, broker: SmallBroker) -> None:
    broker.notes = {TWO: REFUSED}

    guarded.run(600)

    assert broker.asked_for_notes[0]
    assert not any(broker.asked_for_notes[1:])


def test_a_clock_that_is_ahead_makes_no_note_old(broker: SmallBroker, clock: TickingClock) -> None:
    own = ReclaimPolicy(ceiling_percent=50, shares_brakes=True)
    surveyor, log_dirs = Surveyor(broker, clock, broker.disk), [str(broker.log_dir)]
    broker.notes = {TWO: left(clock, PAUSED)}
    surveyor.survey(own, log_dirs)
    jumped = clock.now() + timedelta(days=3)
    clock.now = lambda: jumped  # type: ignore[method-assign]

    assert surveyor.survey(own, log_dirs).peers.pause is not None


def test_a_note_that_cannot_be_understood_counts_as_it_was_before(
    guarded: Guarded, broker: SmallBroker, clock: TickingClock
) -> None:
    broker.notes = {TWO: left(clock, PAUSED)}
    guarded.run(60)
    broker.notes = {TWO: "{}"}

    guarded.run(600)

    assert trimmed(broker) == set()

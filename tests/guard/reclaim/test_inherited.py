"""Brakes of other guards that counted before the upgrade: kept until a person confirms, and never read again."""

import json
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.ledger import Ledger, PauseFile
from brimline.guard.reclaim import inherited
from brimline.guard.reclaim.inherited import InheritedBrakes
from brimline.model import BrokerId, Failure, FailureKind, ObservationFailed
from brimline.model.reclaim import ReclaimPolicy
from brimline.observe.cluster.group_notes import Note
from brimline.settings.config import GuardConfig
from tests.guard.files import config as config_of
from tests.service.ticking import TickingClock

TWO, THREE = BrokerId(2), BrokerId(3)
OWN = ReclaimPolicy(ceiling_percent=50, shares_brakes=True)
REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="GROUP_AUTHORIZATION_FAILED")
AWAY = Failure(kind=FailureKind.KAFKA_ERROR, message="COORDINATOR_NOT_AVAILABLE")


class Cluster:
    def __init__(self, **notes: Note) -> None:
        self.notes = {BrokerId(int(name[1:])): note for name, note in notes.items()}
        self.asked = 0

    def replica_holders(self) -> Mapping[BrokerId, str]:
        return dict.fromkeys(self.notes, "somewhere")

    def guard_notes(self, brokers: Collection[BrokerId]) -> Mapping[BrokerId, Note]:
        self.asked += 1
        return {broker: self.notes[broker] for broker in brokers}


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def config(tmp_path: Path, clock: TickingClock) -> GuardConfig:
    """Of a broker whose guard has run before."""
    made = config_of(f"brimline.state.dir={tmp_path}\n")
    ledger = Ledger(made.state_dir, made.node_id, clock.now)
    ledger.refresh()
    ledger.close()
    return made


def note(clock: TickingClock, *, hours_old: float = 0, paused: bool = False, **brakes: object) -> str:
    """As the version before wrote it."""
    written = (clock.now() - timedelta(hours=hours_old)).isoformat().replace("+00:00", "Z")
    pause = {"by": "root", "reason": "legal hold", "since": written} if paused else None
    return json.dumps({"version": 1, "writtenAt": written, "paused": pause, "brakes": brakes})


def test_they_are_kept_and_nothing_is_read_again(config: GuardConfig, clock: TickingClock) -> None:
    cluster = Cluster(_2=note(clock, protectedTopics=["audit"], minRetentionMs=7), _3=note(clock))
    first = InheritedBrakes(config, cluster, clock, writes=True)
    kept = first.policy(OWN)
    cluster.notes = {TWO: note(clock), THREE: note(clock, minRetentionMs=9)}

    later = InheritedBrakes(config, cluster, clock, writes=True)

    assert (kept.protected_topics, kept.min_retention_ms) == (("audit",), 7)
    assert later.policy(OWN) == kept
    assert cluster.asked == 1
    (sentence,) = later.sentences(OWN)
    assert "brimline.reclaim.protected.topics=audit" in sentence


def test_a_person_confirms_by_the_file(config: GuardConfig, clock: TickingClock) -> None:
    inherited = InheritedBrakes(config, Cluster(_2=note(clock, protectedTopics=["audit"])), clock, writes=True)
    inherited.policy(OWN)
    alone = ReclaimPolicy(ceiling_percent=50)
    alike = ReclaimPolicy(ceiling_percent=50, shares_brakes=True, protected_topics=("audit",))

    assert inherited.policy(alone) == alone
    assert inherited.sentences(alone) == inherited.sentences(alike) == ()


def test_a_pause_becomes_one_of_this_broker(config: GuardConfig, clock: TickingClock) -> None:
    InheritedBrakes(config, Cluster(_2=note(clock, paused=True)), clock, writes=True).policy(OWN)

    pause = PauseFile(config.state_dir, config.node_id).read()
    assert pause is not None
    assert pause.by.startswith("root on broker 2")
    assert pause.reason == "legal hold"


def test_a_dry_run_sees_them_and_leaves_nothing(config: GuardConfig, clock: TickingClock) -> None:
    before = sorted(config.state_dir.iterdir())
    inherited = InheritedBrakes(config, Cluster(_2=note(clock, paused=True, minRetentionMs=7)), clock, writes=False)

    assert inherited.policy(OWN).min_retention_ms == 7
    assert sorted(config.state_dir.iterdir()) == before


def test_a_guard_that_never_ran_before_believes_no_note(tmp_path: Path, clock: TickingClock) -> None:
    config, cluster = (
        config_of(f"brimline.state.dir={tmp_path / 'new'}\n"),
        Cluster(_2=note(clock, paused=True, minRetentionMs=7)),
    )
    config.state_dir.mkdir(parents=True, exist_ok=True)

    inherited = InheritedBrakes(config, cluster, clock, writes=True)

    assert (inherited.policy(OWN), cluster.asked) == (OWN, 0)
    assert PauseFile(config.state_dir, config.node_id).read() is None


@pytest.mark.parametrize("text", [None, REFUSED, "no note", "{}"])
def test_what_did_not_count_before_does_not_now(config: GuardConfig, clock: TickingClock, text: Note) -> None:
    assert InheritedBrakes(config, Cluster(_2=text), clock, writes=True).policy(OWN) == OWN


def test_neither_does_an_old_note_nor_one_that_is_slow_to_match(config: GuardConfig, clock: TickingClock) -> None:
    slow = note(clock, protectedTopics=["(a|b)*c"])
    cluster = Cluster(_2=note(clock, hours_old=25, minRetentionMs=7), _3=slow)

    assert InheritedBrakes(config, cluster, clock, writes=True).policy(OWN) == OWN


def test_notes_that_cannot_be_had_stop_deleting_until_they_can(config: GuardConfig, clock: TickingClock) -> None:
    cluster = Cluster(_2=AWAY)
    inherited = InheritedBrakes(config, cluster, clock, writes=True)
    with pytest.raises(ObservationFailed, match=r"brimline\.reclaim\.brakes=own"):
        inherited.policy(OWN)
    cluster.notes = {TWO: note(clock, minRetentionMs=7)}

    assert inherited.policy(OWN).min_retention_ms == 7


def test_so_does_a_file_that_cannot_be_read(config: GuardConfig, clock: TickingClock) -> None:
    (config.state_dir / "foreign-brakes-7.json").write_text('{"version": 2}')
    with pytest.raises(ObservationFailed, match=r"brimline\.reclaim\.brakes=own"):
        InheritedBrakes(config, Cluster(), clock, writes=True).policy(OWN)


def test_whoever_only_looks_need_not_read_the_state_dir(
    config: GuardConfig, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(inherited, "read_state_file", refused)

    assert InheritedBrakes(config, Cluster(), clock, writes=False).policy(OWN) == OWN
    with pytest.raises(ObservationFailed):
        InheritedBrakes(config, Cluster(), clock, writes=True).policy(OWN)

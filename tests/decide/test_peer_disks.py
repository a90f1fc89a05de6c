"""What counts as full on another broker, answer by answer and silence by silence."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.decide.fill_rate import Pace
from brimline.decide.peer_disks import ASK_AGAIN, SOONEST, Peer, PeerState, aged, heard, next_question, patience_for
from brimline.model import BrokerId, BrokerLogDirs, Bytes, Failure, FailureKind, KafkaError, LogDirDescription
from tests.guard.brokers import log_dir

LIMITS = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))
NEW = Peer(broker=BrokerId(2))
PATIENCE = 30.0
SILENCE = Failure(kind=FailureKind.TIMED_OUT, message="broker 2 did not answer in time")
OBSERVED = datetime(2026, 1, 1, tzinfo=UTC)


def described(
    usable: int | None, path: str = "/a", *, offline: bool = False, cordoned: bool | None = None
) -> LogDirDescription:
    empty = log_dir(path, [])
    return LogDirDescription(
        path=path,
        error=KafkaError(56) if offline else None,
        total_bytes=None if usable is None else Bytes(1000),
        usable_bytes=None if usable is None else Bytes(usable),
        is_cordoned=cordoned,
        replicas=empty.replicas,
    )


def answer(*log_dirs: LogDirDescription) -> BrokerLogDirs:
    return BrokerLogDirs(
        broker=NEW.broker, address="", observed_at=OBSERVED, log_dirs={each.path: each for each in log_dirs}
    )


def silence() -> BrokerLogDirs:
    return BrokerLogDirs(broker=NEW.broker, address="", observed_at=OBSERVED, log_dirs={}, failure=SILENCE)


def hear(peer: Peer, said: BrokerLogDirs, now: float, limits: DiskLimits = LIMITS) -> Peer:
    return heard(peer, said, limits, now, PATIENCE)


def full(peer: Peer) -> list[str]:
    return [each.path for each in peer.full]


def test_an_answer_makes_a_log_dir_full_and_another_one_ends_it() -> None:
    peer = hear(NEW, answer(described(50), described(500, "/b")), 0.0)
    assert (peer.state, full(peer)) == (PeerState.FRESH, ["/a"])

    assert full(hear(peer, answer(described(500)), 1.0)) == []


def test_the_release_margin_counts_for_others_as_for_oneself() -> None:
    limits = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0), release_margin_percent=5)
    peer = hear(NEW, answer(described(50)), 0.0, limits)

    assert full(hear(peer, answer(described(120)), 1.0, limits)) == ["/a"]
    assert full(hear(peer, answer(described(160)), 1.0, limits)) == []


def test_what_was_full_stays_so_through_a_silence_and_not_for_ever() -> None:
    peer = hear(NEW, answer(described(50)), 0.0)

    stale = hear(peer, silence(), PATIENCE)
    assert (stale.state, full(stale), stale.failure) == (PeerState.STALE, ["/a"], SILENCE)

    silent = hear(stale, silence(), PATIENCE + 1)
    assert (silent.state, full(silent)) == (PeerState.SILENT, [])
    assert full(aged(stale, PATIENCE + 1, PATIENCE)) == []


def test_a_fresh_answer_that_nobody_follows_up_ends_to_count_as_well() -> None:
    peer = hear(NEW, answer(described(50)), 0.0)

    assert full(aged(peer, PATIENCE, PATIENCE)) == ["/a"]
    assert full(aged(peer, PATIENCE + 1, PATIENCE)) == []


def test_a_broker_that_is_back_is_judged_by_what_it_says_now() -> None:
    silent = hear(hear(NEW, answer(described(50)), 0.0), silence(), PATIENCE + 1)

    assert full(hear(silent, answer(described(50)), PATIENCE + 2)) == ["/a"]
    assert full(hear(silent, answer(described(500)), PATIENCE + 2)) == []


def test_a_broker_before_3_3_tells_no_bytes() -> None:
    peer = hear(NEW, answer(described(None)), 0.0)

    assert (peer.state, full(peer), peer.has_room) == (PeerState.NO_VOLUMES, [], False)
    assert hear(peer, silence(), 1.0).state is PeerState.NO_VOLUMES
    assert hear(peer, silence(), PATIENCE + 1).state is PeerState.SILENT


def test_an_offline_log_dir_is_not_full_and_no_sign_of_age() -> None:
    peer = hear(hear(NEW, answer(described(50)), 0.0), answer(described(None, offline=True)), 1.0)

    assert (peer.state, full(peer), peer.has_room) == (PeerState.FRESH, [], False)


@pytest.mark.parametrize(
    ("said", "has_room"),
    [
        (answer(described(500)), True),
        (answer(described(50)), False),
        (answer(described(500, cordoned=True)), False),
        (answer(described(50), described(500, "/b", cordoned=False)), True),
        (silence(), False),
    ],
)
def test_room_for_a_new_replica_is_known_for_certain_or_not_there(said: BrokerLogDirs, *, has_room: bool) -> None:
    assert hear(NEW, said, 0.0).has_room is has_room


@given(st.lists(st.tuples(st.floats(0.1, 20), st.none() | st.integers(0, 1000)), max_size=20))
def test_only_an_answer_begins_and_only_time_or_an_answer_ends(steps: list[tuple[float, int | None]]) -> None:
    peer, now, last = NEW, 0.0, None
    for wait, usable in steps:
        now += wait
        was = full(peer)
        peer = hear(peer, silence() if usable is None else answer(described(usable)), now)
        if usable is not None:
            last = now
            assert bool(full(peer)) == (usable < 100)
        elif last is not None and now - last <= PATIENCE:
            assert full(peer) == was
        else:
            assert full(peer) == []


def test_who_nears_a_limit_is_asked_sooner_but_never_all_the_time() -> None:
    pace = Pace(interval=60.0)
    calm = hear(hear(NEW, answer(described(900)), 0.0), answer(described(900)), 60.0)
    filling = hear(hear(NEW, answer(described(900)), 0.0), answer(described(300)), 60.0)
    brimming = hear(filling, answer(described(101)), 61.0)
    mute = hear(calm, silence(), 120.0)

    assert next_question(calm, LIMITS, pace) == 60.0
    assert 1.0 < next_question(filling, LIMITS, pace) < 10.0
    assert next_question(brimming, LIMITS, pace) == SOONEST
    assert next_question(hear(NEW, answer(described(50)), 0.0), LIMITS, pace) == SOONEST
    assert next_question(mute, LIMITS, pace) == ASK_AGAIN
    assert next_question(brimming, LIMITS, Pace(interval=0.3)) == 0.3


def test_the_patience_is_three_checks_or_half_a_minute() -> None:
    assert (patience_for(60.0), patience_for(0.3)) == (180.0, 30.0)


def test_readings_are_bounded() -> None:
    peer = NEW
    for now in range(100):
        peer = hear(peer, answer(described(500)), float(now))

    assert len(peer.log_dirs["/a"].readings) < 100
    assert peer.log_dirs["/a"].state is DiskState.OK

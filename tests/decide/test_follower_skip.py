"""A blocked partition does not grow, everything else goes on, and a released one catches up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.followers import UNCHANGED, FetchPlan, FollowerSession, Partition
from tests.decide.follower_model import BACKOFF, Between, Follower, Leader

A, B, C = (b"orders", 0), (b"orders", 1), (b"payments", 0)
ALL = (A, B, C)
NOTHING: frozenset[Partition] = frozenset()
_ROUNDS = 12
"""In which a follower that is not blocked has everything, restarts and back-offs included."""


class World:
    def __init__(self, partitions: tuple[Partition, ...] = ALL, backoff: int = BACKOFF) -> None:
        self.leader = Leader(partitions)
        self.follower = Follower(self.leader, backoff)
        self.between = Between(self.leader)
        self.blocked = NOTHING
        self.now = 0

    def produce(self, partition: Partition, count: int = 30) -> None:
        self.leader.logs[partition].end += count

    def trim(self, partition: Partition, offset: int) -> None:
        log = self.leader.logs[partition]
        log.start = max(log.start, min(offset, log.end))

    def fetch(self) -> bool:
        """One fetch and its answer; whether there was one that the leader did not have to think about for long."""
        fetch = self.follower.next_fetch(self.now)
        if fetch is None:
            return False
        before = {partition: self.follower.logs[partition].end for partition in self.blocked}
        trimmed = {each for each in before if self.leader.logs[each].start > before[each]}
        answer = self.between.exchange(fetch, self.blocked)
        self.follower.take(answer, self.now)
        for partition, end in before.items():
            # A log that ends before the leader's begins starts anew there, and is empty.
            log = self.follower.logs[partition]
            assert log.end == end or (partition in trimmed and log.start == log.end)
        return not answer.waited

    def lose_answer(self) -> None:
        fetch = self.follower.next_fetch(self.now)
        if fetch is not None:
            self.between.exchange(fetch, self.blocked)
            self.follower.disconnect()
            self.between.session = None

    def reconnect(self) -> None:
        """Between two fetches: the follower goes on with its session on another connection."""
        self.between.session = None

    def run(self, rounds: int = _ROUNDS) -> None:
        for _ in range(rounds):
            for _ in range(5):
                self.fetch()
            self.now += BACKOFF

    def is_caught_up(self, partition: Partition) -> bool:
        return self.follower.logs[partition] == self.leader.logs[partition]


def world_with(blocked: frozenset[Partition], partitions: tuple[Partition, ...] = ALL) -> World:
    """Everything is replicated, then some is blocked and everything grows."""
    world = World(partitions)
    for partition in partitions:
        world.produce(partition)
    world.run(2)
    world.blocked = blocked
    for partition in partitions:
        world.produce(partition)
    return world


def test_a_blocked_partition_stays_as_it_is_and_the_others_go_on() -> None:
    world = world_with(frozenset({A}))

    world.run()

    assert world.follower.logs[A].end == 30
    assert world.is_caught_up(B)
    assert world.is_caught_up(C)


def test_a_session_that_began_unseen_is_ended_once() -> None:
    world = world_with(frozenset({A}))

    world.run()

    assert world.between.restarts == 1


def test_a_follower_that_is_blocked_from_the_start_needs_no_restart() -> None:
    world = World()
    world.blocked = frozenset({A})
    world.produce(A)

    world.run()

    assert world.between.restarts == 0
    assert world.follower.logs[A].end == 0


def test_the_log_start_arrives_and_the_leader_learns_of_it() -> None:
    world = world_with(frozenset({A}))
    world.run()

    world.trim(A, 20)
    world.run(3)

    assert world.follower.logs[A].start == 20
    assert world.leader.follower_starts[A] == 20


def test_a_trim_beyond_the_followers_end_empties_it() -> None:
    world = world_with(frozenset({A}))
    world.run()

    world.trim(A, 50)
    world.run()

    assert (world.follower.logs[A].start, world.follower.logs[A].end) == (50, 50)


@pytest.mark.parametrize("fetches", range(8))
def test_a_release_at_any_moment_lets_it_catch_up(fetches: int) -> None:
    world = world_with(frozenset({A, B}))
    for _ in range(fetches):
        world.fetch()

    world.blocked = frozenset({B})
    world.run()

    assert world.is_caught_up(A)
    assert world.follower.logs[B].end == 30


def test_afterwards_the_connection_is_left_alone() -> None:
    world = world_with(frozenset({A}))
    world.run()

    world.blocked = NOTHING
    world.run()

    assert world.between.session is None
    assert all(map(world.is_caught_up, ALL))


@pytest.mark.parametrize("partitions", [(A,), (A, B)])
@pytest.mark.parametrize("has_sessions", [True, False])
def test_follower_and_leader_do_not_talk_without_a_pause(
    partitions: tuple[Partition, ...], *, has_sessions: bool
) -> None:
    """Although there are records to be had at any time."""
    world = world_with(frozenset(partitions), partitions)
    world.leader.has_room_for_sessions = has_sessions
    world.run()

    exchanges = 0
    while world.fetch():
        exchanges += 1
        assert exchanges < 5
    world.now += BACKOFF
    while world.fetch():
        exchanges += 1
        assert exchanges < 10


def test_a_leader_without_room_for_sessions_is_asked_in_full_and_skips_all_the_same() -> None:
    world = World()
    world.leader.has_room_for_sessions = False
    world.blocked = frozenset({A})
    for partition in ALL:
        world.produce(partition)

    world.run()

    assert world.follower.logs[A].end == 0
    assert world.is_caught_up(B)


def test_a_session_that_the_leader_dropped_begins_anew() -> None:
    world = world_with(frozenset({A}))
    world.run()

    world.leader.sessions.clear()
    world.produce(B)
    world.run()

    assert world.follower.logs[A].end == 30
    assert world.is_caught_up(B)


def test_a_follower_that_does_not_back_off_is_released_all_the_same() -> None:
    """It keeps the partition in its session, and would never ask for it again."""
    world = World(backoff=0)
    world.produce(A)
    world.blocked = frozenset({A})
    world.run()

    world.blocked = NOTHING
    world.run()

    assert world.is_caught_up(A)


def test_thousands_of_blocked_partitions_cost_nothing_while_they_are_backed_off() -> None:
    many = [(b"many", number) for number in range(5000)]
    session, blocked = FollowerSession(), frozenset(many)
    session.plan(epoch=0, listed=[*many, A], forgotten=(), blocked=blocked)
    refused = session.plan(epoch=1, listed=[], forgotten=(), blocked=blocked)
    assert len(refused.refused) == len(refused.forgotten) == 5000

    assert session.plan(epoch=2, listed=[A], forgotten=many, blocked=blocked) is UNCHANGED
    assert not session.owes


def test_a_full_fetch_of_which_nothing_is_left_is_sent_on_without_a_session() -> None:
    session = FollowerSession()
    probed = session.plan(epoch=0, listed=[A], forgotten=(), blocked=frozenset({A}))
    assert probed == FetchPlan(probed=(0,))

    refused = session.plan(epoch=0, listed=[A], forgotten=(), blocked=frozenset({A}))

    assert refused == FetchPlan(dropped=(0,), refused={A}, epoch=-1)


def test_what_was_just_probed_is_refused_even_if_it_is_listed_again() -> None:
    """The follower has learned of a new log start, and says so at once."""
    session = FollowerSession()
    session.plan(epoch=0, listed=[A, B], forgotten=(), blocked=frozenset({A}))

    again = session.plan(epoch=1, listed=[B, A], forgotten=(), blocked=frozenset({A}))

    assert again == FetchPlan(dropped=(1,), forgotten={A}, refused={A})


def test_a_release_right_after_the_probe_takes_back_the_limit_of_one_byte() -> None:
    session = FollowerSession()
    session.plan(epoch=0, listed=[A, B], forgotten=(), blocked=frozenset({A}))
    assert session.owes

    released = session.plan(epoch=1, listed=[], forgotten=(), blocked=NOTHING)
    assert released == FetchPlan(forgotten={A}, refused={A})

    assert session.plan(epoch=2, listed=[], forgotten=[A], blocked=NOTHING) is UNCHANGED
    assert not session.owes


def test_epochs_begin_again_at_one() -> None:
    session = FollowerSession()
    assert session.plan(epoch=2**31 - 1, listed=[], forgotten=(), blocked=frozenset({A})).epoch == 1


def test_an_epoch_out_of_order_ends_the_session() -> None:
    session = FollowerSession()
    session.plan(epoch=0, listed=[B], forgotten=(), blocked=frozenset({A}))

    assert session.plan(epoch=2, listed=[], forgotten=(), blocked=frozenset({A})).is_restart


partitions = st.sampled_from(ALL)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), partitions),
        st.tuples(st.just("trim"), st.integers(0, 300)),
        st.tuples(st.just("block"), st.frozensets(partitions)),
        st.tuples(st.just("fetch"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.integers(1, BACKOFF)),
        st.tuples(st.just("lose answer"), st.none()),
        st.tuples(st.just("reconnect"), st.none()),
        st.tuples(st.just("drop sessions"), st.none()),
        st.tuples(st.just("room for sessions"), st.booleans()),
    ),
    max_size=60,
)


@given(steps)
def test_whatever_happens_nothing_grows_that_must_not_and_all_of_it_ends_well(story: list[tuple[str, object]]) -> None:
    world = World()
    for what, detail in story:
        _take_step(world, what, detail)
    world.leader.has_room_for_sessions = True
    still_blocked = world.blocked
    for partition in ALL:
        world.produce(partition, 10)
    world.run()
    for partition in ALL:
        log, leaders = world.follower.logs[partition], world.leader.logs[partition]
        assert log.start == min(leaders.start, log.end)
        assert partition in still_blocked or world.is_caught_up(partition)

    world.blocked = NOTHING
    world.run()

    assert all(map(world.is_caught_up, ALL))
    assert world.between.session is None


def _take_step(world: World, what: str, detail: object) -> None:
    match what, detail:
        case "produce", tuple() as partition:
            world.produce(partition)
        case "trim", int(offset):
            world.trim(ALL[offset % len(ALL)], offset)
        case "block", frozenset() as blocked:
            world.blocked = blocked
        case "fetch", int(count):
            for _ in range(count):
                world.fetch()
        case "wait", int(ticks):
            world.now += ticks
        case "lose answer", None:
            world.lose_answer()
        case "reconnect", None:
            world.reconnect()
        case "drop sessions", None:
            world.leader.sessions.clear()
        case "room for sessions", bool(has_room):
            world.leader.has_room_for_sessions = has_room
        case unknown:
            raise AssertionError(unknown)

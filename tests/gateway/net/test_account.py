"""One account for all memory: who may take more, who waits, and who must go."""

import contextlib
from collections.abc import Iterator

import pytest

from brimline.gateway.net.account import SMALL, Account
from brimline.gateway.net.loop import EventLoop
from tests.waiting import eventually

BOUND = 1000


class Connection:
    def __init__(self, announced_bytes: int = 0) -> None:
        self.announced_bytes = announced_bytes
        self.looked = 0
        self.closed_for: str | None = None

    def look_again(self) -> None:
        self.looked += 1

    def close(self, reason: str) -> None:
        self.closed_for = reason


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    with contextlib.closing(EventLoop(lambda _bug: None)) as loop:
        yield loop


@pytest.fixture
def account(loop: EventLoop) -> Account:
    return Account(loop, BOUND)


def run_for_a_moment(loop: EventLoop) -> None:
    loop.later(0.1, loop.stop)
    loop.run()


def grow(account: Account, connection: Connection, step: int = 10) -> int:
    """Until it must wait; how much it holds then."""
    held = 0
    while not account.must_wait(connection):
        held += step
        account.holds(connection, held)
    return held


def test_there_is_always_as_much_left_for_one_more_as_each_has(account: Account) -> None:
    first = Connection()  # it may always go on, and does not
    account.holds(first, 1)
    held = [grow(account, Connection()) for _ in range(3)]
    assert held == sorted(held, reverse=True)
    assert BOUND - account.used > held[-1] - 2 * 10
    assert not account.must_wait(Connection())


def test_the_oldest_may_always_go_on_and_does_not_count(account: Account) -> None:
    oldest, other, last = Connection(), Connection(), Connection()
    account.holds(oldest, 5 * BOUND)
    account.holds(other, BOUND // 2 - 1)
    assert not account.must_wait(oldest)
    assert not account.must_wait(other)
    account.holds(other, BOUND // 2)
    account.holds(last, 1)
    assert not account.must_wait(oldest)
    assert account.must_wait(other)
    assert not account.must_wait(last)


def test_large_ones_leave_room_for_ordinary_ones(loop: EventLoop) -> None:
    megabyte = 1 << 20
    account = Account(loop, 64 * megabyte)
    account.holds(Connection(), 1)
    for _ in range(100):
        grow(account, Connection(announced_bytes=100 * megabyte), step=SMALL)
    ordinary = Connection(announced_bytes=megabyte)
    assert grow(account, ordinary, step=SMALL) >= megabyte


def test_who_holds_next_to_nothing_never_waits(account: Account) -> None:
    for _ in range(3):
        account.holds(Connection(), 2 * BOUND)
    assert not account.must_wait(Connection())


def test_when_half_is_used_everybody_is_read_in_small_pieces(account: Account) -> None:
    hog = Connection()
    assert len(account.buffer) > SMALL
    account.holds(hog, BOUND // 2)
    assert len(account.buffer) == SMALL
    assert account.buffer.obj is account.reused
    account.forget(hog)
    assert len(account.buffer) > SMALL
    assert account.used == 0


def test_those_that_wait_are_told_in_good_time(loop: EventLoop, account: Account) -> None:
    """All of them once, and nobody again and again."""
    hog = Connection()
    account.holds(Connection(), 1)
    account.holds(hog, BOUND)
    waiting = [Connection() for _ in range(200)]
    for each in waiting:
        account.holds(each, 1)
        assert account.must_wait(each)
    account.forget(hog)

    def are_told() -> bool:
        run_for_a_moment(loop)
        return all(each.looked for each in waiting)

    eventually(are_told)
    assert {each.looked for each in waiting} == {1}


def test_whoever_has_ended_is_not_told(loop: EventLoop, account: Account) -> None:
    hog, waiting = Connection(), Connection()
    account.holds(Connection(), 1)
    account.holds(hog, BOUND)
    account.holds(waiting, 1)
    assert account.must_wait(waiting)
    account.forget(waiting)
    account.forget(hog)
    run_for_a_moment(loop)
    assert waiting.looked == 0


def test_while_others_wait_whoever_holds_most_has_only_so_long(account: Account) -> None:
    small, most, waiting = Connection(), Connection(), Connection()
    account.holds(small, 10)
    account.holds(most, BOUND)
    account.holds(waiting, 20)
    assert account.too_long(now=0.0, patience=10.0) is None
    assert account.too_long(now=20.0, patience=10.0) is None, "nobody waits"
    assert account.must_wait(waiting)
    assert account.too_long(now=30.0, patience=10.0) is None
    assert account.too_long(now=39.0, patience=10.0) is None
    assert account.too_long(now=40.0, patience=10.0) is most

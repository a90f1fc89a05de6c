"""Whose request is judged next."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from brimline.gateway.net import turns
from brimline.gateway.net.loop import EventLoop
from brimline.gateway.net.turns import Turns

LONG_NS = 1_000_000_000


class Connection:
    def __init__(self, name: str, order: list[str]) -> None:
        self.judged_until = 0
        self._name = name
        self._order = order

    def take_turn(self) -> None:
        self._order.append(self._name)


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    with contextlib.closing(EventLoop(lambda _bug: None)) as loop:
        yield loop


def run_for_a_moment(loop: EventLoop) -> None:
    loop.later(0.1, loop.stop)
    loop.run()


def test_who_has_taken_least_is_next(loop: EventLoop) -> None:
    order: list[str] = []
    given = Turns(loop)
    greedy, modest, fresh = (Connection(name, order) for name in ("greedy", "modest", "fresh"))
    now = time.monotonic_ns()
    given.took(greedy, since=now - LONG_NS)
    given.took(modest, since=now - LONG_NS // 10)
    for each in (greedy, modest, fresh):
        given.ask(each)
    run_for_a_moment(loop)
    assert order == ["fresh", "modest", "greedy"]


def test_among_those_that_took_no_more_than_their_share_the_first_is_next(loop: EventLoop) -> None:
    order: list[str] = []
    given = Turns(loop)
    first, fresh = Connection("first", order), Connection("fresh", order)
    first.judged_until = time.monotonic_ns() - LONG_NS
    for each in (first, fresh):
        given.ask(each)
    run_for_a_moment(loop)
    assert order == ["first", "fresh"]


def test_a_round_has_an_end(loop: EventLoop) -> None:
    given = Turns(loop)
    one, other = Connection("one", []), Connection("other", [])
    assert given.may_judge(one)
    given.took(one, since=time.monotonic_ns() - LONG_NS)
    assert not given.may_judge(one)
    assert not given.may_judge(other)
    loop.woke_ns += 1  # the next one
    assert given.may_judge(one), "nobody waits"


def test_the_greedy_do_not_go_before_those_that_wait(loop: EventLoop) -> None:
    given = Turns(loop)
    greedy, waiting, modest = (Connection(name, []) for name in ("greedy", "waiting", "modest"))
    given.took(greedy, since=time.monotonic_ns() - LONG_NS)
    given.ask(waiting)
    loop.woke_ns += 1
    assert not given.may_judge(greedy)
    assert given.may_judge(modest)


def test_each_round_gives_a_turn_though_it_takes_long(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_AT_ONCE_NS", 1)
    given = Turns(loop)
    order: list[str] = []

    class Slow(Connection):
        def take_turn(self) -> None:
            super().take_turn()
            given.took(self, since=time.monotonic_ns() - 100)

    for name in ("first", "second", "third"):
        given.ask(Slow(name, order))
    run_for_a_moment(loop)
    assert order == ["first", "second", "third"]


def test_whoever_has_ended_gets_no_turn(loop: EventLoop) -> None:
    order: list[str] = []
    given = Turns(loop)
    ended = Connection("ended", order)
    given.ask(ended)
    given.forget(ended)
    run_for_a_moment(loop)
    assert order == []


def test_a_bug_in_one_connection_costs_the_others_nothing() -> None:
    bugs: list[BaseException] = []
    order: list[str] = []
    with contextlib.closing(EventLoop(bugs.append)) as loop:
        given = Turns(loop)

        class Broken(Connection):
            def take_turn(self) -> None:
                raise RuntimeError("a bug")

        given.ask(Broken("broken", order))
        given.ask(Connection("other", order))
        run_for_a_moment(loop)
    assert len(bugs) == 1
    assert order == ["other"]

"""The event loop: whose turn it is, and that nobody's mistake costs another his."""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from brimline.gateway.net.loop import EventLoop

Bugs = list[BaseException]


@pytest.fixture
def bugs() -> Bugs:
    return []


@pytest.fixture
def loop(bugs: Bugs) -> Iterator[EventLoop]:
    loop = EventLoop(bugs.append)
    with contextlib.closing(loop):
        yield loop


def ready_socket() -> tuple[socket.socket, socket.socket]:
    """One that has something to read, and its other end."""
    readable, other = socket.socketpair()
    other.send(b"x")
    return readable, other


def fail() -> None:
    raise RuntimeError("a bug")


def test_timers_run_in_their_order(loop: EventLoop) -> None:
    ran: list[str] = []
    loop.later(0.02, loop.stop)
    loop.later(0.01, lambda: ran.append("second"))
    loop.later(0.0, lambda: ran.append("first"))
    loop.later(0.0, lambda: ran.append("never")).cancel()
    loop.run()
    assert ran == ["first", "second"]


def test_a_timer_that_renews_itself_leaves_sockets_their_turn(loop: EventLoop) -> None:
    readable, other = ready_socket()
    with readable, other:

        def again() -> None:
            loop.later(0.0, again)

        again()
        loop.watch(readable.fileno(), select.EPOLLIN, lambda _mask: loop.stop())
        loop.run()
        loop.unwatch(readable.fileno())


def test_bugs_are_told_and_cost_the_others_nothing(loop: EventLoop, bugs: Bugs) -> None:
    readable, other = ready_socket()
    ran: list[str] = []
    with readable, other:

        def buggy_handler(_mask: int) -> None:
            loop.unwatch(readable.fileno())
            fail()

        loop.watch(readable.fileno(), select.EPOLLIN, buggy_handler)
        loop.later(0.0, fail)
        loop.later(0.0, lambda: ran.append("timer"))
        loop.call_soon_from_thread(fail)
        loop.call_soon_from_thread(lambda: ran.append("handed in"))
        loop.later(0.05, loop.stop)
        loop.run()
    assert sorted(ran) == ["handed in", "timer"]
    assert [str(bug) for bug in bugs] == ["a bug"] * 3


def test_work_comes_in_from_other_threads(loop: EventLoop) -> None:
    ran: list[int] = []

    def hand_in() -> None:
        for _ in range(1_000):
            loop.call_soon_from_thread(lambda: ran.append(1))

    threads = [threading.Thread(target=hand_in) for _ in range(4)]
    for thread in threads:
        thread.start()

    def stop_when_all_ran() -> None:
        if len(ran) == 4_000:
            loop.stop()
        else:
            loop.later(0.001, stop_when_all_ran)

    stop_when_all_ran()
    loop.run()
    for thread in threads:
        thread.join()


def test_an_event_of_a_closed_descriptor_is_not_taken_for_one_of_its_successor(loop: EventLoop) -> None:
    """Two sockets are ready in one round. The first handler closes the other, and a new one gets its number."""
    first, first_other = ready_socket()
    second, second_other = ready_socket()
    fresh, fresh_other = socket.socketpair()
    told: list[int] = []
    successors: list[int] = []
    with first, first_other, second, second_other, fresh, fresh_other:

        def replace(mine: socket.socket, victim: socket.socket) -> None:
            loop.unwatch(mine.fileno())
            number = victim.fileno()
            loop.unwatch(number)
            victim.close()
            os.dup2(fresh.fileno(), number)
            successors.append(number)
            loop.watch(number, select.EPOLLIN, told.append)
            loop.later(0.0, loop.stop)

        loop.watch(first.fileno(), select.EPOLLIN, lambda _mask: replace(first, second))
        loop.watch(second.fileno(), select.EPOLLIN, lambda _mask: replace(second, first))
        loop.run()
        assert told == []
        (number,) = successors
        fresh_other.send(b"x")
        loop.later(0.01, loop.stop)
        loop.run()
        assert select.EPOLLIN in told
        loop.unwatch(number)
        os.close(number)


def test_whoever_is_not_watched_can_be_unwatched(loop: EventLoop) -> None:
    loop.unwatch(1_000_000)

"""A task's thread: woken, ended, and started again after a bug."""

import threading
from collections.abc import Iterator

import pytest

from brimline.service.worker import Worker, end_all
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def quiet() -> Iterator[None]:
    hook, threading.excepthook = threading.excepthook, lambda _: None
    yield
    threading.excepthook = hook


def test_waking_it_makes_it_step_at_once() -> None:
    stepped = threading.Semaphore(0)

    def step() -> float:
        stepped.release()
        return 3600.0

    worker = Worker("w", step)
    worker.start()
    assert stepped.acquire(timeout=PATIENCE_SECONDS)
    worker.wake()
    assert stepped.acquire(timeout=PATIENCE_SECONDS)
    worker.end()
    worker.join(PATIENCE_SECONDS)

    assert not worker.is_alive


@pytest.mark.usefixtures("quiet")
def test_one_that_died_of_a_bug_can_be_started_again() -> None:
    steps: list[int] = []
    again = threading.Event()

    def step() -> float:
        steps.append(1)
        if len(steps) == 1:
            raise ZeroDivisionError
        again.set()
        return 3600.0

    worker = Worker("w", step)
    worker.start()
    worker.join(PATIENCE_SECONDS)
    assert not worker.is_alive

    worker.start()

    assert again.wait(PATIENCE_SECONDS)
    worker.end()
    worker.join(PATIENCE_SECONDS)


def test_one_that_hangs_is_left_behind() -> None:
    hang = threading.Event()
    begun = threading.Event()

    def step() -> float:
        begun.set()
        hang.wait(PATIENCE_SECONDS)
        return 0.0

    worker = Worker("w", step)
    worker.start()
    assert begun.wait(PATIENCE_SECONDS)
    worker.end()
    worker.join(0.0)

    assert worker.is_alive
    hang.set()
    worker.join(PATIENCE_SECONDS)


def test_the_last_thing_that_it_does_is_what_is_left_for_its_end() -> None:
    done: list[str] = []

    def step() -> float:
        done.append("step")
        return 3600.0

    worker = Worker("w", step, at_end=lambda: done.append("end"))
    other = Worker("other", lambda: 3600.0)
    for each in (worker, other):
        each.start()

    end_all([worker, other], PATIENCE_SECONDS)

    assert (done[-1], done.count("end")) == ("end", 1)
    assert not worker.is_alive

"""A file system that never answers costs one thread and nothing else."""

import threading

import pytest

from brimline.disks.task import LogDirWatch
from brimline.model import Bytes, FailureKind
from tests.service.ticking import Answers, FakeDisks, TickingClock


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


def test_before_the_first_answer_nothing_is_known(clock: TickingClock) -> None:
    disks = FakeDisks(a=500)
    disks.hung["a"] = threading.Event()
    watch = LogDirWatch("a", clock, lambda: None, disks.look)

    watch.ask()

    assert watch.reading(stall_timeout=10) is None
    disks.hung["a"].set()


def test_an_answer_is_kept(clock: TickingClock) -> None:
    answers = Answers()
    watch = LogDirWatch("a", clock, answers, FakeDisks(a=500).look)
    watch.ask()
    answers.wait()

    reading = watch.reading(stall_timeout=10)

    assert reading is not None
    assert reading.usable_bytes == Bytes(500)


def test_overdue_is_stalled_and_says_for_how_long(clock: TickingClock) -> None:
    disks = FakeDisks(a=500)
    disks.hung["a"] = threading.Event()
    watch = LogDirWatch("a", clock, lambda: None, disks.look)
    watch.ask()
    clock.tick(12)

    reading = watch.reading(stall_timeout=10)

    assert reading is not None
    assert reading.failure is not None
    assert reading.failure.kind is FailureKind.STALLED
    assert "12 s" in reading.failure.message
    disks.hung["a"].set()


def test_a_hung_look_is_not_followed_by_another(clock: TickingClock) -> None:
    """Else every check would leave one more thread in the kernel."""
    disks = FakeDisks(a=500)
    disks.hung["a"] = threading.Event()
    answers = Answers()
    watch = LogDirWatch("a", clock, answers, disks.look)

    asked = [watch.ask() for _ in range(5)]
    disks.hung["a"].set()
    answers.wait()

    assert asked == [True, False, False, False, False]
    assert disks.looks == ["a"]


def test_it_recovers_by_itself(clock: TickingClock) -> None:
    disks = FakeDisks(a=500)
    hang = disks.hung["a"] = threading.Event()
    answers = Answers()
    watch = LogDirWatch("a", clock, answers, disks.look)
    watch.ask()
    clock.tick(100)
    hang.set()
    answers.wait()

    reading = watch.reading(stall_timeout=10)

    assert reading is not None
    assert reading.failure is None


def test_a_stalled_reading_remembers_device_and_last_answer(clock: TickingClock) -> None:
    disks = FakeDisks(a=500)
    answers = Answers()
    watch = LogDirWatch("a", clock, answers, disks.look)
    watch.ask()
    answers.wait()
    answered = clock.seconds()
    disks.hung["a"] = threading.Event()
    watch.ask()
    clock.tick(20)

    reading = watch.reading(stall_timeout=10)

    assert reading is not None
    assert (reading.device, reading.answered) == ("8:1", answered)
    disks.hung["a"].set()

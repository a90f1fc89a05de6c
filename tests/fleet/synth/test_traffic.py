"""The clocks of made-up traffic: what was written until when, and when it was written, undo each other."""

import numpy as np
import pytest

from brimline.fleet.synth.traffic import A_DAY_MS, AN_HOUR_MS, Courses, Shapes, make_shapes
from brimline.model.scan import Int64Column

BEGIN_MS = 1_750_000_000_000
DAYS = 20
TOPICS = 40


@pytest.fixture(scope="module")
def shapes() -> Shapes:
    return make_shapes(np.random.default_rng(3), 8, BEGIN_MS, DAYS * 24)


@pytest.fixture(scope="module")
def courses(shapes: Shapes) -> Courses:
    generator = np.random.default_rng(4)
    shape = generator.integers(0, 8, TOPICS)
    created = BEGIN_MS + generator.integers(-30 * A_DAY_MS, 5 * A_DAY_MS, TOPICS)
    turn = shapes.at(shape, BEGIN_MS + generator.integers(6, DAYS, TOPICS) * A_DAY_MS)
    return Courses(
        shapes=shapes,
        shape=shape,
        born=shapes.at(shape, created),
        turn=np.where(np.arange(TOPICS) % 2 == 0, turn, np.inf),
        factor=generator.uniform(0.3, 3, TOPICS),
    )


def moments() -> Int64Column:
    return BEGIN_MS + np.random.default_rng(5).integers(5 * A_DAY_MS, DAYS * A_DAY_MS, TOPICS)


def test_a_clock_comes_as_far_as_days_pass(shapes: Shapes) -> None:
    assert shapes.clock[:, -1] == pytest.approx(np.full(8, DAYS))
    assert (np.diff(shapes.clock, axis=1) > 0).all()


def test_traffic_has_days(shapes: Shapes) -> None:
    """The same hour of two days is more alike than noon and midnight."""
    traffic = np.diff(shapes.clock, axis=1)
    half_a_day = np.abs(traffic[:, 12:] - traffic[:, :-12]).mean()
    a_day = np.abs(traffic[:, 24:] - traffic[:, :-24]).mean()
    assert a_day < half_a_day


def test_when_is_the_inverse_of_progress(courses: Courses) -> None:
    topic, at = np.arange(TOPICS), moments()
    assert courses.when(topic, courses.progress(topic, at)) == pytest.approx(at, abs=AN_HOUR_MS / 3600)


def test_before_its_creation_a_topic_has_written_nothing(courses: Courses) -> None:
    topic = np.arange(TOPICS)
    assert (courses.progress(topic, np.full(TOPICS, BEGIN_MS - 31 * A_DAY_MS)) == 0).all()


def test_progress_never_goes_back(courses: Courses) -> None:
    topic = np.arange(TOPICS)
    looks = [courses.progress(topic, np.full(TOPICS, BEGIN_MS + hour * AN_HOUR_MS)) for hour in range(-48, DAYS * 24)]
    assert (np.diff(np.stack(looks), axis=0) >= 0).all()

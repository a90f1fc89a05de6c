"""Nothing of an idempotent producer passes before what was refused, row by row and in every order of events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.sequences import DEFAULT_EXPIRY_SECONDS, RefusedSequence, Ruling, is_above, rule_on
from tests.decide.producer_model import SEQUENCES, Batch, Retries, Step, Story

NOW = 1_000_000
HELD = RefusedSequence(epoch=3, sequence=100, refused_at=NOW - 10)
LAST_SEQUENCE = SEQUENCES - 1


def ruling(
    epoch: int,
    sequence: int,
    held: RefusedSequence | None = HELD,
    *,
    is_fenced: bool,
    is_retriable: bool = True,
    now: int = NOW,
) -> Ruling:
    return rule_on(epoch, sequence, held, is_fenced=is_fenced, is_retriable=is_retriable, now=now)


def test_what_no_fence_covers_and_nobody_remembers_is_admitted() -> None:
    assert ruling(3, 100, None, is_fenced=False) == Ruling(is_refused=False, held=None)


@pytest.mark.parametrize("held", [None, HELD], ids=["the first refusal", "refused again"])
def test_a_refused_sequence_is_remembered_with_the_time(held: RefusedSequence | None) -> None:
    assert ruling(3, 100, held, is_fenced=True) == Ruling(is_refused=True, held=RefusedSequence(3, 100, NOW))


def test_the_refused_sequence_is_forgotten_when_it_is_admitted() -> None:
    assert ruling(3, 100, is_fenced=False) == Ruling(is_refused=False, held=None)


@pytest.mark.parametrize("is_fenced", [True, False])
@pytest.mark.parametrize("sequence", [101, 100 + (1 << 30) - 1])
def test_a_higher_sequence_is_held_back_and_does_not_renew_the_entry(sequence: int, *, is_fenced: bool) -> None:
    after = ruling(3, sequence, is_fenced=is_fenced)

    assert after.is_refused
    assert after.held is HELD


def test_a_lower_sequence_that_is_refused_becomes_the_entry() -> None:
    assert ruling(3, 99, is_fenced=True) == Ruling(is_refused=True, held=RefusedSequence(3, 99, NOW))


def test_a_lower_sequence_that_is_admitted_leaves_the_entry() -> None:
    assert ruling(3, 99, is_fenced=False) == Ruling(is_refused=False, held=HELD)


def test_a_newer_epoch_ends_the_entry() -> None:
    assert ruling(4, 500, is_fenced=False) == Ruling(is_refused=False, held=None)
    assert ruling(4, 500, is_fenced=True) == Ruling(is_refused=True, held=RefusedSequence(4, 500, NOW))


@pytest.mark.parametrize("is_fenced", [True, False])
@pytest.mark.parametrize("sequence", [0, 99, 100, 101])
def test_a_straggler_of_an_older_epoch_changes_nothing(sequence: int, *, is_fenced: bool) -> None:
    assert ruling(2, sequence, is_fenced=is_fenced) == Ruling(is_refused=is_fenced, held=HELD)


def test_a_producer_that_begins_anew_at_0_ends_the_entry() -> None:
    assert ruling(3, 0, is_fenced=False) == Ruling(is_refused=False, held=None)
    assert ruling(3, 0, is_fenced=True) == Ruling(is_refused=True, held=RefusedSequence(3, 0, NOW))


def test_0_behind_the_wrap_is_a_higher_sequence_and_no_new_beginning() -> None:
    before_the_wrap = RefusedSequence(3, LAST_SEQUENCE - 4, NOW)

    assert ruling(3, 0, before_the_wrap, is_fenced=False) == Ruling(is_refused=True, held=before_the_wrap)


@pytest.mark.parametrize(
    ("sequence", "other", "expected"),
    [
        (5, 5, False),
        (6, 5, True),
        (5, 6, False),
        (0, LAST_SEQUENCE, True),
        (LAST_SEQUENCE, 0, False),
        (3, LAST_SEQUENCE - 3, True),
        (LAST_SEQUENCE - 3, 3, False),
    ],
)
def test_higher_is_told_by_the_shorter_way_round(sequence: int, other: int, *, expected: bool) -> None:
    assert is_above(sequence, other) is expected


def test_an_entry_counts_until_it_expires() -> None:
    last_second = HELD.refused_at + DEFAULT_EXPIRY_SECONDS - 1

    assert ruling(3, 101, is_fenced=False, now=last_second).is_refused
    assert ruling(3, 101, is_fenced=False, now=last_second + 1) == Ruling(is_refused=False, held=None)


def test_behind_an_expired_entry_a_refusal_begins_another() -> None:
    now = HELD.refused_at + DEFAULT_EXPIRY_SECONDS

    after = ruling(3, 101, is_fenced=True, now=now)

    assert after == Ruling(is_refused=True, held=RefusedSequence(3, 101, now))


@pytest.mark.parametrize("held", [None, HELD])
@pytest.mark.parametrize("sequence", [99, 100])
def test_a_final_refusal_leaves_nothing_to_wait_for(sequence: int, held: RefusedSequence | None) -> None:
    assert ruling(3, sequence, held, is_fenced=True, is_retriable=False) == Ruling(is_refused=True, held=None)


def test_what_was_refused_with_a_retriable_code_still_comes_first_when_the_code_is_now_a_final_one() -> None:
    assert ruling(3, 101, is_fenced=False, is_retriable=False) == Ruling(is_refused=True, held=HELD)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    records = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    return Story(
        unacknowledged=[Batch(number=number, records=count) for number, count in enumerate(records)],
        retries=draw(st.sampled_from(Retries)),
        next_sequence=draw(st.sampled_from([0, 7, LAST_SEQUENCE - 4])),
    )


@given(story=stories(), steps=st.lists(st.sampled_from(Step), max_size=80))
def test_whatever_happens_order_is_kept_and_everything_lands(story: Story, steps: list[Step]) -> None:
    for step in steps:
        story.do(step)

    story.finish()

    assert_in_order_within_each_epoch(story)
    stored = {request.batch for request in story.broker.log}
    assert stored.issuperset(story.acknowledged), "acknowledged and lost"
    assert not story.unacknowledged, "space is back, and not everything lands"


def assert_in_order_within_each_epoch(story: Story) -> None:
    for earlier, later in pairwise(story.broker.log):
        if earlier.epoch == later.epoch:
            assert later.sequence == (earlier.sequence + earlier.records) % SEQUENCES
        else:
            assert earlier.epoch < later.epoch


RELEASED_BETWEEN_TWO = [Step.SEND, Step.SEND, Step.FENCE, Step.DELIVER, Step.RELEASE, Step.DELIVER]
STRAGGLER_BETWEEN_TWO = [
    *(Step.SEND, Step.RECONNECT, Step.GIVE_UP),
    *(Step.SEND, Step.SEND, Step.FENCE, Step.DELIVER),
    *(Step.DELIVER_OLD, Step.RELEASE, Step.DELIVER),
]


def after(steps: list[Step], *, batches: int, remembers: bool = True) -> Story:
    story = Story(
        unacknowledged=[Batch(number=number, records=1) for number in range(batches)],
        retries=Retries.LOWEST_AT_ONCE,
        remembers=remembers,
    )
    for step in steps:
        story.do(step)
    story.finish()
    return story


def test_a_release_between_two_batches_in_flight_loses_nothing() -> None:
    story = after(RELEASED_BETWEEN_TWO, batches=2)

    assert [request.batch for request in story.broker.log] == [0, 1]


def test_a_straggler_does_not_make_the_gateway_forget_the_epoch_that_counts() -> None:
    """It is refused after the first batch of the new epoch was, and before the second arrives."""
    story = after(STRAGGLER_BETWEEN_TWO, batches=3)

    assert [request.batch for request in story.broker.log] == [1, 2]


def test_without_the_memory_the_model_shows_the_loss() -> None:
    """So that the property above is known to be able to fail."""
    story = after(RELEASED_BETWEEN_TWO, batches=2, remembers=False)

    assert [batch.number for batch in story.unacknowledged] == [0]
    assert [request.batch for request in story.broker.log] == [1]

"""Plans in few numbers: they add up, whatever the world."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from brimline.decide.reclaim.plan import plan
from brimline.decide.reclaim.summary import Ages, ages_of, newest_ms, reason_sums, rows_of_heads, together
from brimline.model.reclaim import AN_HOUR_MS, ReclaimTables
from brimline.model.reclaim_plan import GOING, ReclaimReason
from tests.decide.reclaim.worlds import worlds

MINUTE_MS, DAY_MS = 60_000, 24 * AN_HOUR_MS


def ages(*minutes: float) -> Ages:
    age_ms = np.array([int(each * MINUTE_MS) for each in minutes], dtype=np.int64)
    return Ages(age_ms=age_ms, allocated_bytes=np.full(len(minutes), 10, dtype=np.int64))


@given(worlds)
def test_reasons_add_up_to_all_segments_and_to_what_the_plan_says(tables: ReclaimTables) -> None:
    made = plan(tables)
    on_device = np.repeat(tables.logs.device, np.diff(tables.logs.segments_begin))
    for row, device in enumerate(made.devices):
        sums = {each.reason: each for each in reason_sums(tables, made, row)}
        assert sum(each.segments for each in sums.values()) == np.count_nonzero(on_device == row)
        taken = sums.get(ReclaimReason.TAKEN)
        assert (taken.bytes if taken else 0) == device.taken_bytes
        in_segments = sum(sums[reason].bytes for reason in GOING[:3] if reason in sums)
        going = device.going
        assert in_segments == going.log_start + going.retention_bytes + going.retention_ms


@given(worlds)
def test_spans_of_age_add_up_to_what_is_taken(tables: ReclaimTables) -> None:
    made = plan(tables)
    for row, device in enumerate(made.devices):
        logs = [log for log in made.trimmed_logs.tolist() if tables.logs.device[log] == row]
        heads = [(int(made.logs.first_taken[log]), int(made.logs.taken_segments[log])) for log in logs]
        taken = rows_of_heads(heads)
        spans = ages_of(tables, row, taken).spans(7)
        assert sum(span.segments for span in spans) == device.taken_segments == len(taken)
        assert sum(span.bytes for span in spans) == device.taken_bytes
        assert [span.from_ms for span in spans] == sorted((span.from_ms for span in spans), reverse=True)
        first = newest_ms(tables, row, np.array([head[0] for head in heads], dtype=np.int64))
        assert first.tolist() == made.logs.oldest_ms[logs].tolist()


@given(st.lists(st.integers(0, 10**12), max_size=40), st.integers(1, 20))
def test_spans_fit_where_any_do(age_ms: list[int], most: int) -> None:
    some = Ages(age_ms=np.array(age_ms, dtype=np.int64), allocated_bytes=np.ones(len(age_ms), dtype=np.int64))

    spans = some.fitting_spans(most)

    assert sum(span.segments for span in spans) == len(age_ms)
    assert len(spans) <= most or spans[0].to_ms - spans[0].from_ms == 30 * DAY_MS


def test_the_young_are_shown_by_minutes_and_the_old_by_hours_or_days() -> None:
    def widths(some: Ages) -> set[int]:
        return {span.to_ms - span.from_ms for span in some.fitting_spans(16)}

    assert widths(ages(0.5, 3, 7)) == {MINUTE_MS}
    assert widths(ages(3, 70 * 60)) == {AN_HOUR_MS}
    assert widths(ages(*(hour * 60 for hour in range(60)))) == {6 * AN_HOUR_MS}
    assert widths(ages(*(hour * 60 for hour in range(300)))) == {DAY_MS}
    assert ages().fitting_spans(16) == ()


def test_ages_of_several_devices_are_one() -> None:
    both = together([ages(1), ages(), ages(1, 200)])

    assert [(span.from_ms // MINUTE_MS, span.segments, span.bytes) for span in both.spans(MINUTE_MS)] == [
        (200, 1, 10),
        (1, 2, 20),
    ]

"""Who is refused, and what the client reads."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from brimline.decide.admission import (
    EXEMPT_TOPICS,
    HELD_BACK,
    Fence,
    FenceCause,
    RejectError,
    Verdict,
    judge,
    why_full,
)
from brimline.decide.disk_state import DiskLimits, Space
from brimline.decide.sequences import RefusedSequence
from brimline.model import Bytes

NOW = 1_000_000
FULL = Fence(cause=FenceCause.FULL, reason="log dir /a is full", since=datetime(2026, 1, 1, tzinfo=UTC), log_dir="/a")
HELD = RefusedSequence(epoch=0, sequence=5, refused_at=NOW - 1)
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    producer_id: int = 7
    producer_epoch: int = 0
    base_sequence: int = 5


IDEMPOTENT = Batch()
PLAIN = Batch(producer_id=-1, producer_epoch=-1, base_sequence=-1)


def verdict(
    batch: Batch,
    fence: Fence | None,
    held: RefusedSequence | None = None,
    *,
    topic: str = "orders",
    error: RejectError = RejectError.KAFKA_STORAGE_ERROR,
    now: int = NOW,
) -> Verdict:
    return judge(topic, batch, fence, held, error=error, now=now)


@pytest.mark.parametrize("batch", [IDEMPOTENT, PLAIN])
def test_without_a_fence_everything_is_admitted(batch: Batch) -> None:
    assert verdict(batch, None) == Verdict(refusal=None, held=None)


def test_a_plain_batch_is_refused_and_not_remembered() -> None:
    assert verdict(PLAIN, FULL) == Verdict(refusal=FULL.refusal, held=None, code=56)


def test_an_idempotent_batch_is_refused_and_remembered() -> None:
    assert verdict(IDEMPOTENT, FULL) == Verdict(refusal=FULL.refusal, held=RefusedSequence(0, 5, NOW), code=56)


@pytest.mark.parametrize("error", [RejectError.POLICY_VIOLATION, RejectError.NOT_ENOUGH_SPACE])
def test_nothing_is_remembered_of_a_final_refusal(error: RejectError) -> None:
    assert verdict(IDEMPOTENT, FULL, error=error) == Verdict(refusal=FULL.refusal, held=None, code=error)


def test_what_comes_too_early_is_answered_as_by_a_broker_that_knows_the_producer() -> None:
    out_of_order = 45
    assert verdict(Batch(base_sequence=6), None, HELD) == Verdict(refusal=HELD_BACK, held=HELD, code=out_of_order)


def test_where_a_fence_stands_the_fence_is_named() -> None:
    assert verdict(Batch(base_sequence=6), FULL, HELD) == Verdict(refusal=FULL.refusal, held=HELD, code=56)


def test_the_refused_batch_itself_is_admitted_when_the_fence_is_gone() -> None:
    assert verdict(IDEMPOTENT, None, HELD) == Verdict(refusal=None, held=None)


def test_the_expiry_is_the_callers() -> None:
    late = judge(
        "orders", Batch(base_sequence=6), None, HELD, error=RejectError.KAFKA_STORAGE_ERROR, now=NOW, expiry_seconds=1
    )

    assert late == Verdict(refusal=None, held=None)


@pytest.mark.parametrize("held", [None, HELD])
def test_a_producer_without_a_sequence_is_refused_and_leaves_the_memory_alone(held: RefusedSequence | None) -> None:
    """As a batch is that claims to be a marker of a transaction."""
    assert verdict(Batch(base_sequence=-1), FULL, held) == Verdict(refusal=FULL.refusal, held=held, code=56)


@pytest.mark.parametrize("topic", sorted(EXEMPT_TOPICS))
def test_what_kafka_needs_for_the_cure_passes(topic: str) -> None:
    assert verdict(IDEMPOTENT, FULL, topic=topic).refusal is None


def test_a_topic_that_only_looks_internal_is_refused() -> None:
    assert verdict(IDEMPOTENT, FULL, topic="__consumer_offsets_of_mine").refusal is not None


@pytest.mark.parametrize(("code", "is_retriable"), [(56, True), (19, True), (44, False), (128, False)])
def test_which_codes_make_clients_wait(code: int, *, is_retriable: bool) -> None:
    assert RejectError(code).is_retriable is is_retriable


@pytest.mark.parametrize(
    ("usable", "limits", "expected"),
    [
        pytest.param(
            6 * GIB,
            DiskLimits(max_used_percent=99, min_free_bytes=Bytes(0)),
            "log dir /data/a is 99.4 % used, limit disk.max.used.percent=99",
            id="too much used",
        ),
        pytest.param(
            GIB // 2,
            DiskLimits(max_used_percent=100, min_free_bytes=Bytes(GIB)),
            "log dir /data/a is 99.9 % used with 512 MiB usable, limit disk.min.free.bytes=1073741824",
            id="too little free",
        ),
        pytest.param(
            GIB // 2,
            DiskLimits(max_used_percent=99, min_free_bytes=Bytes(GIB)),
            "log dir /data/a is 99.9 % used with 512 MiB usable, "
            "limits disk.max.used.percent=99 and disk.min.free.bytes=1073741824",
            id="both",
        ),
        pytest.param(
            20 * GIB,
            DiskLimits(max_used_percent=99, release_margin_percent=2),
            "log dir /data/a is 98.0 % used, not yet below its limit by the release margin of 2 %",
            id="within the release margin",
        ),
    ],
)
def test_the_reason_names_the_log_dir_how_full_it_is_and_the_limit(
    usable: int, limits: DiskLimits, expected: str
) -> None:
    assert why_full("/data/a", Space(total=Bytes(1000 * GIB), usable=Bytes(usable)), limits) == expected


@pytest.mark.parametrize("cause", [FenceCause.FULL, FenceCause.GUARD])
def test_the_client_reads_the_cause_and_that_it_ends_by_itself(cause: FenceCause) -> None:
    fence = Fence(cause=cause, reason="log dir /data/a is 99.4 % used", since=FULL.since, log_dir="/data/a")

    assert fence.refusal == (
        "NOT_ENOUGH_SPACE: log dir /data/a is 99.4 % used; free space or lower retention (brimline topics shows what "
        "fills it), producing resumes automatically"
    )


def test_the_client_reads_where_to_look_when_a_follower_is_full() -> None:
    fence = Fence(cause=FenceCause.FOLLOWER, reason="broker 2 is full", since=FULL.since, follower=2)

    assert "(brimline topics --broker-list 2 shows what fills it)" in fence.refusal


def test_the_client_reads_that_somebody_fenced_by_hand() -> None:
    fence = Fence(cause=FenceCause.MANUAL, reason="replacing the disk", since=FULL.since, topic="orders", by="root")

    assert fence.refusal == "fenced by hand: replacing the disk"

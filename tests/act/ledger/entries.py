"""Entries of every kind, for property tests, and a plan to write down."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import strategies as st

from brimline.act.ledger.entries import (
    Answered,
    AnsweredTrim,
    BallastAct,
    BallastEntry,
    CameBack,
    CordonAct,
    CordonEntry,
    CycleEnded,
    CycleId,
    Entry,
    FreedTrim,
    GivenUp,
    GivenUpAct,
    GivenUpTrim,
    PassedOver,
    Paused,
    Plan,
    PlannedTrim,
    Requested,
    RequestedTrim,
    Resumed,
    SegmentRange,
    ShedAct,
    ShedEntry,
    TrimNumber,
)
from brimline.model import BrokerId, Bytes, Offset, TopicPartition

NOW = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
LOG_DIRS = ("/data/a", "/data/b\udcff")

offsets = st.integers(0, 2**62).map(Offset)
sizes = st.integers(0, 2**62).map(Bytes)
numbers = st.integers(0, 2**31).map(TrimNumber)
texts = st.text(max_size=30)
cycles = texts.map(CycleId)


@st.composite
def planned_trims(draw: st.DrawFn) -> PlannedTrim:
    first, last, target = sorted(draw(st.sets(st.integers(0, 2**62), min_size=3, max_size=3)))
    return PlannedTrim(
        partition=TopicPartition(draw(st.sampled_from(["orders", "clicks"])), draw(st.integers(0, 2**31 - 1))),
        topic_id=draw(st.none() | st.uuids()),
        log_dir=draw(st.sampled_from(LOG_DIRS)),
        log_start=draw(offsets),
        target=Offset(target),
        segments=SegmentRange(first=Offset(first), last=Offset(last), count=draw(st.integers(1, 10**6))),
        allocated_bytes=draw(sizes),
        oldest_ms=draw(st.integers(-1, 2**62)),
        newest_ms=draw(st.integers(-1, 2**62)),
        reason=draw(texts),
    )


def a_trim(partition: int = 0, segments: int = 3, topic: str = "orders") -> PlannedTrim:
    return PlannedTrim(
        partition=TopicPartition(topic, partition),
        topic_id=UUID(int=1 + len(topic)),
        log_dir=LOG_DIRS[0],
        log_start=Offset(0),
        target=Offset(segments * 1000),
        segments=SegmentRange(first=Offset(0), last=Offset((segments - 1) * 1000), count=segments),
        allocated_bytes=Bytes(segments * 1048576),
        oldest_ms=1767225600000,
        newest_ms=1767225600000 + segments * 3600_000,
        reason="the oldest of the device",
    )


def a_plan(cycle: str = "8:1-1", *trims: PlannedTrim) -> Plan:
    return Plan(
        cycle=CycleId(cycle),
        device="8:1",
        log_dirs=LOG_DIRS,
        total_bytes=Bytes(100 << 20),
        used_bytes=Bytes(90 << 20),
        ceiling_percent=80,
        excess_bytes=Bytes(10 << 20),
        going_bytes=Bytes(1 << 20),
        by="guard",
        trims=trims or (a_trim(),),
    )


plans = st.builds(
    Plan,
    cycle=cycles,
    device=texts,
    log_dirs=st.just(LOG_DIRS),
    total_bytes=sizes,
    used_bytes=sizes,
    ceiling_percent=st.integers(0, 100),
    excess_bytes=sizes,
    going_bytes=sizes,
    by=texts,
    trims=st.lists(planned_trims(), max_size=4, unique_by=lambda trim: trim.partition).map(tuple),
    # As they are written: by reason, topic and partition.
    passed_over=st.lists(st.tuples(texts, texts, st.integers(0, 9)), max_size=3, unique_by=lambda row: row[0]).map(
        lambda rows: tuple(PassedOver(partition=TopicPartition(topic, n), why=why) for why, topic, n in rows)
    ),
)
requests = st.builds(
    Requested,
    cycle=cycles,
    trims=st.lists(
        st.builds(
            RequestedTrim,
            number=numbers,
            leader=st.integers(0, 2**31).map(BrokerId),
            log_start=offsets,
            present_bytes=sizes,
        ),
        max_size=3,
    ).map(tuple),
)
answers = st.builds(
    Answered,
    cycle=cycles,
    trims=st.lists(
        st.builds(AnsweredTrim, number=numbers, low_watermark=st.none() | offsets, error=st.none() | texts), max_size=3
    ).map(tuple),
)
came_back = st.builds(
    CameBack,
    cycle=cycles,
    trims=st.lists(st.builds(FreedTrim, number=numbers, freed_bytes=sizes), max_size=3).map(tuple),
)
given_up = st.builds(
    GivenUp,
    act=st.sampled_from(GivenUpAct),
    cycle=cycles,
    trims=st.lists(st.builds(GivenUpTrim, number=numbers, why=texts, freed_bytes=sizes), max_size=3).map(tuple),
)
ended = st.builds(CycleEnded, cycle=cycles, done=st.integers(0, 10), abandoned=st.integers(0, 10), freed_bytes=sizes)
ballast = st.builds(
    BallastEntry,
    act=st.sampled_from(BallastAct),
    path=texts,
    device=texts,
    size=sizes,
    usable_bytes=sizes,
    why=texts,
    was_late=st.booleans(),
)
cordons = st.builds(CordonEntry, act=st.sampled_from(CordonAct), log_dir=texts, why=texts)
brokers = st.integers(0, 2**31 - 1).map(BrokerId)
sheds = st.builds(
    ShedEntry,
    act=st.sampled_from(ShedAct),
    partition=st.builds(TopicPartition, texts, st.integers(0, 2**31 - 1)),
    follower=brokers,
    log_dir=texts,
    before=st.lists(brokers, max_size=5).map(tuple),
    size=sizes,
    why=texts,
)
pauses = st.builds(Paused, by=texts, reason=texts) | st.builds(Resumed, by=texts, reason=texts)
entries: st.SearchStrategy[Entry] = st.one_of(
    plans, requests, answers, came_back, given_up, ended, ballast, cordons, sheds, pauses
)

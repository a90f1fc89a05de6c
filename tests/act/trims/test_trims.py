"""Trims end by what is really there, and never take more than was planned, wherever the guard is killed."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.act.ledger.entries import CycleEnded, Entry, Paused, Plan, PlannedTrim, Recorded, Requested
from brimline.act.ledger.files import read_history
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import CycleRecord, LedgerState, TrimPhase
from brimline.act.trims.rules import Left, PartitionNow, Problem, TrimPace
from brimline.act.trims.trims import TrimExecutor
from brimline.model import Bytes, Offset, TopicPartition
from brimline.service.durable_files import NotRecorded
from tests.act.trims.world import BLOCKS, CYCLE, EVENTS, SEGMENT, SILENCE, Killed, World

PACE = TrimPace(
    space_patience=60.0,
    trims_per_batch=2,
    check_again=5.0,
    retry=2.0,
    between_looks=2.0,
    patience=20.0,
    most_requests=3,
)
MORE_STEPS_THAN_ANY = 2000


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, partitions=3, segments=4)
    monkeypatch.setattr(os, "fsync", world.sync)
    return world


def ledger_of(world: World) -> Ledger:
    ledger = Ledger(world.files.folder, 1, world.now)
    ledger.refresh()
    return ledger


def begun(world: World, segments: Sequence[int], pace: TrimPace = PACE) -> TrimExecutor:
    ledger = ledger_of(world)
    ledger.append(world.plan(segments))
    return executor(world, ledger, pace)


def executor(world: World, ledger: Ledger, pace: TrimPace = PACE) -> TrimExecutor:
    return TrimExecutor(ledger, CYCLE, world, world.files_left, world.seconds, pace, lambda _: world.objection)


def run(world: World, trims: TrimExecutor) -> CycleRecord:
    for _ in range(MORE_STEPS_THAN_ANY):
        wait = trims.step()
        if wait is None:
            return trims.cycle
        world.tick(wait)
    raise AssertionError("the plan does not end")


def phases(cycle: CycleRecord) -> list[str]:
    return [trim.phase.value for trim in cycle.trims]


def requests_on_record(world: World) -> list[Requested]:
    return [
        found.entry
        for found in read_history(world.files)
        if isinstance(found, Recorded) and isinstance(found.entry, Requested)
    ]


def test_all_trims_are_done_and_what_came_back_is_what_was_there(world: World) -> None:
    cycle = run(world, begun(world, [1, 2, 3]))

    assert phases(cycle) == ["done", "done", "done"]
    assert [partition.log_start for partition in world.partitions] == [SEGMENT, 2 * SEGMENT, 3 * SEGMENT]
    assert [trim.freed_bytes for trim in cycle.trims] == [BLOCKS, 2 * BLOCKS, 3 * BLOCKS]
    assert [trim.low_watermark for trim in cycle.trims] == [SEGMENT, 2 * SEGMENT, 3 * SEGMENT]


def test_batches_are_small_and_apart(world: World) -> None:
    trims = begun(world, [1, 1, 1])

    wait = trims.step()
    after_one_step = trims.cycle.count(TrimPhase.REQUESTED)
    trims.step()
    at_the_same_time = trims.cycle.count(TrimPhase.REQUESTED)
    assert wait is not None
    world.tick(wait)
    trims.step()

    assert (after_one_step, at_the_same_time) == (2, 2)
    assert trims.cycle.count(TrimPhase.REQUESTED, TrimPhase.DONE) == 3
    assert [len(request.trims) for request in requests_on_record(world)] == [2, 1]


def test_a_batch_is_bounded_in_bytes_and_a_large_trim_is_one_of_its_own(world: World) -> None:
    pace = TrimPace(space_patience=60.0, bytes_per_batch=Bytes(2 * BLOCKS))

    run(world, begun(world, [4, 1, 1], pace))

    assert [[trim.number for trim in request.trims] for request in requests_on_record(world)] == [[0], [1, 2]]


def test_what_another_guard_has_trimmed_is_not_asked_for(world: World) -> None:
    world.partitions[0].log_start = 4 * SEGMENT
    world.holds_files = True
    trims = begun(world, [2, 1, 0])
    trims.step()
    world.holds_files = False

    cycle = run(world, trims)

    assert phases(cycle) == ["done", "done"]
    assert [trim.was_done_by_others for trim in cycle.trims] == [True, False]
    assert cycle.trims[0].freed_bytes == 2 * BLOCKS
    assert world.partitions[0].log_start == 4 * SEGMENT
    assert [[trim.number for trim in request.trims] for request in requests_on_record(world)] == [[1]]


def test_it_is_done_when_the_files_are_gone_and_not_before(world: World) -> None:
    world.holds_files = True
    trims = begun(world, [1, 0, 0])

    trims.step()
    world.tick(20)
    trims.step()
    while_there = phases(trims.cycle)
    world.holds_files = False
    done = run(world, trims)

    assert while_there == ["requested"]
    assert phases(done) == ["done"]


def test_a_trim_that_a_broker_has_forgotten_is_asked_for_again(world: World) -> None:
    world.holds_files = True
    trims = begun(world, [2, 0, 0])
    trims.step()
    world.partitions[0].forget()
    forgotten = world.partitions[0].log_start
    world.holds_files = False

    cycle = run(world, trims)

    assert forgotten == 0
    assert phases(cycle) == ["done"]
    assert cycle.trims[0].requests == 2
    assert world.partitions[0].log_start == 2 * SEGMENT


def test_while_nothing_is_done_but_waiting_nobody_is_asked_whether_it_is_needed_and_all_are_looked_after_at_once(
    world: World,
) -> None:
    """What was asked before a batch may be a look at every file of the device."""
    world.holds_files = True
    asked: list[Plan] = []
    looks: list[int] = []

    def look(partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionNow | Problem]:
        looks.append(len(partitions))
        return World.look(world, partitions)

    world.look = look  # type: ignore[method-assign]
    ledger = ledger_of(world)
    ledger.append(world.plan([1, 1, 1]))
    trims = TrimExecutor(ledger, CYCLE, world, world.files_left, world.seconds, PACE, asked.append)
    while trims.cycle.count(TrimPhase.PLANNED):
        world.tick(trims.step() or 0.0)
    asked_by_then, looks_by_then = len(asked), len(looks)
    for _ in range(20):
        world.tick(trims.step() or 0.0)

    assert asked_by_then == len(asked) == 2
    assert set(looks[looks_by_then:]) == {3}


def test_one_that_is_forgotten_again_and_again_is_given_up(world: World) -> None:
    world.holds_files = True
    trims = begun(world, [1, 1, 0])

    for _ in range(MORE_STEPS_THAN_ANY):
        world.partitions[0].forget()
        wait = trims.step()
        if trims.cycle.trims[0].phase is TrimPhase.ABANDONED or wait is None:
            break
        world.tick(wait)
    world.holds_files = False
    cycle = run(world, trims)

    assert phases(cycle) == ["abandoned", "done"]
    assert cycle.trims[0].why == "requested 3 times, its log start is still 0"


def test_files_that_stay_are_given_up_with_what_came_back_of_them(world: World) -> None:
    world.holds_files = True
    trims = begun(world, [3, 0, 0])
    trims.step()
    world.partitions[0].bases.remove(0)

    cycle = run(world, trims)

    assert phases(cycle) == ["abandoned"]
    assert cycle.trims[0].why is not None
    assert "its files remain after" in cycle.trims[0].why
    assert cycle.trims[0].freed_bytes == BLOCKS


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("made anew", "was deleted and recreated since"),
        ("becomes tiered", "would delete its remote data"),
        ("moved to another disk", "its segments are no longer in /data/a"),
        ("no permission", "needs DESCRIBE and DELETE on the topic t0"),
        ("is cut short", "its high watermark is 50, below the planned offset 100"),
        ("compacted only", "compacted only"),
    ],
)
def test_what_is_no_longer_true_is_given_up_by_name_and_the_others_go_on(world: World, event: str, why: str) -> None:
    trims = begun(world, [1, 1, 1])
    world.events = [(event, 0)]

    cycle = run(world, trims)

    assert phases(cycle) == ["abandoned", "done", "done"]
    assert cycle.trims[0].why is not None
    assert why in cycle.trims[0].why
    assert world.partitions[0].log_start == 0


def test_one_without_a_leader_waits_a_while_and_holds_nobody_up(world: World) -> None:
    world.leaderless.add("t0")
    trims = begun(world, [1, 1, 1])

    for _ in range(4):
        world.tick(trims.step() or 0)
    meanwhile = phases(trims.cycle)
    cycle = run(world, trims)

    assert meanwhile[0] == "planned"
    assert "planned" not in meanwhile[1:]
    assert cycle.trims[0].why is not None
    assert cycle.trims[0].why.startswith("it has no leader, for 2")
    assert phases(cycle) == ["abandoned", "done", "done"]


def test_a_folder_that_cannot_be_read_is_a_problem_of_its_own_trim_alone(world: World) -> None:
    def files_left(trims: Sequence[PlannedTrim]) -> Sequence[Left]:
        if any(trim.partition.topic == "t1" for trim in trims):
            raise SILENCE
        return world.files_left(trims)

    ledger = ledger_of(world)
    ledger.append(world.plan([1, 1, 1]))
    cycle = run(world, TrimExecutor(ledger, CYCLE, world, files_left, world.seconds, PACE))

    assert phases(cycle) == ["done", "abandoned", "done"]
    assert [trim.freed_bytes for trim in cycle.trims] == [BLOCKS, 0, BLOCKS]
    assert [partition.log_start for partition in world.partitions] == [SEGMENT, 0, SEGMENT]


def test_when_the_leader_is_back_in_time_it_is_sent(world: World) -> None:
    world.leaderless.add("t0")
    trims = begun(world, [1, 0, 0])
    trims.step()
    world.leaderless.clear()

    assert phases(run(world, trims)) == ["done"]


@pytest.mark.parametrize("event", ["a follower is slow", "an answer is lost"])
def test_an_answer_that_does_not_tell_is_followed_by_a_look_and_not_by_a_second_request(
    world: World, event: str
) -> None:
    trims = begun(world, [1, 1, 0])
    world.events = [(event, 0)]

    cycle = run(world, trims)

    assert phases(cycle) == ["done", "done"]
    assert [trim.requests for trim in cycle.trims] == [1, 1]


def test_an_objection_ends_what_has_not_been_sent(world: World) -> None:
    trims = begun(world, [1, 1, 1])
    wait = trims.step()
    world.objection = "the device is below its ceiling"
    assert wait is not None
    world.tick(wait)

    cycle = run(world, trims)

    assert phases(cycle) == ["done", "done", "withdrawn"]
    assert cycle.trims[2].why == world.objection
    assert world.partitions[2].log_start == 0


def test_a_pause_by_somebody_else_ends_what_has_not_been_sent(world: World) -> None:
    trims = begun(world, [1, 1, 1])
    wait = trims.step()
    ledger_of(world).append(Paused(by="root", reason="CHG-1"))
    assert wait is not None
    world.tick(wait)

    cycle = run(world, trims)

    assert phases(cycle) == ["done", "done", "withdrawn"]
    assert cycle.trims[2].why == "paused by root: CHG-1"


def test_a_cycle_that_somebody_else_has_ended_is_over(world: World) -> None:
    trims = begun(world, [1, 1, 1])
    world.objection = "by hand"
    run(world, executor(world, ledger_of(world)))
    world.objection = None

    assert trims.step() is None
    assert [partition.log_start for partition in world.partitions] == [0, 0, 0]


def test_an_objection_keeps_a_forgotten_trim_from_being_sent_again(world: World) -> None:
    world.holds_files = True
    trims = begun(world, [1, 0, 0])
    trims.step()
    world.partitions[0].forget()
    world.objection = "paused by root"

    cycle = run(world, trims)

    assert phases(cycle) == ["withdrawn"]
    assert world.partitions[0].log_start == 0


def test_nothing_is_sent_that_cannot_be_recorded(world: World) -> None:
    trims = begun(world, [1, 0, 0])
    world.disk_is_full = True

    with pytest.raises(NotRecorded, match="nothing was changed"):
        trims.step()
    unsent = world.partitions[0].log_start
    world.disk_is_full = False
    world.tick(2)
    cycle = run(world, trims)

    assert unsent == 0
    assert phases(cycle) == ["done"]
    assert cycle.trims[0].requests == 1


events = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 12)), max_size=25)


@given(
    segments=st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any),
    script=events,
    kills=st.lists(st.tuples(st.integers(0, 12), st.floats(0, 1)), max_size=8),
    rotate_at=st.sampled_from([600, 3000, 1 << 20]),
    for_ever=st.sets(st.sampled_from(["files stay", "all is forgotten", "t0 has no leader"]), max_size=2),
)
def test_never_more_than_planned_and_every_plan_ends_wherever_guards_are_killed(
    segments: list[int],
    script: list[tuple[str, int]],
    kills: list[tuple[int, float]],
    rotate_at: int,
    for_ever: set[str],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        world = World(Path(folder), partitions=len(segments), segments=4)
        patch.setattr(os, "fsync", world.sync)
        plan = world.plan(segments)
        targets = {trim.topic_id: trim.target for trim in plan.trims}
        world.events = list(script)
        world.holds_files = "files stay" in for_ever
        world.forgets_everything = "all is forgotten" in for_ever
        world.leaderless = {"t0"} if "t0 has no leader" in for_ever else set()
        world.doors.kills = [doors for doors, _ in kills]
        kept = iter([part for _, part in kills])
        while True:
            ledger = Ledger(world.files.folder, 1, world.now, rotate_at=Bytes(rotate_at))
            try:
                live_on(world, ledger, plan)
                break
            except Killed:
                world.lose_what_was_not_synced(next(kept))
            finally:
                ledger.close()

        assert all(offset <= targets.get(topic_id, Offset(0)) for topic_id, offset in world.sent)
        story = replayed(world)
        assert story.cycles[CYCLE].has_ended
        assert all(trim.phase.is_over for trim in story.cycles[CYCLE].trims)
        for trim in story.cycles[CYCLE].trims:
            if trim.phase is TrimPhase.DONE:
                assert 0 <= trim.freed_bytes <= trim.planned.allocated_bytes


def live_on(world: World, ledger: Ledger, plan: Plan) -> None:
    """What a guard does from its start on."""
    ledger.refresh()
    was_begun = world.files.parts() or world.files.current.stat().st_size
    if not was_begun:
        ledger.append(plan)
    if ledger.state.cycles:
        run(world, executor(world, ledger))


def replayed(world: World) -> LedgerState:
    """Asserts that there is no damage and that the end is the end."""
    state = LedgerState(keeps_ended=True)
    last: Entry | None = None
    for found in read_history(world.files):
        assert isinstance(found, Recorded), str(found)
        state.apply(found)
        last = found.entry
    assert isinstance(last, CycleEnded)
    return state

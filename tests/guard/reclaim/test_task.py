"""The ceiling held on one device: real files, a real ledger, a clock that ticks, and whatever may come in between."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.entries import CameBack, GivenUp, GivenUpTrim, Paused, Plan, Requested, Resumed
from brimline.act.seen_settings import SeenFile
from brimline.decide.disk_state import DiskState
from brimline.decide.reclaim.holding import HoldRules, Seen
from brimline.guard.reclaim.cycles import LEFT_BEHIND, SUPERSEDED
from brimline.guard.reclaim.report import Doing
from brimline.guard.reclaim.settings import JITTER
from brimline.guard.reclaim.task import RETRY
from brimline.model.reclaim import ReclaimPolicy
from tests.guard.reclaim.brokers import LOG_BYTES, SEGMENT, TOTAL, Guarded, SmallBroker, SmallLock
from tests.service.ticking import TickingClock

FIVE_PERCENT = TOTAL // 20
"""Between two and three segments."""


class Killed(Exception):
    """As ``kill -9``."""


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def broker(tmp_path: Path, clock: TickingClock) -> SmallBroker:
    """Used to 60 %, of which 10 % are beyond the ceiling: five segments, of two topics in turns."""
    made = SmallBroker(tmp_path, clock, bills=8, orders=8)
    made.fill_to(60)
    return made


@pytest.fixture
def guarded(broker: SmallBroker, tmp_path: Path, clock: TickingClock) -> Iterator[Guarded]:
    made = Guarded(broker, tmp_path / "state", clock)
    yield made
    made.kill()
    SmallLock.holder, SmallLock.is_waited_for = None, False


def trimmed(broker: SmallBroker) -> dict[str, int]:
    return {topic: start for topic, start in broker.log_starts.items() if start}


def plans(guarded: Guarded) -> list[Plan]:
    return [entry for entry in guarded.entries() if isinstance(entry, Plan)]


def given_up(guarded: Guarded) -> list[GivenUpTrim]:
    return [trim for entry in guarded.entries() if isinstance(entry, GivenUp) for trim in entry.trims]


def with_policy(guarded: Guarded, policy: ReclaimPolicy) -> None:
    guarded.settings = replace(guarded.settings, policy=policy)


def test_the_oldest_go_until_the_device_is_under_its_ceiling(broker: SmallBroker, guarded: Guarded) -> None:
    after = guarded.run(10)
    broker.retention_pass()
    over = guarded.run(60)

    assert after.doing is Doing.WAITING_FOR_SPACE
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}
    assert over.doing is Doing.UNDER_CEILING
    assert broker.used_percent <= 50
    assert over.last is not None
    assert (over.last.done, over.last.abandoned, over.last.freed_segments) == (2, 0, 5)
    assert over.since_start.freed_bytes == over.last.planned_bytes == over.last.freed_bytes
    assert [len(guarded.said(event)) for event in ("reclaim", "reclaim-over", "reclaim-under-ceiling")] == [1, 1, 1]


def test_it_is_on_record_before_it_is_sent(broker: SmallBroker, guarded: Guarded) -> None:
    seen: list[bool] = []
    broker.before_trim = lambda: seen.append(bool(plans(guarded)) and isinstance(guarded.entries()[-1], Requested))

    guarded.run(10)

    assert seen == [True, True]


def test_what_waits_for_its_files_is_not_taken_twice(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.run(300)

    assert len(plans(guarded)) == 1
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


def test_what_comes_on_top_is_taken_while_the_files_of_the_last_cycle_are_still_there(
    broker: SmallBroker, guarded: Guarded
) -> None:
    guarded.run(30)
    broker.used_elsewhere += FIVE_PERCENT
    report = guarded.run(60)

    assert [len(plan.trims) for plan in plans(guarded)] == [2, 2]
    assert plans(guarded)[1].excess_bytes < plans(guarded)[0].excess_bytes
    assert [cycle.waiting for cycle in report.under_way] == [2, 2]
    assert len(broker.bases("bills")) == 8, "no file is gone yet"


def test_what_another_guard_trimmed_before_the_plan_is_left_out(broker: SmallBroker, guarded: Guarded) -> None:
    broker.log_starts["orders"] = 7 * SEGMENT

    report = guarded.run(10)

    assert report.doing is Doing.WAITING_FOR_SPACE
    assert (plans(guarded), broker.requests) == ([], [])


def test_what_another_guard_trims_between_two_batches_ends_the_cycle(tmp_path: Path, clock: TickingClock) -> None:
    broker = SmallBroker(tmp_path, clock, bills=8, orders=8, quiet=8)
    broker.fill_to(62)
    guarded = Guarded(broker, tmp_path / "state", clock)

    def others_trim() -> None:
        broker.log_starts["quiet"] = 7 * SEGMENT + 2

    broker.before_trim = others_trim
    guarded.run(20)
    guarded.kill()

    (plan,) = plans(guarded)
    assert [trim.partition.topic for trim in plan.trims] == ["bills", "orders", "quiet"]
    assert [list(request) for request in broker.requests] == [["bills"]]
    assert [trim.why.split(":")[0] for trim in given_up(guarded)] == ["no longer needed", "no longer needed"]


def test_a_partition_without_a_leader_does_not_hold_up_the_device(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.task.step()
    broker.leaderless.add("bills")
    guarded.run(70)
    broker.leaderless.clear()
    guarded.run(30)

    assert len(plans(guarded)) == 2
    assert {trim.why for trim in given_up(guarded)} == {SUPERSEDED}
    assert trimmed(broker) == {"orders": 5 * SEGMENT + 1}


def test_plan_only_says_it(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.settings = replace(guarded.settings, is_applied=False)

    report = guarded.run(300)

    assert report.doing is Doing.PLANNED
    assert report.plan is not None
    assert report.plan.taken_segments == 5
    assert (plans(guarded), broker.requests) == ([], [])
    assert len(guarded.said("reclaim-planned")) == 1
    assert "would delete the 5 oldest segments" in guarded.said("reclaim-planned")[0]["message"]


def test_a_topic_that_is_protected_in_the_middle_of_a_cycle_keeps_what_was_not_sent(
    broker: SmallBroker, guarded: Guarded
) -> None:
    def protect() -> None:
        with_policy(guarded, ReclaimPolicy(ceiling_percent=50, protected_topics=("orders",)))

    broker.before_trim = protect
    guarded.run(60)

    assert all("orders" not in request for request in broker.requests)
    assert trimmed(broker) == {"bills": 5 * SEGMENT}
    assert len(plans(guarded)) == 2
    assert given_up(guarded)[0].why in (SUPERSEDED, "the configuration changed since it was planned")


@pytest.mark.parametrize("mode", ["apply", "plan"])
def test_a_lower_or_silenced_ceiling_counts_at_once(broker: SmallBroker, guarded: Guarded, mode: str) -> None:
    with_policy(guarded, ReclaimPolicy(ceiling_percent=100))
    assert guarded.run(5).doing is Doing.OFF

    guarded.settings = replace(guarded.settings, policy=ReclaimPolicy(ceiling_percent=50), is_applied=mode == "apply")
    guarded.run(1)

    assert bool(broker.requests) == (mode == "apply")


# Killed guards -------------------------------------------------------------------------------------------------------


def test_killed_with_nothing_sent_it_is_planned_anew(
    broker: SmallBroker, guarded: Guarded, tmp_path: Path, clock: TickingClock
) -> None:
    guarded.task.step()
    guarded.kill()
    again = Guarded(broker, tmp_path / "state", clock)
    again.run(10)

    first, second = plans(again)
    assert first.trims == second.trims
    assert {trim.why for trim in given_up(again)} == {LEFT_BEHIND}
    assert trimmed(broker) == {trim.partition.topic: trim.target for trim in first.trims}
    assert len(again.said("reclaim-adopted")) == 1


@pytest.mark.parametrize("is_sent", [False, True])
def test_killed_at_a_request_no_more_goes_than_was_planned(
    broker: SmallBroker, guarded: Guarded, tmp_path: Path, clock: TickingClock, *, is_sent: bool
) -> None:
    """Whether it was sent is what the ledger does not know."""

    def kill() -> None:
        if is_sent:
            broker.log_starts["bills"] = 3 * SEGMENT
        raise Killed

    broker.before_trim = kill
    with pytest.raises(Killed):
        guarded.run(10)
    guarded.kill()
    broker.before_trim = lambda: None
    again = Guarded(broker, tmp_path / "state", clock)
    again.run(10)
    broker.retention_pass()
    report = again.run(120)

    planned = {trim.partition.topic: trim.target for trim in plans(again)[0].trims}
    assert trimmed(broker) == planned
    assert (report.doing, report.under_way) == (Doing.UNDER_CEILING, ())


def test_one_that_was_restarted_waits_for_the_files_of_what_was_sent(
    broker: SmallBroker, guarded: Guarded, tmp_path: Path, clock: TickingClock
) -> None:
    guarded.run(10)
    guarded.kill()
    again = Guarded(broker, tmp_path / "state", clock)
    waiting = again.run(60)
    broker.retention_pass()
    over = again.run(60)

    assert [cycle.waiting for cycle in waiting.under_way] == [2]
    assert over.last is not None
    assert (over.last.done, over.last.freed_bytes) == (2, over.last.planned_bytes)
    assert len(plans(again)) == 1


def test_without_a_ceiling_a_state_dir_that_cannot_be_looked_into_does_no_harm(
    broker: SmallBroker, tmp_path: Path, clock: TickingClock
) -> None:
    unthinkable = Guarded(broker, tmp_path / ("x" * 300), clock, ceiling=100)

    assert unthinkable.task.step() > 0


def test_with_the_ceiling_switched_off_what_was_sent_is_still_watched(
    broker: SmallBroker, guarded: Guarded, tmp_path: Path, clock: TickingClock
) -> None:
    guarded.run(10)
    guarded.kill()
    broker.retention_pass()
    again = Guarded(broker, tmp_path / "state", clock, ceiling=100)
    report = again.run(60)

    assert [type(entry) for entry in again.entries()].count(CameBack) == 1
    assert (report.doing, report.under_way) == (Doing.OFF, ())


def test_a_cycle_that_somebody_carries_out_by_hand_is_left_alone(
    broker: SmallBroker, guarded: Guarded, tmp_path: Path, clock: TickingClock
) -> None:
    guarded.task.step()
    before = guarded.entries()
    second = Guarded(broker, tmp_path / "state", clock)
    report = second.run(20)

    assert second.entries() == before
    assert report.doing is Doing.WAITING_FOR_TURN


def test_a_broker_that_forgets_a_trim_is_asked_again(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.run(10)
    broker.log_starts = dict.fromkeys(broker.log_starts, 0)
    guarded.run(60)

    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


# Turns ---------------------------------------------------------------------------------------------------------------


def test_one_who_has_the_device_is_waited_for(broker: SmallBroker, guarded: Guarded) -> None:
    other = SmallLock("other")
    other.take()
    waiting = guarded.run(30)
    sent_before = list(broker.requests)
    other.release()
    guarded.run(10)

    assert waiting.doing is Doing.WAITING_FOR_TURN
    assert (sent_before, bool(broker.requests)) == ([], True)


def test_the_device_is_ours_until_the_files_are_gone(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.run(60)
    held = guarded.lock.is_held
    broker.retention_pass()
    guarded.run(60)

    assert (held, guarded.lock.is_held) == (True, False)


def test_who_waits_gets_the_device_although_it_is_written_to_all_the_time(
    broker: SmallBroker, guarded: Guarded
) -> None:
    """Else one of two brokers on a volume would lose all it may, before the other one loses anything."""
    guarded.run(10)
    other = SmallLock("other")
    other.take()
    broker.used_elsewhere += FIVE_PERCENT
    guarded.run(300)
    plans_while_waited_for = len(plans(guarded))
    broker.retention_pass()
    guarded.chance = 1.0
    guarded.run(10)
    is_theirs = other.take()
    other.release()
    guarded.run(60)

    assert (plans_while_waited_for, is_theirs) == (1, True)
    assert len(plans(guarded)) == 2


def test_guards_that_are_due_together_begin_apart(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.chance = 0.9
    guarded.run(0.8 * JITTER * guarded.settings.interval)
    before = list(broker.requests)
    guarded.run(0.2 * JITTER * guarded.settings.interval)

    assert (before, bool(broker.requests)) == ([], True)


def test_a_device_that_crosses_its_ceiling_is_not_kept_waiting(broker: SmallBroker, guarded: Guarded) -> None:
    broker.fill_to(40)
    guarded.see_disks()
    guarded.run(1)
    broker.fill_to(60)
    woken = guarded.woken
    guarded.see_disks()
    guarded.run(1)

    assert guarded.woken == woken + 1
    assert broker.requests


def test_a_device_that_was_emptied_is_not_called_stuck_until_the_next_cycle(
    broker: SmallBroker, guarded: Guarded
) -> None:
    broker.used_elsewhere = int(TOTAL * 0.45)
    with_policy(guarded, ReclaimPolicy(ceiling_percent=40))
    guarded.run(30)
    broker.retention_pass()
    guarded.run(120)
    guarded.see_disks()
    stuck = guarded.run(1)
    broker.used_elsewhere = 0
    guarded.see_disks()

    assert (stuck.doing, guarded.run(1).doing) == (Doing.STUCK, Doing.UNDER_CEILING)


def test_what_one_cycle_may_take_is_for_an_interval(broker: SmallBroker, guarded: Guarded) -> None:
    """However often the device goes above its ceiling and below it meanwhile."""
    with_policy(guarded, ReclaimPolicy(ceiling_percent=50, max_bytes_per_cycle=2 * (LOG_BYTES + 10_000)))
    for _ in range(10):
        guarded.run(5)
        broker.fill_to(40)
        guarded.see_disks()
        broker.fill_to(60)
        guarded.see_disks()
    in_the_first_interval = len(plans(guarded))
    guarded.run(60)

    assert in_the_first_interval == 1
    assert len(plans(guarded)) == 2
    assert all(plan.planned_bytes <= 2 * (LOG_BYTES + 10_000) for plan in plans(guarded))


# What stands in the way ----------------------------------------------------------------------------------------------


def test_a_pause_ends_what_was_not_sent_and_a_resume_goes_on(broker: SmallBroker, guarded: Guarded) -> None:
    broker.before_trim = lambda: guarded.ledger.append(Paused(by="root", reason="an audit"))
    paused = guarded.run(120)
    sent_before = list(broker.requests)
    broker.before_trim = lambda: None
    guarded.ledger.append(Resumed(by="root", reason="it is over"))
    guarded.run(60)

    assert (paused.doing, len(sent_before)) == (Doing.PAUSED, 1)
    assert given_up(guarded)[0].why == "paused by root: an audit"
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}
    assert [len(guarded.said(event)) for event in ("reclaim-paused", "reclaim-resumed")] == [1, 1]


def test_what_was_planned_before_a_pause_is_not_sent_after_it_without_the_device(
    broker: SmallBroker, guarded: Guarded
) -> None:
    """However short the pause was, and although no batch was due meanwhile: the lock may be somebody else's by now."""
    guarded.task.step()
    broker.leaderless.update(("bills", "orders"))
    guarded.run(1)
    guarded.ledger.append(Paused(by="anna", reason="replay"))
    guarded.task.step()
    guarded.ledger.append(Resumed(by="anna", reason=""))
    other = SmallLock("other")
    is_theirs = other.take()
    broker.leaderless.clear()
    guarded.run(30)

    assert is_theirs
    assert broker.requests == []


def test_what_cannot_be_recorded_is_not_done(broker: SmallBroker, guarded: Guarded, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    report = guarded.run(60)

    assert (report.doing, broker.requests) == (Doing.NOT_RECORDED, [])
    assert report.is_troubled
    assert len(guarded.said("reclaim-not-recorded")) == 1
    assert set(guarded.counted) == {"not-recorded"}

    (tmp_path / "state").unlink()
    guarded.run(RETRY)
    assert broker.requests
    assert len(guarded.said("reclaim-works-again")) == 1


def test_a_silent_broker_is_named_and_tried_again(broker: SmallBroker, guarded: Guarded) -> None:
    broker.is_silent = True
    report = guarded.run(60)
    broker.is_silent = False
    guarded.run(RETRY)

    assert (report.doing, report.problem) == (Doing.BROKER_SILENT, "nobody answers")
    assert broker.requests
    assert len(guarded.said("reclaim-broker-silent")) == 1


def test_a_broker_that_falls_silent_in_the_middle_is_sent_nothing_more_until_it_is_known_what_is_needed(
    broker: SmallBroker, guarded: Guarded
) -> None:
    def fall_silent_after_it() -> None:
        broker.log_starts["bills"] = 3 * SEGMENT
        broker.is_silent = True

    broker.before_trim = fall_silent_after_it
    silent = guarded.run(60)
    broker.is_silent, broker.before_trim = False, lambda: None
    guarded.run(120)

    assert silent.doing is Doing.BROKER_SILENT
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


def test_below_the_ceiling_a_silent_broker_is_no_trouble(broker: SmallBroker, guarded: Guarded) -> None:
    broker.fill_to(40)
    broker.is_silent = True

    assert guarded.run(60).doing is Doing.UNDER_CEILING
    assert not guarded.said("reclaim-broker-silent")


def test_a_topic_that_may_not_be_trimmed_does_not_stand_in_the_way(broker: SmallBroker, guarded: Guarded) -> None:
    """The oldest are its own: planned for, they would be refused in every cycle, and nothing would come back."""
    broker.forbidden.add("bills")
    guarded.run(10)

    assert trimmed(broker) == {"orders": 5 * SEGMENT + 1}


def test_readers_that_are_not_known_stop_nothing(broker: SmallBroker, guarded: Guarded) -> None:
    broker.groups_are_silent = True
    guarded.run(10)

    assert broker.requests
    assert "unread by: unknown" in guarded.said("reclaim")[0]["message"]


def test_files_that_no_broker_writes_are_a_named_state(
    broker: SmallBroker, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_tables: object) -> None:
        raise ValueError("the base offsets of a log's segments do not ascend")

    monkeypatch.setattr("brimline.decide.reclaim.plan.plan", refuse)
    report = guarded.run(10)

    assert report.doing is Doing.UNWATCHED
    assert report.problem is not None
    assert "do not ascend" in report.problem
    assert broker.requests == []


def test_a_disk_that_cannot_be_watched_is_left_alone(broker: SmallBroker, guarded: Guarded) -> None:
    guarded.see_disks(DiskState.UNKNOWN)

    assert guarded.run(60).doing is Doing.UNWATCHED
    assert broker.requests == []


@pytest.mark.parametrize("neighbour", [None, "/other"])
def test_a_log_dir_out_of_sight_lets_go_of_a_device_that_another_one_speaks_for(
    broker: SmallBroker, guarded: Guarded, neighbour: str | None
) -> None:
    guarded.run(10)
    held = guarded.lock.is_held
    guarded.see_disks(DiskState.UNKNOWN, neighbour)
    out_of_sight = guarded.run(60)
    held_out_of_sight = guarded.lock.is_held
    guarded.see_disks()
    broker.retention_pass()
    back = guarded.run(60)

    assert (held, out_of_sight.doing, held_out_of_sight) == (True, Doing.UNWATCHED, neighbour is None)
    assert (back.doing, back.under_way) == (Doing.UNDER_CEILING, ())
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


def test_a_ceiling_below_the_floor_is_said_in_advance_and_when_it_comes_to_it(
    broker: SmallBroker, guarded: Guarded
) -> None:
    broker.used_elsewhere = int(TOTAL * 0.45)
    with_policy(guarded, ReclaimPolicy(ceiling_percent=40))
    guarded.run(30)
    broker.retention_pass()
    report = guarded.run(120)

    assert report.doing is Doing.STUCK
    assert report.is_troubled
    assert "a ceiling of 40 % is impossible" in guarded.said("reclaim-floor")[0]["message"]
    assert len(guarded.said("reclaim-stuck")) == 1
    assert broker.bases("orders") == [7 * SEGMENT + 1], "the active segment stays"


@pytest.mark.parametrize("hours", [-30_000, -5, 5, 30_000])
def test_a_clock_that_jumps_deletes_no_more_than_was_planned(
    broker: SmallBroker, guarded: Guarded, clock: TickingClock, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    honest = clock.now

    def jumped() -> datetime:
        return honest() + timedelta(hours=hours)

    broker.before_trim = lambda: monkeypatch.setattr(clock, "now", jumped)
    guarded.run(60)
    broker.retention_pass()
    guarded.run(300)

    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


def test_a_clock_that_jumps_ahead_does_not_switch_off_the_minimum_retention(
    broker: SmallBroker, tmp_path: Path, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are of the first second of 1970, and so is the clock, until it jumps."""
    begun, ahead = clock.seconds(), timedelta(0)

    def now() -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=1 + clock.seconds() - begun) + ahead

    monkeypatch.setattr(clock, "now", now)
    guarded = Guarded(broker, tmp_path / "state", clock)
    with_policy(guarded, ReclaimPolicy(ceiling_percent=50, min_retention_ms=3_600_000))
    guarded.run(120)
    ahead = timedelta(days=365)
    guarded.run(120)
    kept = trimmed(broker)
    clock.tick(4000)
    guarded.run(120)
    guarded.kill()

    assert kept == {}
    assert len(guarded.said("clock-ahead")) == 1
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


def test_a_clock_that_was_ahead_before_the_start_does_not_either(
    broker: SmallBroker, guarded: Guarded, clock: TickingClock
) -> None:
    """Records are of 1970, and the clock says 2026: nothing newer was ever written, as far as can be seen."""
    with_policy(guarded, ReclaimPolicy(ceiling_percent=50, min_retention_ms=3_600_000))
    guarded.run(120)
    kept = trimmed(broker)
    clock.tick(4000)
    guarded.run(120)

    assert kept == {}
    assert trimmed(broker) == {"bills": 3 * SEGMENT, "orders": 2 * SEGMENT + 1}


def test_without_a_ceiling_there_is_no_ledger(broker: SmallBroker, tmp_path: Path, clock: TickingClock) -> None:
    off = Guarded(broker, tmp_path / "state", clock, ceiling=100)

    assert off.run(300).doing is Doing.OFF
    assert not (tmp_path / "state").exists()


# What waits for a person ---------------------------------------------------------------------------------------------

HELD = HoldRules(settings_percent=10, foreign_percent=5, seconds=3600.0)


def holding(guarded: Guarded, ceiling: int) -> None:
    policy = ReclaimPolicy(ceiling_percent=ceiling, max_used_percent=95)
    guarded.settings = replace(guarded.settings, policy=policy, hold=HELD)


def test_a_change_that_would_delete_much_is_held_until_it_has_stood_for_so_long(
    broker: SmallBroker, guarded: Guarded
) -> None:
    holding(guarded, 58)
    small = guarded.run(10)
    broker.retention_pass()
    guarded.run(60)
    before = trimmed(broker)
    holding(guarded, 8)
    held = guarded.run(3500)

    assert small.doing is Doing.WAITING_FOR_SPACE, "2 % of the volume are no such change"
    assert held.doing is Doing.HELD
    assert trimmed(broker) == before
    assert held.problem is not None
    assert "ceiling 8 %" in held.problem
    assert "they were ceiling 58 %" in held.problem
    assert "brimline reclaim --apply confirms it, else it resumes in" in held.problem
    assert len(guarded.said("reclaim-held")) == 1

    guarded.run(200)
    assert trimmed(broker) != before


def test_a_hold_outlives_a_killed_guard(broker: SmallBroker, guarded: Guarded, tmp_path: Path) -> None:
    holding(guarded, 8)
    guarded.run(100)
    guarded.kill()
    again = Guarded(broker, tmp_path / "state", guarded.clock)
    holding(again, 8)

    assert again.run(3500).doing is Doing.HELD
    assert trimmed(broker) == {}
    again.kill()


def test_settings_that_were_confirmed_are_not_held_again(broker: SmallBroker, guarded: Guarded, tmp_path: Path) -> None:
    holding(guarded, 40)
    confirmed = Seen(settings=guarded.settings.text)
    SeenFile(tmp_path / "state", 1, str(broker.log_dir)).write(confirmed)

    guarded.run(10)

    assert trimmed(broker) != {}


def test_a_change_back_ends_the_hold(broker: SmallBroker, guarded: Guarded) -> None:
    holding(guarded, 70)
    guarded.run(100)
    holding(guarded, 8)
    held = guarded.run(100)
    holding(guarded, 70)

    assert held.doing is Doing.HELD
    assert guarded.run(100).doing is Doing.UNDER_CEILING


def test_at_the_fence_nothing_is_held(broker: SmallBroker, guarded: Guarded) -> None:
    holding(guarded, 8)
    guarded.run(100)
    broker.fill_to(96)
    guarded.see_disks()

    guarded.run(100)

    assert trimmed(broker) != {}


def test_foreign_files_that_jump_are_waited_on_below_the_fence(broker: SmallBroker, guarded: Guarded) -> None:
    broker.fill_to(49)
    holding(guarded, 50)
    guarded.run(100)
    broker.fill_to(58)
    guarded.see_disks()
    held = guarded.run(600)
    broker.fill_to(51)
    guarded.run(100)

    assert held.doing is Doing.HELD
    assert held.problem is not None
    assert "files that are not Kafka's have grown by" in held.problem
    assert trimmed(broker) == {"bills": SEGMENT}, "what is left of it is no jump any more"


@pytest.mark.parametrize("reserve", [0, TOTAL // 2])
def test_a_larger_reserve_of_the_disk_deletes_nothing_sooner(
    broker: SmallBroker, guarded: Guarded, reserve: int
) -> None:
    """The brakes yield at the KIP's own limit alone: 40 % are left here, however much the fence keeps free."""
    young = replace(guarded.settings.policy, min_retention_ms=10**12, yields_at_reserve=True)
    guarded.settings = replace(guarded.settings, policy=replace(young, min_free_bytes=TOTAL // 100))
    guarded.see_disks(DiskState.FULL if reserve else DiskState.OK, reserve=reserve)

    guarded.run(600)

    assert trimmed(broker) == {}


def test_at_the_kips_own_limit_the_same_brakes_yield(broker: SmallBroker, guarded: Guarded) -> None:
    young = replace(guarded.settings.policy, min_retention_ms=10**12, yields_at_reserve=True)
    guarded.settings = replace(guarded.settings, policy=replace(young, min_free_bytes=TOTAL // 100))
    broker.fill_to(99.5)
    guarded.see_disks()

    guarded.run(600)

    assert trimmed(broker)

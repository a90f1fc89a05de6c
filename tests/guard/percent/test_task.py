"""KIP-1257's figures in the rhythm of retention, and what becomes of them when the broker does not answer."""

import pytest

from brimline.documents.guard_state import TierRow
from brimline.guard.percent.feature import retention_document
from brimline.guard.percent.percentages import PercentColumn
from brimline.guard.percent.task import PercentReport, PercentTask
from brimline.model import Bytes, Failure, FailureKind, Reason, TopicPartition
from brimline.model.partitions import TopicRetention
from tests.guard.brokers import FakeBroker, facts, held
from tests.service.ticking import TickingClock

PLAIN = TopicRetention(retention_bytes=1000)
TIERED = TopicRetention(retention_bytes=1000, local_retention_bytes=100, is_tiered=True)
FOREVER = TopicRetention(retention_bytes=-1, local_retention_bytes=100, is_tiered=True)
ROWS = [("orders", 0, 500, False), ("orders", 1, 1500, False), ("orders", 1, 250, True), ("t", 0, 90, False)]
T0 = TopicPartition("t", 0)
SILENT = Failure(kind=FailureKind.TIMED_OUT, message="did not answer")
DOWN = Failure(kind=FailureKind.UNREACHABLE, message="refused the connection")


class Cycle:
    def __init__(self, broker: FakeBroker, remote_interval: float | None = 30.0) -> None:
        self.broker = broker
        self.clock = TickingClock()
        self.reports: list[PercentReport] = []
        self.task = PercentTask(broker, self.clock, 300.0, remote_interval, self.reports.append)

    def after(self, seconds: float) -> PercentReport:
        self.clock.tick(seconds)
        self.task.step()
        return self.task.report


@pytest.fixture
def broker() -> FakeBroker:
    answers = FakeBroker(facts(ROWS, {"orders": held(PLAIN), "t": held(TIERED, 0)}))
    answers.remote[T0] = (Bytes(600), Bytes(40))
    return answers


def shown(column: PercentColumn | None) -> dict[tuple[str, ...], int]:
    assert column is not None
    return dict(zip(column.rows, column.values.tolist(), strict=True))


def test_every_replica_has_the_plain_figure_future_ones_apart(broker: FakeBroker) -> None:
    plain = Cycle(broker).after(0).plain

    assert plain is not None
    assert shown(plain.current) == {("orders", "0"): 50, ("orders", "1"): 150, ("t", "0"): 0}
    assert shown(plain.future) == {("orders", "1"): 25}


def test_a_led_tiered_partition_has_both_tiered_figures(broker: FakeBroker) -> None:
    tiered = Cycle(broker).after(0).tiered

    assert tiered is not None
    assert shown(tiered.total) == {("t", "0"): 64}
    assert shown(tiered.local) == {("t", "0"): 90}


def test_a_follower_has_none(broker: FakeBroker) -> None:
    broker.facts = facts(ROWS, {"orders": held(PLAIN), "t": held(TIERED)})

    tiered = Cycle(broker).after(0).tiered

    assert tiered is not None
    assert shown(tiered.total) == shown(tiered.local) == {}


def test_a_follower_has_sizes_all_the_same(broker: FakeBroker) -> None:
    broker.facts = facts(ROWS, {"orders": held(PLAIN), "t": held(TIERED)})

    report = Cycle(broker).after(0)

    sizes = retention_document(report, 0).sizes
    assert sizes is not None
    assert (sizes.known, sizes.unknown) == (1, {})
    assert (sizes.remote_bytes, sizes.only_local_bytes) == broker.remote[T0]
    assert sizes.most_only_local == (
        TierRow(topic="t", partition=0, remote_bytes=sizes.remote_bytes, only_local_bytes=sizes.only_local_bytes),
    )


def test_a_lost_leadership_takes_the_beans_away_within_one_cycle(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    cycle.after(0)
    broker.facts = facts(ROWS, {"orders": held(PLAIN), "t": held(TIERED)})

    tiered = cycle.after(30).tiered

    assert tiered is not None
    assert len(tiered.total) == len(tiered.local) == 0


def test_tiered_figures_have_their_own_rhythm(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    first = cycle.after(0)

    second = cycle.after(30)

    assert second.plain is first.plain
    assert second.tiered is not first.tiered


def test_nobody_is_asked_before_something_is_due(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    cycle.after(0)

    cycle.after(29)

    assert broker.asked == 1


def test_without_tiered_storage_there_is_only_the_retention_check(broker: FakeBroker) -> None:
    cycle = Cycle(broker, remote_interval=None)
    cycle.after(0)
    cycle.after(299)

    report = cycle.after(1)

    assert broker.asked == 2
    assert report.tiered is None


def test_an_unknown_total_leaves_the_local_figure_and_is_not_zero(broker: FakeBroker) -> None:
    broker.remote[T0] = Reason.NO_PERMISSION

    tiered = Cycle(broker).after(0).tiered

    assert tiered is not None
    assert shown(tiered.total) == {}
    assert shown(tiered.local) == {("t", "0"): 90}
    assert tiered.unknown == {T0: Reason.NO_PERMISSION}


def test_an_unlimited_total_is_zero_even_if_its_size_is_not_known(broker: FakeBroker) -> None:
    broker.facts = facts(ROWS, {"orders": held(PLAIN), "t": held(FOREVER, 0)})
    broker.remote[T0] = Reason.CHANGING

    tiered = Cycle(broker).after(0).tiered

    assert tiered is not None
    assert shown(tiered.total) == {("t", "0"): 0}
    assert shown(tiered.local) == {("t", "0"): 90}


def test_a_topic_whose_limits_are_not_known_has_no_figure(broker: FakeBroker) -> None:
    broker.facts = facts(ROWS, {"t": held(TIERED, 0)}, unknown={"orders": SILENT})

    plain = Cycle(broker).after(0).plain

    assert plain is not None
    assert shown(plain.current) == {("t", "0"): 0}
    assert plain.unknown == {"orders": SILENT}


def test_one_silence_keeps_the_figures(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    cycle.after(0)
    broker.failure = SILENT

    report = cycle.after(30)

    assert report.failure is SILENT
    assert report.plain is not None
    assert report.tiered is not None


def test_figures_older_than_two_intervals_are_withdrawn(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    cycle.after(0)
    broker.failure = SILENT

    report = cycle.after(61)

    assert report.tiered is None
    assert report.plain is not None


def test_a_broker_that_does_not_run_has_no_figures(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    cycle.after(0)
    broker.failure = DOWN

    report = cycle.after(30)

    assert report.plain is None
    assert report.tiered is None


def test_after_a_failure_it_asks_again_soon(broker: FakeBroker) -> None:
    broker.failure = DOWN
    cycle = Cycle(broker)
    cycle.after(0)
    broker.failure = None

    report = cycle.after(5)

    assert report.failure is None
    assert report.plain is not None


def test_rows_stay_the_same_object_while_the_partitions_do(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    first = cycle.after(0).plain
    second = cycle.after(300).plain

    assert first is not None
    assert second is not None
    assert second.current.rows is first.current.rows


def test_growth_and_deletion_are_right_after_one_cycle(broker: FakeBroker) -> None:
    cycle = Cycle(broker)
    cycle.after(0)
    broker.facts = facts([("orders", 0, 100, False), ("orders", 9, 10, False)], {"orders": held(PLAIN)})

    report = cycle.after(300)

    assert report.plain is not None
    assert report.tiered is not None
    assert shown(report.plain.current) == {("orders", "0"): 10, ("orders", "9"): 1}
    assert shown(report.tiered.total) == {}


def test_a_broker_that_dies_between_two_looks_is_noticed_at_the_next_pulse_and_looked_at_when_it_is_back(
    broker: FakeBroker,
) -> None:
    cycle = Cycle(broker, remote_interval=None)
    cycle.after(0)
    broker.failure = DOWN

    gone = cycle.after(10)
    broker.failure = None
    back = cycle.after(5)

    assert (gone.failure, gone.plain) == (DOWN, None)
    assert back.failure is None
    assert back.plain is not None


def test_between_two_looks_nothing_but_the_pulse_is_asked(broker: FakeBroker) -> None:
    cycle = Cycle(broker, remote_interval=None)

    cycle.after(0)
    cycle.after(10)
    cycle.after(10)

    assert broker.asked == 1
    assert cycle.task.step() == 10.0

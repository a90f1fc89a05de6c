"""The board holds the newest family of each metric, and says when that changed."""

import pytest

from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.metric import MetricFamily


def test_a_family_replaces_the_one_before() -> None:
    board = MetricBoard()
    board.put(catalogue.BROKER_CONNECTED.single(0))

    board.put(catalogue.BROKER_CONNECTED.single(1))

    assert [tuple(family.values) for family in board.families()] == [(1,)]


def test_families_come_in_the_catalogues_order() -> None:
    board = MetricBoard()

    board.put(catalogue.START_TIME.single(1), catalogue.BROKER_CONNECTED.single(1))

    assert [family.name for family in board.families()] == ["broker_connected", "start_time_seconds"]


def test_a_removed_metric_is_gone() -> None:
    board = MetricBoard()
    board.put(catalogue.BROKER_CONNECTED.single(1))

    board.remove("broker_connected", "never_there")

    assert board.families() == ()


def test_every_change_is_told() -> None:
    changes: list[str] = []
    board = MetricBoard(lambda: changes.append("changed"))

    board.put(catalogue.BROKER_CONNECTED.single(1))
    board.remove("broker_connected")

    assert changes == ["changed", "changed"]


def test_a_metric_that_is_not_in_the_catalogue_is_refused() -> None:
    with pytest.raises(KeyError, match="not in the catalogue"):
        MetricBoard().put(MetricFamily(name="made_up", label_values=((),), values=(1,)))

"""Topics that are named and not there."""

from datetime import UTC, datetime

import pytest

from brimline.cli.topics.describe import _check_named
from brimline.model import BadInput, BrokerId, BrokerLogDirs, Failure, FailureKind

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ANSWER = BrokerLogDirs(broker=BrokerId(1), address="", observed_at=NOW, log_dirs={})
SILENT = BrokerLogDirs(
    broker=BrokerId(2),
    address="",
    observed_at=NOW,
    log_dirs={},
    failure=Failure(kind=FailureKind.UNREACHABLE, message="nobody there"),
)


def test_a_name_that_no_topic_has_is_wrong_input() -> None:
    with pytest.raises(BadInput, match="no topic ordres on the brokers that were asked"):
        _check_named({"ordres"}, set(), [ANSWER])


def test_one_of_several_is_named_and_the_others_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _check_named({"orders", "ordres"}, {"orders"}, [ANSWER])

    assert capsys.readouterr().err == "brimline: no topic ordres on the brokers that were asked\n"


def test_where_a_broker_is_silent_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    _check_named({"ordres"}, set(), [ANSWER, SILENT])

    assert capsys.readouterr().err == ""

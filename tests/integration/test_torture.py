"""Torture: clients of several libraries, faults by a fixed seed, and every invariant judged at the end."""

from pathlib import Path

import pytest

from brimline.torture.history import Acked, Fault, Fenced, Finished, read_history
from tests.integration.cluster import brimline

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("real_volumes")]

FEW_FAULTS = "disk-foreign,gateway-kill,guard-kill,state-damaged,reload"
FEW_CLIENTS = "kafka-python,kafka-python-0,librdkafka-idempotent"
MINUTES = 5
"""Of each long run. Four of them, with the time to start and to read everything back, take less than half an hour."""


def torture(history: Path, *options: str) -> None:
    done = brimline("torture", "run", "--history", str(history), *options, timeout=1800)

    assert done.returncode == 0, done.stdout + done.stderr
    # The same file, judged again, is judged the same
    again = brimline("torture", "check", str(history))
    assert again.returncode == 0
    assert again.stdout.strip() in done.stdout


def test_a_few_faults_break_nothing(tmp_path: Path) -> None:
    history = tmp_path / "history"

    torture(history, "--seed", "39", "--only", FEW_FAULTS, "--steps", "4", "--clients", FEW_CLIENTS)

    events = list(read_history(history))
    assert sum(isinstance(event, Fault) for event in events) >= 4
    assert any(isinstance(event, Fenced) for event in events), "this seed fills a disk"
    assert sum(isinstance(event, Acked) for event in events) > 100
    assert isinstance(events[-1], Finished)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_minutes_of_all_faults_break_nothing(version: str, brokers: int, tmp_path: Path) -> None:
    torture(tmp_path / "history", "--kafka-version", version, "--brokers", str(brokers), "--minutes", str(MINUTES))

"""The ceiling's plan as a file: what ``brimline reclaim --plan`` reads is what the kernel planned."""

from pathlib import Path
from uuid import UUID

import pytest

from brimline.act.plan_file import CeilingFrom, load_plan
from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import read_broker
from brimline.fleet.planner.plan_files import filed_plan, write_plans
from brimline.landing.writer import encode
from tests.decide.reclaim.scenarios import Scenario, all_scenarios
from tests.fleet.snapshots import broker_of_one_log, file_of, header_of, sections_of, topic_id_of, write_snapshot

WITH_TRIMS = [each for each in all_scenarios() if each.trims and each.name != "two-brokers-on-one-device"]


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in WITH_TRIMS])
def test_every_scenarios_trims_are_in_the_file_as_planned(scenario: Scenario, tmp_path: Path) -> None:
    ceiling = scenario.tables.devices[0].policy.ceiling_percent
    file = write_snapshot(tmp_path, header_of(), sections_of(scenario.tables))
    if any(device.policy.ceiling_percent != ceiling for device in scenario.tables.devices):
        pytest.skip("a file is for one ceiling")

    (path,) = write_plans([file], ceiling, tmp_path / "plans")

    found = load_plan(path)
    planned, tables = plan(scenario.tables), scenario.tables
    expected = {
        (
            tables.topic_partition(log),
            int(planned.logs.new_log_start_offset[log]),
            int(planned.logs.taken_segments[log]),
            int(planned.logs.taken_bytes[log]),
        )
        for log in planned.trimmed_logs.tolist()
    }
    assert {
        (trim.partition, trim.target, trim.segments.count, trim.allocated_bytes) for trim in found.trims
    } == expected
    assert (found.cluster_id, found.broker, found.policy.ceiling_percent) == ("cluster-a", 1, ceiling)
    assert found.ceiling_from is CeilingFrom.HAND


def test_a_trim_says_where_it_is_and_what_goes() -> None:
    broker = read_broker(encode(header_of(), sections_of(broker_of_one_log(700, [0, 10, 20, 30]))))

    found = filed_plan(broker, 50)

    assert found is not None
    (device,) = found.devices
    (trim,) = device.trims
    assert (device.device, device.log_dirs, device.total_bytes, device.used_bytes) == ("disk", ("/disk",), 1000, 700)
    assert (trim.log_dir, trim.topic_id) == ("/disk", UUID(topic_id_of("orders")))
    assert (trim.log_start, trim.target, trim.segments.first, trim.segments.last) == (0, 20, 0, 10)


def test_who_has_nothing_to_delete_has_no_file(tmp_path: Path) -> None:
    below = write_snapshot(tmp_path, header_of(broker=1), sections_of(broker_of_one_log(400, [0, 10])))
    gone = file_of(tmp_path / "gone", header_of(broker=2), 3)

    assert write_plans([below, gone], 50, tmp_path / "plans") == []
    assert write_plans([below], 100, tmp_path / "plans") == []
    assert not (tmp_path / "plans").exists()

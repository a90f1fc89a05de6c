"""Run inside a sandbox, where the broker's log dirs are: a survey, its snapshot, and the plans made from both.

A snapshot has the clock's time alone: whether the clock is ahead is for the guard beside it to say.

    python -m tests.integration.landing_inside CONFIG LANDING STATE

It prints what it compared as one line of JSON.
"""

import json
import math
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from brimline.decide.disk_state import DiskLimits
from brimline.decide.reclaim.plan import plan
from brimline.disks.task import DiskReport
from brimline.guard.broker_client import BrokerClient
from brimline.guard.landing.child import SnapshotWriter
from brimline.guard.landing.facts import snapshot_sections
from brimline.guard.percent.task import PercentReport
from brimline.guard.reclaim.survey import Surveyor
from brimline.landing.header import Header, Source
from brimline.landing.place import LandingPlace
from brimline.landing.tables import reclaim_tables
from brimline.model import BrokerId, Bytes
from brimline.observe.cluster.topics import written_cluster_id
from brimline.service.clock import SystemClock
from brimline.settings.config import load_config
from tests.landing.test_tables import assert_equal_tables

_NO_LIMITS = DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0), release_margin_percent=0)


def main(config_path: str, landing: str, state: str) -> None:
    config, clock = load_config(config_path, {}), SystemClock()
    assert config.broker.node_id is not None
    broker = BrokerId(config.broker.node_id)
    with closing(BrokerClient(config.admin, broker, clock)) as client:
        seen = Surveyor(client, clock).survey(config.reclaim_policy, config.broker.log_dirs)
    header = Header(
        snapshot_id="1",
        cluster_id=written_cluster_id(config.broker.log_dirs) or "",
        broker_id=broker,
        source=Source.GUARD,
        taken_at_ms=math.floor(seen.made_at.timestamp() * 1000),
    )
    sections = snapshot_sections(seen, DiskReport(limits=_NO_LIMITS), PercentReport(), broker)
    delivered = SnapshotWriter(landing, Path(state), broker).write(header, sections, 0)
    tables = reclaim_tables(LandingPlace(landing).open(delivered.name))
    by_the_clock = tuple(replace(device, believed_ms=None) for device in seen.tables.tables.devices)
    assert_equal_tables(tables, replace(seen.tables.tables, devices=by_the_clock))
    from_file = plan(tables)
    assert np.array_equal(from_file.reason, seen.plan.reason)
    assert list(from_file.devices) == list(seen.plan.devices)
    assert np.array_equal(from_file.logs.new_log_start_offset, seen.plan.logs.new_log_start_offset)
    print(json.dumps({"segments": len(tables.segments), "trimmed": len(from_file.trimmed_logs)}))


if __name__ == "__main__":
    main(*sys.argv[1:])

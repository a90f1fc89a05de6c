"""A ceiling over topics of tiered storage that upload no more: what has nothing in the remote store goes as plain
topics do, what has something stays whole. What went is told by the broker's log starts.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import brimline_inside, configure, create_topic
from tests.integration.full_disks import used_percent
from tests.integration.guarded import guard, write_config
from tests.integration.reclaim_world import MIB, QUICK_BROKER, TRIMMABLE, Writer, reclaim_keys
from tests.integration.test_reclaim_ceiling import first_offset
from tests.integration.test_reclaim_guard import device
from tests.waiting import eventually

pytestmark = pytest.mark.integration

TIERED = {**TRIMMABLE, "remote.storage.enable": "true"}
NO_COPY = {"remote.log.copy.disable": "true"}


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    volumes = (VolumeSpec(size=Bytes(64 * MIB)),)
    properties = {**QUICK_BROKER, "remote.log.manager.task.interval.ms": "500"}
    with Sandbox(SandboxSpec(version=request.param, tiered=True, volumes=volumes, properties=properties)) as running:
        yield running


def uploaded_files(sandbox: Sandbox) -> int:
    return len(list(sandbox.outside(sandbox.tiered_dir).glob("uploaded*/*.log")))


def test_what_has_no_remote_data_is_trimmed_and_what_has_some_is_not(sandbox: Sandbox, tmp_path: Path) -> None:
    create_topic(sandbox, "uploaded", config=TIERED)
    Writer(sandbox.admin_servers).write("uploaded", 8, hours_old=150.0)
    eventually(lambda: uploaded_files(sandbox) > 3)
    configure(sandbox, "TOPIC", "uploaded", NO_COPY)
    create_topic(sandbox, "never", config={**TIERED, **NO_COPY})
    Writer(sandbox.admin_servers).write("never", 8, hours_old=120.0)
    low = int(used_percent(sandbox, sandbox.broker(1).log_dirs[0])) - 8
    keys = reclaim_keys(tmp_path, low)

    with guard(sandbox, tmp_path / "log", keys) as running:
        eventually(lambda: first_offset(sandbox, "never") > 0)
        eventually(lambda: device(running)["state"] in ("under-ceiling", "stuck"))
    dry = brimline_inside(
        sandbox, "reclaim", "--config", str(write_config(sandbox, keys)), "--ceiling", "5", "--output", "json"
    )

    assert first_offset(sandbox, "uploaded") == 0
    assert "remote.log.copy.disable=true retention.ms" in dry.stdout

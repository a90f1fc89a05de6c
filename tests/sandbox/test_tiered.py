import pytest

from brimline.sandbox import Sandbox, SandboxSpec
from tests.sandbox.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "version",
    ["4.3.1", pytest.param("4.1.2", marks=pytest.mark.long), pytest.param("3.9.2", marks=pytest.mark.long)],
)
def test_closed_segments_land_in_the_tiered_dir(version: str) -> None:
    with Sandbox(SandboxSpec(version=version, tiered=True)) as sandbox:
        created = sandbox.java_tool(
            *("topics", "--bootstrap-server", sandbox.bootstrap_servers, "--create", "--topic", "tiered"),
            *("--config", "remote.storage.enable=true", "--config", "segment.bytes=1048576"),
        )
        assert created.returncode == 0, created.stderr

        sandbox.java_tool(
            *("producer-perf-test", "--topic", "tiered", "--num-records", "30", "--record-size", "100000"),
            *("--throughput", "-1", "--producer-props", f"bootstrap.servers={sandbox.bootstrap_servers}"),
        )

        remote = sandbox.outside(sandbox.tiered_dir)
        wait_until(lambda: len(list(remote.glob("tiered-0-*/*.log"))) >= 2)

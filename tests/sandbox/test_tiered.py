import pytest

from brimline.sandbox import Sandbox, SandboxSpec
from tests.waiting import eventually

pytestmark = pytest.mark.integration


@pytest.mark.long
def test_closed_segments_land_in_the_tiered_dir() -> None:
    """Of the version whose tiered storage no other test starts."""
    with Sandbox(SandboxSpec(version="4.1.2", tiered=True)) as sandbox:
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
        eventually(lambda: len(list(remote.glob("tiered-0-*/*.log"))) >= 2)

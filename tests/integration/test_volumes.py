"""KIP-827 on real volumes: what the broker says equals what the file system says."""

import os
from collections.abc import Iterator

import pytest

from brimline.model import Bytes, volumes_of
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import admin, brimline, create_topic, produce
from tests.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="a loop-mounted ext4 volume needs root"),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volumes = (VolumeSpec(size=Bytes(64 << 20), filesystem="ext4"), VolumeSpec(size=Bytes(96 << 20), log_dirs=2))
    with Sandbox(SandboxSpec(volumes=volumes)) as running:
        create_topic(running, "orders", partitions=6)
        for partition in range(6):
            produce(running, "orders", 0.5, partition)
        yield running


def test_total_and_usable_are_the_file_systems_own(sandbox: Sandbox) -> None:
    """Between the two looks a broker may write; then they are taken again."""
    with admin(sandbox) as client:

        def described() -> dict[str, tuple[int | None, int | None]]:
            (answer,) = client.describe_log_dirs().values()
            return {path: (found.total_bytes, found.usable_bytes) for path, found in answer.answer().items()}

        eventually(lambda: described() == of_file_systems(sandbox))


def of_file_systems(sandbox: Sandbox) -> dict[str, tuple[int | None, int | None]]:
    """Total and usable bytes, by log dir."""
    facts = {path: os.statvfs(sandbox.outside(path)) for path in sandbox.broker(1).log_dirs}
    return {str(path): (of.f_blocks * of.f_frsize, of.f_bavail * of.f_frsize) for path, of in facts.items()}


def test_ext4_keeps_blocks_back_that_nobody_can_use(sandbox: Sandbox) -> None:
    facts = os.statvfs(sandbox.outside(sandbox.broker(1).log_dirs[0]))

    assert facts.f_bavail < facts.f_bfree


def test_two_log_dirs_on_one_volume_are_one_volume(sandbox: Sandbox) -> None:
    with admin(sandbox) as client:
        (answer,) = client.describe_log_dirs().values()

    volumes = volumes_of(answer.answer().values())

    assert [len(volume.log_dirs) for volume in volumes] == [1, 2]
    assert volumes[1].total_bytes == 96 << 20


def test_the_table_counts_a_shared_volume_once(sandbox: Sandbox) -> None:
    shown = brimline("log-dirs", "--bootstrap-server", sandbox.bootstrap_servers, "--output", "table")

    assert shown.returncode == 0
    assert shown.stdout.count("96.0 MiB") == 1
    assert "2 log dirs share this volume; it is counted once" in shown.stdout

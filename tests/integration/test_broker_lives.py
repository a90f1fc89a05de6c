"""What a broker's disk is filled by besides Produce, on real brokers: the cleaner held, inodes, a log dir offline."""

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.gatewayed import ENFORCING

pytestmark = [pytest.mark.integration]

MIB = 1 << 20
RATIO = "log.cleaner.min.cleanable.ratio"
LIMIT = {**ENFORCING, "disk.max.used.percent": "100", "disk.min.free.bytes": str(32 * MIB)}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volumes = (VolumeSpec(size=Bytes(160 * MIB)), VolumeSpec(size=Bytes(96 * MIB)))
    with Sandbox(SandboxSpec(volumes=volumes, fronted=True)) as running:
        yield running


def own_value(client: KafkaAdminClient, resource: ConfigResource, key: str) -> str | None:
    """As the broker has it, if it was set for this broker or topic alone."""
    found: Any = client.describe_configs([resource])
    ((_, _, _, _, entries, *_),) = found[0].resources
    return next((each[1] for each in entries if each[0] == key and each[3] in (1, 2)), None)

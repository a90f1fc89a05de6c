"""The stock numbers on a quiet cluster, from the stock tool of every supported version."""

import json
from pathlib import Path
from typing import Any

import pytest

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import admin, brimline, create_topic, produce
from tests.integration.guarded import guard
from tests.integration.segment_files import segment_files
from tests.waiting import eventually

pytestmark = pytest.mark.integration

VOLUME = VolumeSpec(size=Bytes(64 << 20))
LIMIT = 4 << 20


def sorted_answer(output: str) -> tuple[list[str], Any]:
    """The two lines for people, and the JSON without the order that Java's hash maps give it."""
    *lines, document = output.splitlines()
    answer = json.loads(document)
    answer["brokers"].sort(key=lambda broker: broker["broker"])
    for broker in answer["brokers"]:
        broker["logDirs"].sort(key=lambda log_dir: log_dir["logDir"])
        for log_dir in broker["logDirs"]:
            log_dir["partitions"].sort(key=lambda partition: partition["partition"])
    return lines, answer


@pytest.mark.parametrize(
    "version", ["4.3.1", *(pytest.param(version, marks=pytest.mark.long) for version in ("3.2.3", "3.9.2", "4.1.2"))]
)
def test_every_version(version: str, tmp_path: Path) -> None:
    old = version.startswith("3.2")
    with Sandbox(SandboxSpec(version=version, volumes=(VOLUME,) if old else (VOLUME, VOLUME))) as sandbox:
        create_topic(sandbox, "orders", partitions=4, config={"retention.bytes": str(LIMIT)})
        create_topic(sandbox, "a.b-1.x-delete", partitions=2)
        for partition in range(3):
            produce(sandbox, "orders", 0.3 * (partition + 1), partition)
        for arguments in ([], ["--topic-list", "orders,no-such-topic"], ["--broker-list", "1,1"]):
            options = ["--bootstrap-server", sandbox.bootstrap_servers, "--describe", *arguments]
            theirs = sandbox.java_tool("log-dirs", *options)
            ours = brimline("log-dirs", *options, "--output", "kafka-json")

            assert (theirs.returncode, ours.returncode) == (0, 0), theirs.stderr + ours.stderr
            assert sorted_answer(ours.stdout) == sorted_answer(theirs.stdout)
            assert "usable" not in theirs.stdout.lower(), "README says that the stock tool does not print it"

        with admin(sandbox) as client:
            (answer,) = client.describe_log_dirs().values()
        for log_dir in answer.answer().values():
            if old:
                assert (log_dir.total_bytes, log_dir.usable_bytes) == (None, None)
            else:
                assert log_dir.total_bytes == 64 << 20
                assert 0 < (log_dir.usable_bytes or 0) < 64 << 20
        if old:
            assert_guarded(sandbox, tmp_path)


def assert_guarded(sandbox: Sandbox, folder: Path) -> None:
    """A guard beside a broker that has neither the gauges nor the bytes of its volumes."""
    (log_dir,) = sandbox.broker(1).log_dirs
    size = sum(segment_files(sandbox.outside(log_dir) / "orders-2").values())
    limits = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
    with guard(sandbox, folder / "log", limits) as running:
        eventually(lambda: running.percent("kafka_log_log_retentionsizeinpercent", "orders", 2) == size * 100 // LIMIT)
        assert set(running.states().values()) == {"ok"}
    assert size > 0

"""Where the client matrix is made: a real broker with two log dirs, a gateway, and a fence around one of the two."""

import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brimline.decide.admission import RejectError
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import create_topic, eventually
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, write_gateway_config

SPEC = SandboxSpec(fronted=True, volumes=2 * (VolumeSpec(size=Bytes(1 << 30)),))
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
FENCE = {"reason": "log dir /data/a is 97.3 % used, limit disk.max.used.percent=95", "by": "bench"}
SMALL_SEGMENTS = {"segment.bytes": str(16 << 20), "retention.bytes": str(64 << 20)}
"""So that the disks of this site do not really become full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    sandbox: Sandbox
    gateway: RunningGateway

    def answer_with(self, error: RejectError) -> None:
        """What refusals carry from now on."""
        settings = {**ENFORCING, **NOTHING_IS_FULL, "brimline.reject.error": str(int(error))}
        write_gateway_config(self.sandbox, settings)
        self.gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.gateway.state()["rejectError"] == error)

    def new_topic(self, name: str, config: Mapping[str, str] | None = None) -> tuple[int, int]:
        """One of its partitions in the log dir that will be fenced, and one in the other."""
        create_topic(self.sandbox, name, partitions=4, config=config)
        fenced, healthy = (
            [entry.name for entry in self.sandbox.outside(log_dir).iterdir() if entry.name.rpartition("-")[0] == name]
            for log_dir in self.sandbox.broker(1).log_dirs
        )
        return int(min(fenced)[-1]), int(min(healthy)[-1])

    @contextmanager
    def fence(self) -> Iterator[None]:
        target = {**FENCE, "logDir": str(self.sandbox.broker(1).log_dirs[0])}
        self.gateway.ask("fence", **target)
        try:
            yield
        finally:
            self.gateway.ask("unfence", **target)

    def refused_batches(self, topic: str) -> int:
        return sum(row["batches"] for row in self.gateway.state()["refusals"] if row["topic"] == topic)


@contextmanager
def running_site() -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory() as directory,
        Sandbox(SPEC) as sandbox,
        gateway(sandbox, Path(directory) / "gateway.log", NOTHING_IS_FULL) as running,
    ):
        yield Site(sandbox=sandbox, gateway=running)


def shortened(text: str) -> str:
    """Of a client's error message, as much as fits in a table."""
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:157]}…"

"""Kafka's own admin client: what a stock program is told about the log dirs of a broker."""

import json
import subprocess
from dataclasses import dataclass

from brimline.torture.clients.table import java_command
from tests.waiting import PATIENCE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLogDir:
    """``None``: the client was not told. ``sizes`` are by partition, written as ``topic-0``."""

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool | None
    sizes: dict[str, int]


def describe_log_dirs(version: str, servers: str, broker: int = 1) -> dict[str, ShownLogDir]:
    """By path, as the Java admin client of this version shows them."""
    arguments = ["--bootstrap-servers", servers, "--broker", str(broker)]
    done = subprocess.run(
        java_command(version, "describe", arguments),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        each["logDir"]: ShownLogDir(
            path=each["logDir"],
            total_bytes=each["totalBytes"],
            usable_bytes=each["usableBytes"],
            is_cordoned=each["isCordoned"],
            sizes=each["sizes"],
        )
        for each in shown
    }

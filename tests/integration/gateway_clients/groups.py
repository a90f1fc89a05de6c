"""A consumer group of Java members in one process: who was given which partition, and every record as it was read."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from brimline.torture.clients.table import ClientProcess, java_command
from tests.waiting import PATIENCE_SECONDS, eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    value: str
    partition: int
    offset: int
    member: int


class Group:
    def __init__(self, command: list[str]) -> None:
        self._lock = threading.Lock()
        self._consumed: list[Consumed] = []
        self._assigned: dict[int, list[int]] = {}
        self.process = ClientProcess(command, self._hear)

    @property
    def consumed(self) -> list[Consumed]:
        with self._lock:
            return list(self._consumed)

    @property
    def assigned(self) -> dict[int, list[int]]:
        """Member → its partitions, as last seen."""
        with self._lock:
            return dict(self._assigned)

    def wait_for_records(self, count: int) -> None:
        """Until so many have been read in all."""
        eventually(lambda: len(self.consumed) >= count or not self.process.is_running)
        assert len(self.consumed) >= count, f"the group ended: {self.process.complaint()[-2000:]}"

    def stop(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Leave the group and commit what was read."""
        if self.process.is_running:
            self.process.ask_to_stop()
        self.process.wait(seconds)

    def _hear(self, line: dict[str, Any]) -> None:
        with self._lock:
            match line:
                case {"consumed": value, "partition": partition, "offset": offset, "member": member}:
                    self._consumed.append(Consumed(value=value, partition=partition, offset=offset, member=member))
                case {"assigned": partitions, "member": member}:
                    self._assigned[member] = partitions


@contextmanager
def consuming(
    version: str,
    servers: str,
    topic: str,
    group: str,
    *,
    members: int = 2,
    properties: Mapping[str, str] | None = None,
) -> Iterator[Group]:
    """Read the topic from its beginning until the block ends; offsets are committed then."""
    arguments = ["--bootstrap-servers", servers, "--topic", topic, "--group", group, "--members", str(members)]
    arguments += ["--name", group]
    for key, value in (properties or {}).items():
        arguments += ["--property", f"{key}={value}"]
    running = Group(java_command(version, "consume", arguments))
    try:
        yield running
        running.stop()
    finally:
        running.process.close()

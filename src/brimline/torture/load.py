"""The clients that write numbered records through the gateways while faults come and go, each a process of its own."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from brimline.sandbox.java import find_java
from brimline.torture.clients.table import (
    AIOKAFKA,
    AIOKAFKA_IDEMPOTENT,
    JAVA_3,
    JAVA_4,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    LIBRDKAFKA_IDEMPOTENT,
    Client,
    ClientProcess,
)
from brimline.torture.history import LEADER, NOTHING, ONCE, STORED, Acked, AnyEvent, Failed, History, Sent
from brimline.torture.history import Client as ClientEvent
from brimline.torture.waiting import came_true
from brimline.torture.world import DOOMED, KEPT, PARTITIONS, PLAIN

RECORDS_PER_SECOND = 20
VALUE_BYTES = 200
_LIBRARIES = {"librdkafka_producer": "confluent_kafka", "aiokafka_producer": "aiokafka"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWriter:
    """A client with its settings, and what these promise of an acknowledged record."""

    name: str
    client: Client
    topic: str
    promise: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def why_not(self) -> str | None:
        """What is missing here for this client."""
        library = _LIBRARIES.get(self.client.module)
        if library and find_spec(library) is None:
            return f"the Python package {library} is not installed"
        if self.client.java_version and not find_java().resolve().with_name("javac").is_file():
            return "there is a Java but no javac"
        return None


WRITERS = (
    LoadWriter(name="kafka-python", client=KAFKA_PYTHON, topic=KEPT, promise=ONCE),
    LoadWriter(
        name="kafka-python-all",
        client=KAFKA_PYTHON,
        topic=PLAIN,
        promise=STORED,
        properties={"enable_idempotence": "false", "acks": "all"},
    ),
    LoadWriter(
        name="kafka-python-1",
        client=KAFKA_PYTHON,
        topic=KEPT,
        promise=LEADER,
        properties={"enable_idempotence": "false", "acks": "1"},
    ),
    LoadWriter(
        name="kafka-python-0",
        client=KAFKA_PYTHON,
        topic=PLAIN,
        promise=NOTHING,
        properties={"enable_idempotence": "false", "acks": "0"},
    ),
    LoadWriter(name="librdkafka", client=LIBRDKAFKA, topic=PLAIN, promise=STORED),
    LoadWriter(name="librdkafka-idempotent", client=LIBRDKAFKA_IDEMPOTENT, topic=KEPT, promise=ONCE),
    LoadWriter(name="aiokafka", client=AIOKAFKA, topic=KEPT, promise=LEADER),
    LoadWriter(name="aiokafka-idempotent", client=AIOKAFKA_IDEMPOTENT, topic=PLAIN, promise=ONCE),
    LoadWriter(name="java-4.3.1", client=JAVA_4, topic=KEPT, promise=ONCE),
    LoadWriter(name="java-3.9.2", client=JAVA_3, topic=PLAIN, promise=ONCE),
    LoadWriter(name="doomed", client=LIBRDKAFKA, topic=DOOMED, promise=NOTHING),
)


class Load:
    """Running writers. What they report goes to the history as it comes."""

    def __init__(self, writers: Iterable[LoadWriter], servers: str, history: History) -> None:
        self._history = history
        self._last_ack: dict[str, float] = {}
        self._last_error: dict[str, str] = {}
        self._processes = {writer.name: self._start(writer, servers) for writer in writers}

    def _start(self, writer: LoadWriter, servers: str) -> ClientProcess:
        self._history.note(ClientEvent(client=writer.name, topic=writer.topic, promise=writer.promise))
        arguments = {
            "--bootstrap-servers": servers,
            "--topic": writer.topic,
            "--partitions": ",".join(map(str, PARTITIONS)),
            "--rate": str(RECORDS_PER_SECOND),
            "--name": writer.name,
            "--value-bytes": str(VALUE_BYTES),
            "--tell-sends": "yes",
        }
        words = [word for pair in arguments.items() for word in pair]
        command = writer.client.command(words, {**writer.client.patience, **writer.properties})
        return ClientProcess(command, lambda line: self._hear(writer.name, line))

    def _hear(self, client: str, line: dict[str, Any]) -> None:
        event: AnyEvent
        match line:
            case {"sent": number, "at": at}:
                event = Sent(at=at, client=client, number=number)
            case {"acked": number, "partition": partition, "offset": offset}:
                event = Acked(client=client, number=number, partition=partition, offset=offset)
                self._last_ack[client] = event.at
            case {"failed": number, "error": error}:
                event = Failed(client=client, number=number, error=error)
                self._last_error[client] = error
            case _:
                return
        self._history.note(event)

    @property
    def names(self) -> list[str]:
        return list(self._processes)

    def silent(self) -> dict[str, str]:
        """The clients that get no acknowledgement from now on, with the reason."""
        since = time.time()

        def without() -> list[str]:
            return [name for name in self._processes if self._last_ack.get(name, 0.0) <= since]

        came_true(lambda: not any(self._processes[name].is_running for name in without()))
        return {name: self._why_silent(name) for name in without()}

    def _why_silent(self, name: str) -> str:
        process = self._processes[name]
        what = "no acknowledgement came" if process.is_running else "its process has ended"
        last = f", last error {self._last_error[name]}" if name in self._last_error else ""
        return f"{what}{last}: {' '.join(process.complaint().split())[-300:]}"

    def stop(self, seconds: float) -> None:
        """Flush and end; what does not end in time is killed, and what it was told until then counts."""
        for process in self._processes.values():
            process.ask_to_stop()
        give_up_at = time.monotonic() + seconds
        for process in self._processes.values():
            came_true(lambda: not process.is_running, max(give_up_at - time.monotonic(), 0.0))  # noqa: B023 (at once)
        self.close()

    def close(self) -> None:
        for process in self._processes.values():
            process.close()


def number_in(value: str, partition: int) -> tuple[str, int] | None:
    """The client and the number that a record's value names; ``None`` for what no client of ours wrote there."""
    name, _, number = value.rstrip().rpartition(f"-{partition}-")
    return (name, int(number)) if name and number.isdecimal() else None

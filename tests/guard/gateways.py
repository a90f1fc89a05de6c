"""A gateway's control socket without a gateway: answers from memory, remembers what it was told."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from brimline.documents.codec import from_json
from brimline.documents.gateway_state import GatewayState
from tests.waiting import PATIENCE_SECONDS

Json = dict[str, Any]


def fence(cause: str = "full", by: str | None = None, partitions: int = 12, **target: str) -> Json:
    return {
        **(target or {"logDir": "/data/a"}),
        "cause": cause,
        "reason": "more than 90 % is used" if cause != "manual" else "moving this disk",
        "since": "2026-01-01T00:10:00.000Z",
        "by": by,
        "partitions": partitions,
    }


def refused(topic: str = "orders", partition: int = 3, batches: int = 5, client: str = "librdkafka 2.10.0") -> Json:
    return {"topic": topic, "partition": partition, "client": client, "batches": batches, "bytes": 100 * batches}


def document(**changes: Any) -> Json:
    """A state as a gateway writes it."""
    listener = {"name": "CLIENT", "address": "*:9092", "upstream": "127.0.0.1:19092", "protocol": "PLAINTEXT"}
    return {
        "version": "0.1.0",
        "pid": 4711,
        "startedAt": "2026-01-01T00:00:00.000Z",
        "enforcement": "gateway",
        "rejectError": 56,
        "listeners": [{**listener, "connections": 7}],
        "connections": {"open": 7, "accepted": 9, "closed": {"client": 1, "header-timeout": 1}},
        "bytes": {"toBroker": 1000, "toClients": 2000},
        "requests": {"total": 30, "produce": 20},
        "fences": [],
        "refusals": [],
        "wouldHaveRefused": [],
        "sequences": {"held": 3, "evicted": 1},
        "latency": {"bounds": [0.0001, 0.001], "counts": [10, 5, 1], "sum": 0.02},
        "describe": {"workerRestarts": 1, "failures": 2},
        "skips": {
            "fetchesRewritten": 9,
            "partitionsSkipped": 8,
            "bytesWithheld": 7,
            "sessionsRestarted": 6,
            "answersNotUnderstood": 5,
        },
        "draining": False,
        **changes,
    }


def state(**changes: Any) -> GatewayState:
    return from_json(GatewayState, document(**changes))


class FakeGateway:
    """Serves until ``stop``. ``raw`` is said instead of an answer, ``is_silent`` says nothing at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document = document()
        self.told: list[Json] = []
        self.raw: bytes | None = None
        self.error: str | None = None
        self.is_silent = False
        self._heard = threading.Semaphore(0)
        self._connections: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def wait_for(self, requests: int = 1) -> None:
        for _ in range(requests):
            assert self._heard.acquire(timeout=PATIENCE_SECONDS), f"told only {self.told}"

    def stop(self) -> None:
        """As a killed one: the socket's file stays behind. Again is fine."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        # Closed before its thread has ended, its number may be another listener's whose clients this one would accept.
        self._acceptor.join(PATIENCE_SECONDS)
        self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, suppress(OSError):
            for line in lines:
                request: Json = json.loads(line)
                answer = json.dumps(self._answer(request)).encode() + b"\n"
                self.told.append(request)
                if not self.is_silent:
                    connection.sendall(answer if self.raw is None else self.raw)
                self._heard.release()

    def _answer(self, request: Json) -> Json:
        if self.error is not None:
            return {"ok": False, "error": self.error}
        target = {name: request[name] for name in ("logDir", "topic") if name in request}
        if request["op"] == "state":
            return {"ok": True, "state": self.document}
        if request["op"] == "fence":
            added = {**fence("manual", by=request["by"], **target), "reason": request["reason"]}
            self.document["fences"] = [*self.document["fences"], added]
        if request["op"] == "unfence":
            self.document["fences"] = [
                kept
                for kept in self.document["fences"]
                if kept["cause"] != "manual" or any(kept.get(name) != value for name, value in target.items())
            ]
        return {"ok": True}


@contextmanager
def fake_gateway(path: Path) -> Iterator[FakeGateway]:
    gateway = FakeGateway(path)
    try:
        yield gateway
    finally:
        gateway.stop()

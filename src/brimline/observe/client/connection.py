"""One client of one cluster: every question goes through here, and every failure comes back as a value.

kafka-python does the talking (connections, versions, SASL, TLS). This module adds what an operator's tool needs on
top: all brokers are asked at once under one deadline, one dead broker never hides the others, and an error says
what happened, to what, and what to do next.
"""

import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from kafka.errors import KafkaConnectionError
from kafka.errors import KafkaError as ClientError
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from brimline.model import BrimlineError, BrokerId, Failure, FailureKind, ObservationFailed
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.failures import failure_of
from brimline.observe.client.requests import WireRequest

# A broker with a million partitions answers DescribeLogDirs with 22 MB. The first bytes of other protocols, taken for a
# length, are larger than this, so that their servers are told apart before anything is allocated.
_LARGEST_ANSWER = 1 << 28
_ASKED_AT_ONCE = 3

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBroker:
    broker: BrokerId
    host: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"broker {self.broker} at {self.address}"


class Deadline:
    """A moment by which everything must have been answered, and who has let such a moment pass already.

    A call that asks in several rounds takes ``renewed()`` for each: a broker that did not answer one round is not
    waited for in the next, so that a hung broker costs the timeout once.
    """

    __slots__ = ("_at", "_timeout", "silent")

    def __init__(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._at = time.monotonic() + timeout.total_seconds()
        self.silent: dict[BrokerId, Failure] = {}

    def renewed(self) -> "Deadline":
        deadline = Deadline(self._timeout)
        deadline.silent = self.silent
        return deadline

    @property
    def remaining_ms(self) -> float:
        return max(0.0, (self._at - time.monotonic()) * 1000)


class Connection:
    """Connects at once; raises ``ObservationFailed`` with the reason of every bootstrap server if none answers."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._net = NetworkSelector()
        self._manager = KafkaConnectionManager(
            self._net,
            **config.kafka_python_connection_options(),
            receive_message_max_bytes=_LARGEST_ANSWER,
        )
        try:
            self._bootstrap(Deadline(config.api_timeout or config.request_timeout))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._manager.close()
        self._net.close()

    @property
    def brokers(self) -> Mapping[BrokerId, ListedBroker]:
        """The live brokers, as the cluster listed them when asked last."""
        return {
            BrokerId(node.node_id): ListedBroker(broker=BrokerId(node.node_id), host=node.host, port=node.port)
            for node in sorted(self._manager.cluster.brokers(), key=lambda node: node.node_id)
        }

    def refresh_brokers(self, deadline: Deadline) -> None:
        """Have the cluster list its live brokers again. Raises ``ObservationFailed`` if nobody answers."""
        answer = self.ask_any(partial(MetadataRequest, topics=[]), deadline)
        if answer.brokers:
            self._manager.cluster.update_metadata(answer)

    def ask(self, broker: BrokerId, request: object, deadline: Deadline) -> Any:
        """One broker's answer, or ``ObservationFailed``."""
        answer = self.ask_each({broker: (broker, request)}, deadline)[broker]
        if isinstance(answer, Failure):
            raise ObservationFailed(answer)
        return answer

    def ask_any(self, make_request: Callable[[], object], deadline: Deadline) -> Any:
        """The first answer that any broker gives; the first failure if none does.

        A few are asked at once, those first to which a connection stands: one that hangs holds nobody up.
        """
        candidates = sorted(set(self.brokers) - set(deadline.silent), key=self._is_unconnected)
        failures = list(deadline.silent.values())
        for first in range(0, len(candidates), _ASKED_AT_ONCE):
            asked = candidates[first : first + _ASKED_AT_ONCE]
            answer = self._run(self._first_answer({broker: make_request() for broker in asked}, deadline))
            if not isinstance(answer, Failure):
                return answer
            failures.append(answer)
        unknown = Failure(kind=FailureKind.UNREACHABLE, message="the cluster lists no live broker")
        raise ObservationFailed(failures[0] if failures else unknown)

    def ask_each(self, questions: Mapping[Key, tuple[BrokerId, object]], deadline: Deadline) -> dict[Key, Any]:
        """Every question at once, each to its broker; an answer or a ``Failure`` for each."""
        answers: dict[Key, Any] = self._run(self._ask_each(questions, deadline))
        return answers

    async def _ask_each(self, questions: Mapping[Key, tuple[BrokerId, object]], deadline: Deadline) -> dict[Key, Any]:
        under_way = {
            key: self._net.call_soon_with_future(self._manager.send, request, broker)
            for key, (broker, request) in questions.items()
            if broker not in deadline.silent
        }
        answers: dict[Key, Any] = {}
        for key, (broker, request) in questions.items():
            if key not in under_way:
                answers[key] = deadline.silent[broker]
                continue
            try:
                answers[key] = _decoded(request, await self._manager.wait_for(under_way[key], deadline.remaining_ms))
            except (ClientError, OSError, BrimlineError) as error:
                answers[key] = self._failure(broker, error, deadline)
        return answers

    async def _first_answer(self, requests: Mapping[BrokerId, object], deadline: Deadline) -> Any:
        """The first that succeeds; when all have failed, or time is up, the failure of the first."""
        under_way = {
            broker: self._net.call_soon_with_future(self._manager.send, request, broker)
            for broker, request in requests.items()
        }
        try:
            broker, answer = await self._manager.wait_for(_first_success(under_way), deadline.remaining_ms)
        except (ClientError, OSError) as error:
            failures = [
                self._failure(broker, future.exception if future.failed() else error, deadline)
                for broker, future in under_way.items()
            ]
            return failures[0]
        return _decoded(requests[broker], answer)

    def _failure(self, broker: BrokerId, error: BaseException, deadline: Deadline) -> Failure:
        listed = self.brokers.get(broker)
        failure = failure_of(
            error,
            str(listed or f"broker {broker}"),
            self.config.security_protocol,
            (listed.host, listed.port) if listed else None,
        )
        if failure.kind in (FailureKind.TIMED_OUT, FailureKind.UNREACHABLE):
            deadline.silent.setdefault(broker, failure)
        return failure

    def _is_unconnected(self, broker: BrokerId) -> bool:
        connection = self._manager._conns.get(broker)
        return connection is None or not connection.connected

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._net.run(coroutine)

    def _bootstrap(self, deadline: Deadline) -> None:
        """All servers at once: one that hangs hides nobody. What fails is reported only if all fail."""
        servers = {server.node_id: server for server in self._manager.cluster.bootstrap_brokers()}
        under_way = {
            node_id: self._net.call_soon_with_future(self._bootstrap_from, node_id, deadline) for node_id in servers
        }
        try:
            _, answer = self._run(self._manager.wait_for(_first_success(under_way), deadline.remaining_ms))
        except (ClientError, OSError) as error:
            raise ObservationFailed(
                _joined(
                    failure_of(
                        future.exception if future.failed() else error,
                        f"{servers[node_id].host}:{servers[node_id].port}",
                        self.config.security_protocol,
                        (servers[node_id].host, servers[node_id].port),
                    )
                    for node_id, future in under_way.items()
                )
            ) from None
        self._manager.cluster.update_metadata(answer)
        # Each connection now finds out what its own broker speaks: in a rolling upgrade they differ.
        self._manager.broker_version_data = None
        for node_id in servers:
            self._manager.close(node_id)

    async def _bootstrap_from(self, node_id: str, deadline: Deadline) -> Any:
        connection = self._manager.get_connection(
            node_id, timeout_ms=deadline.remaining_ms, pop_on_close=False, refresh_metadata_on_err=False
        )
        await self._manager.wait_for(connection.init_future, deadline.remaining_ms)
        answer = await self._manager.wait_for(
            connection.send_request(MetadataRequest(topics=[])), deadline.remaining_ms
        )
        if not answer.brokers:
            raise KafkaConnectionError("no live broker known")
        return answer


class Reconnecting:
    """Made when it is needed, and anew after a failure: the cluster may not be the one that it was. For one thread."""

    def __init__(self, config: ClientConfig, connect: Callable[[ClientConfig], Connection] = Connection) -> None:
        self.config = config
        self._connect = connect
        self._connection: Connection | None = None

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """``ObservationFailed`` inside of the block ends the connection, too."""
        try:
            if self._connection is None:
                self._connection = self._connect(self.config)
            yield self._connection
        except ObservationFailed:
            self.close()
            raise

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _first_success(futures: Mapping[Key, Future]) -> Future:
    """Succeeds with the first key and value of any; fails only when all have failed."""
    first = Future()
    failed: list[Key] = []

    def succeeded(key: Key, value: object) -> None:
        if not first.is_done:
            first.success((key, value))

    def gave_up(key: Key, error: BaseException) -> None:
        failed.append(key)
        if len(failed) == len(futures) and not first.is_done:
            first.failure(error)

    for key, future in futures.items():
        future.add_callback(partial(succeeded, key))
        future.add_errback(partial(gave_up, key))
    return first


def _decoded(request: object, answer: Any) -> Any:
    return request.decode(answer) if isinstance(request, WireRequest) else answer


def _joined(failures: Iterable[Failure]) -> Failure:
    """All bootstrap servers failed: each with its own reason, in one sentence."""
    distinct = list(dict.fromkeys(failures))
    return Failure(kind=distinct[0].kind, message="; ".join(failure.message for failure in distinct))

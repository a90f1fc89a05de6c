"""One client of one cluster: every question goes through here, and every failure comes back as a value.

kafka-python does the talking (connections, versions, SASL, TLS). This module adds what an operator's tool needs on
top: all brokers are asked at once under one deadline, one dead broker never hides the others, and an error says
what happened, to what, and what to do next.
"""

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from kafka.errors import KafkaError as ClientError
from kafka.errors import KafkaTimeoutError
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from brimline.model import BrimlineError, BrokerId, Failure, FailureKind, ObservationFailed
from brimline.observe.client_config import ClientConfig
from brimline.observe.failures import failure_of

# A broker with a million partitions answers DescribeLogDirs with 22 MB; Java's clients accept any length.
_LARGEST_ANSWER = 1 << 30

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    broker: BrokerId
    host: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"broker {self.broker} at {self.address}"


class Deadline:
    """A moment by which everything must have been answered."""

    __slots__ = ("_at", "timeout")

    def __init__(self, timeout: timedelta) -> None:
        self.timeout = timeout
        self._at = time.monotonic() + timeout.total_seconds()

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
    def brokers(self) -> Mapping[BrokerId, Broker]:
        """The live brokers, as the cluster listed them when asked last."""
        return {
            BrokerId(node.node_id): Broker(broker=BrokerId(node.node_id), host=node.host, port=node.port)
            for node in sorted(self._manager.cluster.brokers(), key=lambda node: node.node_id)
        }

    def ask(self, broker: BrokerId, request: object, deadline: Deadline) -> Any:
        """One broker's answer, or ``ObservationFailed``."""
        answer = self.ask_each({broker: (broker, request)}, deadline)[broker]
        if isinstance(answer, Failure):
            raise ObservationFailed(answer)
        return answer

    def ask_any(self, make_request: Callable[[], object], deadline: Deadline) -> Any:
        """The first answer that any broker gives; the last failure if none does."""
        failure = Failure(kind=FailureKind.UNREACHABLE, message="the cluster lists no live broker")
        for broker in self.brokers:
            answer = self.ask_each({broker: (broker, make_request())}, deadline)[broker]
            if not isinstance(answer, Failure):
                return answer
            failure = answer
        raise ObservationFailed(failure)

    def ask_each(self, questions: Mapping[Key, tuple[BrokerId, object]], deadline: Deadline) -> dict[Key, Any]:
        """Every question at once, each to its broker; an answer or a ``Failure`` for each."""
        answers: dict[Key, Any] = self._run(self._ask_each(questions, deadline))
        return answers

    async def _ask_each(self, questions: Mapping[Key, tuple[BrokerId, object]], deadline: Deadline) -> dict[Key, Any]:
        under_way = {
            key: self._net.call_soon_with_future(self._manager.send, request, broker)
            for key, (broker, request) in questions.items()
        }
        answers: dict[Key, Any] = {}
        for key, future in under_way.items():
            broker = questions[key][0]
            try:
                answers[key] = await self._manager.wait_for(future, deadline.remaining_ms)
            except (ClientError, OSError, BrimlineError) as error:
                who = str(self.brokers.get(broker, f"broker {broker}"))
                answers[key] = failure_of(error, who, self.config.security_protocol)
        return answers

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._net.run(coroutine)

    def _bootstrap(self, deadline: Deadline) -> None:
        failures = []
        for server in self._manager.cluster.bootstrap_brokers():
            try:
                self._run(self._bootstrap_from(server.node_id, deadline))
            except (ClientError, OSError, BrimlineError) as error:
                failures.append(failure_of(error, f"{server.host}:{server.port}", self.config.security_protocol))
                continue
            # Each connection now finds out what its own broker speaks: in a rolling upgrade they differ.
            self._manager.broker_version_data = None
            return
        raise ObservationFailed(_joined(failures))

    async def _bootstrap_from(self, node_id: str, deadline: Deadline) -> None:
        manager = self._manager
        connection = manager.get_connection(
            node_id, timeout_ms=deadline.remaining_ms, pop_on_close=False, refresh_metadata_on_err=False
        )
        await manager.wait_for(connection.init_future, deadline.remaining_ms)
        answer = await manager.wait_for(connection.send_request(MetadataRequest(topics=[])), deadline.remaining_ms)
        manager.cluster.update_metadata(answer)
        if not manager.cluster.brokers():
            raise KafkaTimeoutError("it knows no live broker")
        connection.close()


def _joined(failures: Iterable[Failure]) -> Failure:
    """All bootstrap servers failed: one sentence when they agree, all of them when they differ."""
    distinct = list(dict.fromkeys(failures))
    return Failure(kind=distinct[0].kind, message="; ".join(failure.message for failure in distinct))

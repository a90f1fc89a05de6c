"""DescribeLogDirs for clients: the broker answers what it knows, the describe worker adds what was asked beyond that.

The client's own request goes to the broker over the client's own connection, in the newest version that the broker
speaks, so that the broker decides who may see what. Only its answer is added to. A request that is the broker's own
business, in version and layout, passes as it is; so does one that nobody understands.
"""

import select

from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.describe.job import DescribeJob
from brimline.gateway.net.connection import Connection
from brimline.gateway.net.loop import EventLoop
from brimline.wire.describe_log_dirs_answer import without_additions
from brimline.wire.describe_log_dirs_request import (
    MAX_VERSION,
    MIN_VERSION,
    AskedLogDirs,
    read_request,
    request_for_broker,
)
from brimline.wire.in_flight import Buffer, Expected
from brimline.wire.primitives import WireError
from brimline.wire.request_header import DESCRIBE_LOG_DIRS
from brimline.wire.request_stream import Request

_LOOK_AFTER_DEADLINES = 0.5


class DescribeRule:
    """``broker_version`` is the newest version of the broker, once a connection has learned it."""

    def __init__(self, loop: EventLoop, worker: DescribeWorker) -> None:
        self._worker = worker
        self._loop = loop
        self.broker_version: int | None = None
        loop.watch(worker.fileno(), select.EPOLLIN, worker.on_event)
        self._look_after_deadlines()

    def wants(self, api_key: int, version: int) -> bool:
        return api_key == DESCRIBE_LOG_DIRS and MIN_VERSION <= version <= MAX_VERSION

    def judge(self, connection: Connection, request: Request) -> None:
        try:
            asked = read_request(request.payload)
        except WireError:
            connection.forward([request.frame], request.correlation_id)
            return
        newest = self.broker_version
        if newest is None and asked.layout.has_remote_sizes:
            # No broker has this layout, so it cannot pass. Every broker has this version, whatever it is.
            newest = MIN_VERSION
        is_the_brokers_own = not asked.layout.has_remote_sizes and newest is not None and request.version <= newest
        if newest is None or newest < MIN_VERSION or is_the_brokers_own:
            connection.forward([request.frame], request.correlation_id)
            return
        version = min(request.version, newest)
        question = request_for_broker(request.payload, asked, version)
        expected = Expected(request.correlation_id, self._adding(connection, asked, version))
        connection.forward([framed(question)], expected)

    def close(self) -> None:
        self._loop.unwatch(self._worker.fileno())
        self._worker.close()

    def _adding(self, connection: Connection, asked: AskedLogDirs, version: int) -> "_Adding":
        return _Adding(self._worker, connection, asked, version)

    def _look_after_deadlines(self) -> None:
        self._worker.on_time()
        self._loop.later(_LOOK_AFTER_DEADLINES, self._look_after_deadlines)


class _Adding:
    """From the broker's answer to the client's. The worker's part takes as long as it takes."""

    def __init__(self, worker: DescribeWorker, connection: Connection, asked: AskedLogDirs, version: int) -> None:
        self._worker = worker
        self._connection = connection
        self._asked = asked
        self._version = version

    def __call__(self, expected: Expected, payload: bytearray) -> bytes | None:
        broker_said = bytes(payload)

        def take(answer: bytes | None) -> None:
            expected.frame = framed(self._by_ourselves(broker_said) if answer is None else answer)
            self._connection.resume()

        # Never before this has returned: until then the place is not known to be waited for.
        self._connection.soon(
            lambda: self._worker.submit(
                DescribeJob(payload=broker_said, version=self._version, asked=self._asked), take
            )
        )
        return None

    def _by_ourselves(self, broker_said: bytes) -> bytes:
        """No worker: the right layout, and -1 for what is not known."""
        try:
            return without_additions(broker_said, self._version, self._asked.layout)
        except WireError:
            return broker_said


def framed(payload: Buffer) -> bytes:
    return len(payload).to_bytes(4) + bytes(payload)

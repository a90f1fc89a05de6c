"""The least that Brimline's own client takes for a gateway: a proxy of one request after the other.

It marks ApiVersions answers, and a real describe worker answers KIP-1187's DescribeLogDirs. Without a worker it only
passes everything on, as a load balancer does.
"""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from socket import create_connection

from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.describe.job import DescribeJob
from brimline.sandbox import Broker
from brimline.wire.api_versions import GATEWAY_API_KEY, GATEWAY_API_VERSIONS, patched_response
from brimline.wire.describe_log_dirs_answer import without_additions
from brimline.wire.describe_log_dirs_request import AskedLogDirs, read_request, request_for_broker
from brimline.wire.request_header import API_VERSIONS, DESCRIBE_LOG_DIRS, request_head
from tests.gateway.describe.describing import drive

BROKER_VERSION = 5
"""Of DescribeLogDirs, in the Kafka that the tests put behind it."""


class MarkedProxy(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, broker: Broker, worker: DescribeWorker | None) -> None:
        super().__init__(_address(broker.address), _Client)
        self.broker = broker
        self.worker = worker
        self.turn = threading.Lock()
        self.answered: list[AskedLogDirs] = []
        """The questions in KIP-1187's layout."""


class _Client(socketserver.StreamRequestHandler):
    server: MarkedProxy

    def handle(self) -> None:
        with create_connection(_address(self.server.broker.direct_address)) as connection:
            broker = connection.makefile("rwb")
            while request := read_frame(self.rfile):
                answer = self._answer(request, broker)
                if not answer:
                    return
                write_frame(self.wfile, answer)

    def _answer(self, request: bytes, broker: BufferedIOBase) -> bytes:
        """Empty when the broker has hung up."""
        worker, head = self.server.worker, request_head(memoryview(request))
        if worker is not None and head.api_key == DESCRIBE_LOG_DIRS:
            asked = read_request(request)
            if asked.layout.has_remote_sizes:
                told = _ask(broker, request_for_broker(request, asked, BROKER_VERSION))
                self.server.answered.append(asked)
                return self._added(worker, DescribeJob(payload=told, version=BROKER_VERSION, asked=asked))
        answer = _ask(broker, request)
        if worker is not None and head.api_key == API_VERSIONS:
            return patched_response(memoryview(answer), head.version, {}, {GATEWAY_API_KEY: GATEWAY_API_VERSIONS})
        return answer

    def _added(self, worker: DescribeWorker, job: DescribeJob) -> bytes:
        answers: list[bytes | None] = []
        with self.server.turn:
            worker.submit(job, answers.append)
            drive(worker, lambda: bool(answers))
        return answers[0] or without_additions(job.payload, job.version, job.asked.layout)


@contextmanager
def in_front_of(broker: Broker, worker: DescribeWorker | None = None) -> Iterator[MarkedProxy]:
    with MarkedProxy(broker, worker) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


def read_frame(stream: BufferedIOBase) -> bytes:
    """Without its length; empty at the end."""
    length = stream.read(4)
    return stream.read(int.from_bytes(length)) if len(length) == 4 else b""


def write_frame(stream: BufferedIOBase, payload: bytes) -> None:
    stream.write(len(payload).to_bytes(4) + payload)
    stream.flush()


def _ask(broker: BufferedIOBase, request: bytes) -> bytes:
    write_frame(broker, request)
    return read_frame(broker)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)

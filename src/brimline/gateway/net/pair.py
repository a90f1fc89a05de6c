"""The two sockets of a connection and the ways between them: passes bytes on, and judges nothing.

Large frames that pass as they are go through a kernel pipe (``splice``), so that their bytes never come in here.
"""

import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from brimline.gateway.net.endpoint import Endpoint, Pipe
from brimline.gateway.net.lifetime import Lifetime
from brimline.wire.in_flight import Buffer, InFlight
from brimline.wire.request_header import PRODUCE
from brimline.wire.request_stream import RequestStream
from brimline.wire.response_stream import ResponseStream

if TYPE_CHECKING:
    from brimline.gateway.net.forwarder import Forwarder

SPLICE_FROM = 1 << 16
"""Frames with at least this much left go through the pipe; for smaller ones copying is cheaper."""
UNWATCHED = -1


class Pair:
    """What a ``Connection`` is made of. It is its base and not a part: a call more for every frame would be felt."""

    __slots__ = (
        "_account",
        "_forwarder",
        "_has_tls",
        "_life",
        "_request_pipe",
        "_response_pipe",
        "broker",
        "client",
        "in_flight",
        "requests",
        "responses",
    )

    def __init__(
        self,
        forwarder: "Forwarder",
        client: Endpoint,
        broker: Endpoint,
        wants: Callable[[int, int], bool],
        *,
        needs_login: bool,
    ) -> None:
        settings = forwarder.settings
        self._forwarder = forwarder
        self._account = forwarder.account
        self.client = client
        self.broker = broker
        self._life = Lifetime(
            client,
            broker,
            login_timeout=settings.login_timeout,
            header_timeout=settings.header_timeout,
            needs_login=needs_login,
        )
        self.in_flight = InFlight()
        self.requests = RequestStream(
            self.in_flight,
            settings.largest_request,
            wants,
            largest_login=settings.largest_login if needs_login else None,
        )
        self.responses = ResponseStream(self.in_flight)
        self._request_pipe: Pipe | None = None
        self._response_pipe: Pipe | None = None
        self._has_tls = not (client.can_splice and broker.can_splice)

    @property
    def announced_bytes(self) -> int:
        """Of the request that is coming in, if it is kept whole."""
        return self.requests.announced_bytes

    def _waits_for(self) -> tuple[int, int]:
        """What client and broker wait for until they are connected and, with TLS, have shaken hands; 0: nothing."""
        failure = self.broker.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, "the broker does not answer")
        try:
            self.broker.sock.getpeername()
        except OSError:
            broker_waits_for = int(select.EPOLLOUT)  # the connection to the broker is still being made
        else:
            broker_waits_for = 0 if self.broker.is_ready else self.broker.get_ready()
        return 0 if self.client.is_ready else self.client.get_ready(), broker_waits_for

    def _pass_request(self, data: memoryview) -> None:
        counters = self._forwarder.counters
        counters.requests += 1
        counters.produce_requests += int.from_bytes(data[4:6]) == PRODUCE
        try:
            self.broker.send((data,), self._account.reused)
        except ConnectionError:
            self._lose_broker()

    def _read_responses(self) -> None:
        buffer = self._account.buffer
        try:
            count = self.broker.read(buffer)
        except ConnectionError:
            self._lose_broker()
            count = 0
        if count == 0:
            self.broker.at_end = True
            return
        data = buffer[:count]
        self._send_to_client([data] if self.responses.pass_whole(data) else list(self.responses.receive(data)))
        self._forwarder.sent_to_client(count)

    def _splice_request(self) -> bool:
        """False: nothing went this way, and the bytes must be read."""
        pipe = self._request_pipe = self._request_pipe or self._take_pipe()
        moved = _taken_in(pipe, self.client.fd, self.requests.passing)
        if pipe is None or not moved:
            return False
        self.requests.went_past(moved)
        self._flush_to_broker()
        self._forwarder.sent_to_broker(moved)
        return True

    def _splice_response(self) -> bool:
        """False: nothing went this way, and the bytes must be read."""
        pipe = self._response_pipe = self._response_pipe or self._take_pipe()
        moved = _taken_in(pipe, self.broker.fd, self.responses.passing)
        if pipe is None or not moved:
            return False
        pipe.let_out(self.client.fd)
        self._send_to_client(self.responses.went_past(moved))
        self._forwarder.sent_to_client(moved)
        return True

    def _take_pipe(self) -> Pipe | None:
        return None if self._has_tls or self._account.is_tight else self._forwarder.pipes.take()

    def _send_to_client(self, buffers: list[Buffer]) -> None:
        if not buffers:
            return
        if holds_bytes(self._response_pipe):
            self.client.keep(buffers)
        else:
            self.client.send(buffers, self._account.reused)

    def _flush(self, side: Endpoint, pipe: Pipe | None) -> None:
        if pipe is not None and pipe.filled:
            pipe.let_out(side.fd)
        if pipe is None or not pipe.filled:
            side.flush()

    def _flush_to_broker(self) -> None:
        try:
            self._flush(self.broker, self._request_pipe)
        except ConnectionError:
            self._lose_broker()

    def _lose_broker(self) -> None:
        """Nothing more can be sent to it. What it has said before is still there to be read."""
        self._life.broker_is_lost()
        self.broker.forget_unsent()
        if self._request_pipe is not None:
            self._forwarder.pipes.give_back(self._request_pipe)
            self._request_pipe = None

    def _give_back_pipes(self) -> None:
        pipe = self._request_pipe
        if pipe is not None and not pipe.filled and self.requests.passing < SPLICE_FROM:
            self._forwarder.pipes.give_back(pipe)
            self._request_pipe = None
        pipe = self._response_pipe
        if pipe is not None and not pipe.filled and self.responses.passing < SPLICE_FROM:
            self._forwarder.pipes.give_back(pipe)
            self._response_pipe = None

    def _kept_bytes(self) -> int:
        """Everything that waits on its way."""
        kept = (
            self.requests.kept_bytes
            + self.responses.kept_bytes
            + self.in_flight.kept_bytes
            + self.broker.kept_bytes
            + self.client.kept_bytes
        )
        for pipe in (self._request_pipe, self._response_pipe):
            if pipe is not None:
                kept += pipe.filled
        return kept

    def _drop_pipes(self) -> None:
        for pipe in (self._request_pipe, self._response_pipe):
            if pipe is not None:
                self._forwarder.pipes.give_back(pipe)
        self._request_pipe = self._response_pipe = None


def _taken_in(pipe: Pipe | None, fd: int, most: int) -> int:
    """0 if a read must find out why nothing comes: an end, a reset, or a byte of urgent data, which stops a pipe."""
    if pipe is None:
        return 0
    try:
        return pipe.take_in(fd, most)
    except (BlockingIOError, ConnectionError):
        return 0


def holds_bytes(pipe: Pipe | None) -> bool:
    return pipe is not None and pipe.filled > 0

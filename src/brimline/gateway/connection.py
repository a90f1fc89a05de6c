"""A client's connection and the broker's connection that belongs to it: bytes in, bytes out, and nothing decided here.

**Invariant.** Every byte of the client reaches the broker once and in order, and the other way round, except where the
rules say otherwise: a request may be rewritten or answered by ourselves, an answer may be rewritten. Memory is bounded:
a side is read only as long as the other side takes what came before.

Large frames that pass as they are go through a kernel pipe (``splice``), so that their bytes never come in here.
"""

import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from brimline.gateway.endpoint import Endpoint
from brimline.gateway.pipe import Pipe
from brimline.wire.errors import WireError
from brimline.wire.in_flight import Buffer, Expected, InFlight, OwnAnswer
from brimline.wire.request_stream import Request, RequestStream
from brimline.wire.response_stream import ResponseStream

if TYPE_CHECKING:
    from brimline.gateway.forwarder import Forwarder

_SPLICE_FROM = 1 << 16
"""Frames with at least this much left go through the pipe; for smaller ones copying is cheaper."""
_MOST_IN_FLIGHT = 4096
_KEPT_BYTES_PER_SECOND = 1 << 16
"""How slowly a request that is kept whole may arrive before its connection is given up."""
_LAST_WORDS_SECONDS = 10.0
"""How long a connection that is about to end may still take to deliver what it has."""

_READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
_WRITABLE = select.EPOLLOUT | select.EPOLLHUP | select.EPOLLERR


class Judge(Protocol):
    """The rules: what becomes of the requests that they want to see."""

    def wants(self, api_key: int, version: int) -> bool: ...

    def judge(self, connection: "Connection", request: Request) -> None:
        """Calls ``forward``, ``answer`` or both of the connection, once."""


class Connection:
    __slots__ = (
        "_began_keeping",
        "_broker_told",
        "_client_told",
        "_forwarder",
        "_is_closed",
        "_is_ending",
        "_is_open",
        "_request_pipe",
        "_response_pipe",
        "_to_broker",
        "broker",
        "client",
        "client_software",
        "deadline",
        "in_flight",
        "listener",
        "refused_at",
        "requests",
        "responses",
    )

    def __init__(self, forwarder: "Forwarder", listener: str, client: Endpoint, broker: Endpoint) -> None:
        self._forwarder = forwarder
        self.listener = listener
        self.client = client
        self.broker = broker
        self.in_flight = InFlight()
        self.requests = RequestStream(self.in_flight, forwarder.settings.largest_request, forwarder.judge.wants)
        self.responses = ResponseStream(self.in_flight)
        self.client_software = "unknown"
        self.refused_at = 0.0
        """Up to when this connection's wholly refused requests have used up their rate."""
        self._request_pipe: Pipe | None = None
        self._response_pipe: Pipe | None = None
        self._to_broker: list[Buffer] = []
        self._is_open = False
        self._is_closed = False
        self._is_ending = False
        self._client_told = False
        self._broker_told = False
        self._began_keeping: float | None = None
        self.deadline: float | None = time.monotonic() + forwarder.settings.header_timeout
        """When this connection is given up unless it gets on; ``None``: it is not waited for."""

    def start(self) -> None:
        """Both sockets are watched until they are connected and, with TLS, have shaken hands."""
        watch = self._forwarder.loop.watch
        self.client.mask = select.EPOLLIN if not self.client.is_ready else 0
        self.broker.mask = select.EPOLLOUT
        watch(self.client.fd, self.client.mask, self.on_client)
        watch(self.broker.fd, self.broker.mask, self.on_broker)

    # What the rules may do with a request ------------------------------------------------------------------------

    def forward(self, buffers: Sequence[Buffer], place: int | Expected | None) -> None:
        """Send these to the broker; ``place`` is for its answer, ``None`` if it gives none."""
        if place is not None:
            self.in_flight.add(place)
        self._to_broker += buffers

    def answer(self, frame: bytes, *, after_seconds: float = 0.0) -> None:
        """Answer in the broker's stead, in the request's place in the order."""
        if after_seconds <= 0.0:
            self.in_flight.add(OwnAnswer(frame))
            return
        own = OwnAnswer(None)
        self.in_flight.add(own)

        def release() -> None:
            own.frame = frame
            self.resume()

        self._forwarder.loop.later(after_seconds, release)

    def end_after_this(self) -> None:
        """Read no more requests; close when everything before has been answered (what a broker does after an error
        that it cannot tell, with acks=0)."""
        self._is_ending = True
        self.deadline = time.monotonic() + _LAST_WORDS_SECONDS

    def soon(self, callback: Callable[[], None]) -> None:
        """After the present event."""
        self._forwarder.loop.later(0.0, callback)

    def resume(self) -> None:
        """An answer that was held back is there now."""
        if not self._is_closed:
            self._guarded(self._resume)

    # What the loop calls -----------------------------------------------------------------------------------------

    def on_client(self, mask: int) -> None:
        if self._is_open:
            self._guarded(self._client_event, mask)
        else:
            self._guarded(self._get_ready)

    def on_broker(self, mask: int) -> None:
        if self._is_open:
            self._guarded(self._broker_event, mask)
        else:
            self._guarded(self._get_ready)

    def look_again(self) -> None:
        """Something outside changed: draining began, or memory is free again."""
        if self._is_open and not self._is_closed:
            self._guarded(self._settle)

    def close(self, reason: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for pipe in (self._request_pipe, self._response_pipe):
            if pipe is not None:
                self._forwarder.pipes.give_back(pipe)
        self._request_pipe = self._response_pipe = None
        for side in (self.client, self.broker):
            self._forwarder.loop.unwatch(side.fd)
            side.close()
        self._forwarder.ended(self, reason)

    # Inside ------------------------------------------------------------------------------------------------------

    def _guarded(self, step: Callable[..., None], *arguments: int) -> None:
        if self._is_closed:
            return
        try:
            step(*arguments)
        except WireError:
            self.close("malformed")
        except OSError as error:
            self.close("broker-unreachable" if not self._is_open and self.client.is_ready else _reason(error))
        except BaseException:
            self.close("bug")
            raise

    def _get_ready(self) -> None:
        failure = self.broker.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, "the broker does not answer")
        try:
            self.broker.sock.getpeername()
        except OSError:
            is_connected = False  # the connection to the broker is still being made
        else:
            is_connected = True
        if is_connected and not self.broker.is_ready:
            self.broker.get_ready()
        if not self.client.is_ready:
            self.client.get_ready()
        if is_connected and self.broker.is_ready and self.client.is_ready:
            self._is_open = True
            self.deadline = None
            self._from_client()
            return
        self._watch(self.client, 0 if self.client.is_ready else select.EPOLLIN)
        wanted = 0 if self.broker.is_ready else select.EPOLLIN
        self._watch(self.broker, wanted if is_connected else select.EPOLLOUT)

    def _client_event(self, mask: int) -> None:
        if mask & _WRITABLE:
            self._flush(self.client, self._response_pipe)
        if mask & _READABLE:
            self._from_client()
        else:
            self._settle()

    def _broker_event(self, mask: int) -> None:
        if mask & _WRITABLE:
            self._flush(self.broker, self._request_pipe)
        if mask & _READABLE:
            self._from_broker()
        else:
            self._settle()

    def _from_client(self) -> None:
        while self._may_read_client():
            try:
                if self.requests.passing >= _SPLICE_FROM and self.client.can_splice and self.broker.can_splice:
                    self._splice_request()
                else:
                    self._read_requests()
            except BlockingIOError:
                break
            if not self.client.has_unread:
                break
        self._settle()

    def _from_broker(self) -> None:
        while self._may_read_broker():
            try:
                if self.responses.passing >= _SPLICE_FROM and self.client.can_splice and self.broker.can_splice:
                    self._splice_response()
                else:
                    self._read_responses()
            except BlockingIOError:
                break
            if not self.broker.has_unread:
                break
        self._settle()

    def _read_requests(self) -> None:
        forwarder = self._forwarder
        buffer = forwarder.buffer
        count = self.client.read(buffer)
        if count == 0:
            self.client.at_end = True
            return
        requests, produce_requests = self.requests.requests, self.requests.produce_requests
        for item in self.requests.receive(buffer[:count]):
            if isinstance(item, Request):
                forwarder.judge.judge(self, item)
                if self._is_ending:
                    break
            else:
                self._to_broker.append(item)
        buffers, self._to_broker = self._to_broker, []
        if buffers:
            self.broker.send(buffers, buffer.obj)
        own = self.in_flight.due()
        if own:
            self._send_to_client(own)
        counters = forwarder.counters
        counters.requests += self.requests.requests - requests
        counters.produce_requests += self.requests.produce_requests - produce_requests
        forwarder.sent_to_broker(count)
        self._note_keeping()

    def _read_responses(self) -> None:
        buffer = self._forwarder.buffer
        count = self.broker.read(buffer)
        if count == 0:
            self.broker.at_end = True
            return
        self._send_to_client(list(self.responses.receive(buffer[:count])))
        self._forwarder.sent_to_client(count)

    def _splice_request(self) -> None:
        if self._request_pipe is None:
            self._request_pipe = self._forwarder.pipes.take()
        pipe = self._request_pipe
        moved = pipe.take_in(self.client.fd, self.requests.passing)
        if moved == 0:
            self.client.at_end = True
            return
        pipe.let_out(self.broker.fd)
        self.requests.went_past(moved)
        self._forwarder.sent_to_broker(moved)

    def _splice_response(self) -> None:
        if self._response_pipe is None:
            self._response_pipe = self._forwarder.pipes.take()
        pipe = self._response_pipe
        moved = pipe.take_in(self.broker.fd, self.responses.passing)
        if moved == 0:
            self.broker.at_end = True
            return
        pipe.let_out(self.client.fd)
        self._send_to_client(self.responses.went_past(moved))
        self._forwarder.sent_to_client(moved)

    def _resume(self) -> None:
        self._send_to_client(list(self.responses.resume()))
        self._settle()

    def _send_to_client(self, buffers: list[Buffer]) -> None:
        if not buffers:
            return
        if _holds_bytes(self._response_pipe):
            self.client.keep(buffers)
        else:
            self.client.send(buffers, self._forwarder.buffer.obj)

    def _flush(self, side: Endpoint, pipe: Pipe | None) -> None:
        if pipe is not None and pipe.filled:
            pipe.let_out(side.fd)
        if pipe is None or not pipe.filled:
            side.flush()

    def _may_read_client(self) -> bool:
        return not (
            self.client.at_end
            or self._is_ending
            or self.broker.has_unsent
            or self.client.has_unsent
            or _holds_bytes(self._request_pipe)
            or self.in_flight.is_held_back
            or len(self.in_flight) >= _MOST_IN_FLIGHT
            or (self._forwarder.is_draining and self.requests.is_between_frames)
            or self._forwarder.must_wait(self)
        )

    def _may_read_broker(self) -> bool:
        return not (
            self.broker.at_end
            or self.client.has_unsent
            or _holds_bytes(self._response_pipe)
            or self.in_flight.is_held_back
        )

    def _settle(self) -> None:
        """After every event: give back what is not needed, pass on an end, tell epoll what is waited for."""
        self._give_back_pipes()
        to_broker_done = not (self.broker.has_unsent or _holds_bytes(self._request_pipe))
        to_client_done = not (self.client.has_unsent or _holds_bytes(self._response_pipe))
        if self._is_over(to_broker_done=to_broker_done, to_client_done=to_client_done):
            self.close("closed" if not self._is_ending else "refused-without-acks")
            return
        if self.client.at_end and to_broker_done and not self._broker_told:
            self._broker_told = True
            self.broker.no_more()
            self._expect_the_end()
        if self.broker.at_end and to_client_done and not self._client_told:
            self._client_told = True
            self.client.no_more()
            self._expect_the_end()
        may_read_client, may_read_broker = self._may_read_client(), self._may_read_broker()
        self._watch(
            self.client, (select.EPOLLIN if may_read_client else 0) | (0 if to_client_done else select.EPOLLOUT)
        )
        self._watch(
            self.broker, (select.EPOLLIN if may_read_broker else 0) | (0 if to_broker_done else select.EPOLLOUT)
        )
        if may_read_client and self.client.has_unread:
            self._forwarder.loop.later(0.0, lambda: self._guarded(self._from_client))
        if may_read_broker and self.broker.has_unread:
            self._forwarder.loop.later(0.0, lambda: self._guarded(self._from_broker))

    def _is_over(self, *, to_broker_done: bool, to_client_done: bool) -> bool:
        if not to_client_done:
            return False
        all_answered = not self.in_flight and self.responses.is_between_frames
        if self._is_ending:
            return to_broker_done and all_answered
        if self._forwarder.is_draining and self.requests.is_between_frames and to_broker_done and all_answered:
            return True
        if self.broker.at_end:
            # Of TLS there is no half: the client learns that the broker has gone by our closing.
            return self.client.at_end or not self.client.can_splice
        return self.client.at_end and to_broker_done and not self.broker.can_splice and all_answered

    def _expect_the_end(self) -> None:
        if self.client.at_end and self.in_flight:
            return  # the client waits for its last answers, and the broker takes the time that it takes
        self.deadline = time.monotonic() + _LAST_WORDS_SECONDS

    def _give_back_pipes(self) -> None:
        pipe = self._request_pipe
        if pipe is not None and not pipe.filled and self.requests.passing < _SPLICE_FROM:
            self._forwarder.pipes.give_back(pipe)
            self._request_pipe = None
        pipe = self._response_pipe
        if pipe is not None and not pipe.filled and self.responses.passing < _SPLICE_FROM:
            self._forwarder.pipes.give_back(pipe)
            self._response_pipe = None

    def _note_keeping(self) -> None:
        """A request that is kept costs memory, and has until its deadline to be complete."""
        kept = self.requests.kept_bytes
        self._forwarder.keeps(self, kept)
        if not kept:
            if self._began_keeping is not None and not self._is_ending:
                self._began_keeping = self.deadline = None
            return
        if self._began_keeping is None:
            self._began_keeping = time.monotonic()
        allowed = self._forwarder.settings.header_timeout + kept / _KEPT_BYTES_PER_SECOND
        self.deadline = self._began_keeping + allowed

    def _watch(self, side: Endpoint, mask: int) -> None:
        if side.mask != mask:
            side.mask = mask
            self._forwarder.loop.change(side.fd, mask)


def _holds_bytes(pipe: Pipe | None) -> bool:
    return pipe is not None and pipe.filled > 0


def _reason(error: OSError) -> str:
    return "reset" if isinstance(error, (ConnectionError, TimeoutError)) else "error"

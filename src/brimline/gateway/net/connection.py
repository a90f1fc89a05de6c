"""A client's connection and the broker's connection that belongs to it: bytes in, bytes out, and nothing decided here.

**Invariant.** Every byte of the client reaches the broker once and in order, and the other way round, except where the
rules say otherwise: a request may be rewritten or answered by ourselves, an answer may be rewritten. Memory is bounded:
a side is read only as long as the other side takes what came before, and while the account allows it (``account``).
So is time: a request whose turn it is not (``turns``) is held, and what came behind it with it.

How the bytes go is in ``pair``, how long the connection lasts in ``lifetime``; here is whose turn it is.

A side that is not read is not asked how it is, but epoll says unasked that a peer has gone, again and again. A client
that has gone ends the connection. Of a broker that has gone, the last answers are still delivered.
"""

import select
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from brimline.gateway.net.account import SMALL
from brimline.gateway.net.endpoint import Endpoint
from brimline.gateway.net.held import DelayedAnswers, HeldRequest
from brimline.gateway.net.pair import SPLICE_FROM, UNWATCHED, Pair, holds_bytes
from brimline.wire.in_flight import Buffer, Expected, OwnAnswer
from brimline.wire.primitives import WireError
from brimline.wire.request_stream import Request

if TYPE_CHECKING:
    from brimline.gateway.net.forwarder import Forwarder
    from brimline.gateway.rules.seen_client import SeenClient

_GONE = select.EPOLLHUP | select.EPOLLERR
_READABLE = select.EPOLLIN | _GONE
_READABLE_ALONE = int(select.EPOLLIN)
"""Nearly every event: neither a way out nor an end has to be looked after."""


OWN_FETCHES = "own fetches"
"""The listener at which the broker's own fetches come in, on their way to leaders."""


class Judge(Protocol):
    """The rules: what becomes of the requests that they want to see."""

    def wants(self, api_key: int, version: int) -> bool: ...

    def judge(self, connection: "Connection", request: Request) -> None:
        """Calls ``forward``, ``answer`` or both of the connection, once."""


class Connection(Pair):
    __slots__ = (
        "_delayed",
        "_held",
        "_held_bytes",
        "_is_closed",
        "_is_open",
        "_judge",
        "_to_broker",
        "_turns",
        "address",
        "is_draining",
        "judged_until",
        "listener",
        "seen",
    )

    def __init__(
        self,
        forwarder: "Forwarder",
        listener: str,
        client: Endpoint,
        broker: Endpoint,
        judge: Judge,
        *,
        needs_login: bool = False,
        address: str = "",
    ) -> None:
        super().__init__(forwarder, client, broker, judge.wants, needs_login=needs_login)
        self._turns = forwarder.turns
        self._judge = judge
        self.listener = listener
        self.address = address
        self.seen: SeenClient | None = None  # for the rules
        self.is_draining = False
        self.judged_until = 0  # for ``turns``
        self._to_broker: list[Buffer] = []
        self._delayed: DelayedAnswers | None = None
        self._is_open = False
        self._is_closed = False
        self._held_bytes = 0
        self._held: HeldRequest | None = None

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
        own = OwnAnswer(None, kept=len(frame))
        self.in_flight.add(own)
        if self._delayed is None:
            self._delayed = DelayedAnswers(self._forwarder.loop, self.resume)
        self._delayed.add(own, frame, after_seconds)

    def hold(self, then: Callable[[], None], size: int) -> None:
        """``let_go`` will judge the present request of so many bytes, by calling this; nothing more is read so long."""
        self._held = HeldRequest(then, size)

    def let_go(self, more: int = 0) -> None:
        """The request that was held is judged when it is its turn, and when there is memory for what becomes of it.

        It has become ``more`` bytes larger meanwhile.
        """
        if self._held is not None:
            self._held.size += more
            self._held.is_due = True
            self._turns.ask(self)

    def end_after_this(self, reason: str = "refused-without-acks") -> None:
        """Read no more requests; close when everything before has been answered (what a broker does after an error
        that it cannot tell, with acks=0)."""
        self._life.read_no_more(reason)

    @property
    def must_log_in(self) -> bool:
        """Whether the broker has not heard yet who its client is."""
        return self._life.needs_login and not self.in_flight.has_passed_token

    def soon(self, callback: Callable[[], None]) -> None:
        """After the present event, if the connection is still there."""
        self._forwarder.loop.later(0.0, lambda: self._guarded(callback))

    def resume(self) -> None:
        """An answer that was held back is there now."""
        self._guarded(self._resume)

    # What the loop calls -----------------------------------------------------------------------------------------

    def take_turn(self) -> None:
        if not self._account.must_wait(self):
            self._guarded(self._let_go)

    def late_for(self, now: float) -> str | None:
        """Why this connection is given up now; ``None``: it is not."""
        return self._life.late_for(
            now, has_passed_token=self.in_flight.has_passed_token, has_asked=self.requests.requests > 0
        )

    def on_client(self, mask: int) -> None:
        if self._is_open:
            if mask == _READABLE_ALONE:
                self._guarded(self._from_client)
            else:
                self._guarded(self._client_event, mask)
        elif mask & _GONE:
            self.close("reset")
        else:
            self._guarded(self._get_ready)

    def on_broker(self, mask: int) -> None:
        if self._is_open:
            if mask == _READABLE_ALONE:
                self._guarded(self._from_broker)
            else:
                self._guarded(self._broker_event, mask)
        else:
            self._guarded(self._get_ready)

    def look_again(self) -> None:
        """Something outside changed: draining began, or memory is free again."""
        if self._held is not None and self._held.is_due:
            self._turns.ask(self)
        if self._is_open:
            self._guarded(self._settle)

    def close(self, reason: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._held = None
        if self._delayed is not None:
            self._delayed.cancel()
        self._drop_pipes()
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
            is_unreachable = not self._is_open and self.client.is_ready
            who = "leader" if self.listener == OWN_FETCHES else "broker"
            self.close(f"{who}-unreachable" if is_unreachable else _reason(error))
        except BaseException:
            self.close("bug")
            raise

    def _get_ready(self) -> None:
        client_waits_for, broker_waits_for = self._waits_for()
        if not (broker_waits_for or client_waits_for):
            self._is_open = True
            self._life.opened()
            self._from_client()
            return
        self._watch(self.client, client_waits_for)
        self._watch(self.broker, broker_waits_for)

    def _client_event(self, mask: int) -> None:
        if mask & select.EPOLLOUT:
            self._flush(self.client, self._response_pipe)
        if mask & _READABLE:
            self._from_client()
        else:
            self._settle()
        if mask & _GONE and not self.client.mask & select.EPOLLIN:
            self.close("closed" if self.client.at_end else "reset")

    def _broker_event(self, mask: int) -> None:
        if mask & (_GONE | select.EPOLLRDHUP):
            self._life.broker_begins_to_leave()
        if mask & _GONE:
            self._lose_broker()
        elif mask & select.EPOLLOUT:
            self._flush_to_broker()
        if mask & _READABLE:
            self._from_broker()
        else:
            self._settle()
        if mask & _GONE and not self._is_closed and not self.broker.mask & select.EPOLLIN:
            self._forwarder.loop.unwatch(self.broker.fd)
            self.broker.mask = UNWATCHED

    def _from_client(self) -> None:
        may_read = (self.client.mask & select.EPOLLIN and not self._account.is_tight) or self._may_read_client()
        while may_read:
            try:
                if self.requests.passing < SPLICE_FROM or not self._splice_request():
                    self._read_requests()
            except BlockingIOError:
                break
            may_read = self.client.has_unread and self._may_read_client()
        self._settle()

    def _from_broker(self) -> None:
        may_read = (self.broker.mask & select.EPOLLIN and not self._account.is_tight) or self._may_read_broker()
        while may_read:
            try:
                if self.responses.passing < SPLICE_FROM or not self._splice_response():
                    self._read_responses()
            except BlockingIOError:
                break
            may_read = self.broker.has_unread and self._may_read_broker()
        self._settle()

    def _read_requests(self) -> None:
        buffer = self._account.buffer
        count = self.client.read(buffer)
        if count == 0:
            self.client.at_end = True
            return
        data = buffer[:count]
        if self.in_flight.is_plain and self.requests.pass_whole(data):
            self._pass_request(data)
        else:
            self._take_in(data)
        self._forwarder.sent_to_broker(count)

    def _take_in(self, data: memoryview, held: HeldRequest | None = None) -> None:
        requests, produce_requests = self.requests.requests, self.requests.produce_requests
        try:
            if held is None or self._is_done_with(held):
                self._judge_requests(data)
        except WireError:
            self.end_after_this("malformed")  # what came before is answered, as a broker does
        buffers, self._to_broker = self._to_broker, []
        if buffers:
            try:
                self.broker.send(buffers, self._account.reused)
            except ConnectionError:
                self._lose_broker()
        own = self.in_flight.due()
        if own:
            self._send_to_client(own)
        counters = self._forwarder.counters
        counters.requests += self.requests.requests - requests
        counters.produce_requests += self.requests.produce_requests - produce_requests
        self._life.keeps(self.requests.kept_bytes, self.requests.requests, self._forwarder.settings.header_timeout)

    def _let_go(self) -> None:
        held = self._held
        if held is not None and held.is_due:
            self._held = None
            self._take_in(memoryview(held.behind), held)
            self._from_client()

    def _is_done_with(self, held: HeldRequest) -> bool:
        """Judges it. False: what came behind it must wait, or is not wanted any more."""
        began = time.monotonic_ns()
        held.judge()
        self._turns.took(self, began)
        if self._held is not None:  # once more
            self._held.behind = held.behind
        return not (self._held or self._life.ending)

    def _judge_requests(self, data: memoryview) -> None:
        for item in self.requests.receive(data):
            if not isinstance(item, Request):
                self._to_broker.append(item)
                continue
            if self._turns.may_judge(self):
                began = time.monotonic_ns()
                self._judge.judge(self, item)
                self._turns.took(self, began)
            else:
                self.hold(partial(self._judge.judge, self, item), len(item.frame))
                self.let_go()
            if self._held is not None:
                self._held.behind = bytes(data[self.requests.read_to :])
                break
            if self._life.ending:
                break

    def _resume(self) -> None:
        self._send_to_client(list(self.responses.resume()))
        self._settle()

    def _may_read_client(self) -> bool:
        return not (
            self.client.at_end
            or self._life.ending
            or self._held
            or self._life.has_lost_broker
            or self.broker.unsent_bytes
            or self.client.unsent_bytes
            or holds_bytes(self._request_pipe)
            or self.in_flight.is_held_back
            or self.in_flight.is_full
            or (self.is_draining and self.requests.is_between_frames)
            or self._account.must_wait(self)
        )

    def _may_read_broker(self) -> bool:
        return not (
            self.broker.at_end
            or self.client.unsent_bytes
            or holds_bytes(self._response_pipe)
            or self.in_flight.is_held_back
            or (self.responses.kept_bytes and self._account.must_wait(self))
        )

    def _settle(self) -> None:
        """After every event: give back what is not needed, pass on an end, tell epoll what is waited for."""
        if self._is_calm():
            if self.client.mask != _READABLE_ALONE:
                self._watch(self.client, _READABLE_ALONE)
            if self.broker.mask != _READABLE_ALONE:
                self._watch(self.broker, _READABLE_ALONE)
            return
        self._give_back_pipes()
        to_broker_done = not (self.broker.unsent_bytes or holds_bytes(self._request_pipe))
        to_client_done = not (self.client.unsent_bytes or holds_bytes(self._response_pipe))
        life, is_waiting = self._life, bool(self.in_flight)
        if to_client_done and life.is_over(
            is_held=self._held is not None,
            is_draining=self.is_draining,
            is_between_frames=self.requests.is_between_frames,
            to_broker_done=to_broker_done,
            all_answered=not is_waiting and self.responses.is_between_frames,
        ):
            if not self.client.at_end:
                self.client.discard_unread(self._account.buffer)
            self.close(life.ending or "closed")
            return
        self._note_held_bytes()
        life.pass_on_ends(
            is_held=self._held is not None,
            is_waiting=is_waiting,
            to_broker_done=to_broker_done,
            to_client_done=to_client_done,
        )
        self._go_on(
            to_client=0 if to_client_done else select.EPOLLOUT, to_broker=0 if to_broker_done else select.EPOLLOUT
        )

    def _go_on(self, *, to_client: int, to_broker: int) -> None:
        """Wait for whoever may be read, and for these."""
        may_read_client, may_read_broker = self._may_read_client(), self._may_read_broker()
        self._watch(self.client, (select.EPOLLIN if may_read_client else 0) | to_client)
        # A broker that leaves must be noticed although it is not read, once.
        if_not_read = 0 if self._life.broker_leaves else select.EPOLLRDHUP
        self._watch(self.broker, (select.EPOLLIN if may_read_broker else if_not_read) | to_broker)
        if not may_read_client:
            self._life.is_not_read()
        if may_read_client and self.client.has_unread:
            self.soon(self._from_client)
        if may_read_broker and self.broker.has_unread:
            self.soon(self._from_broker)

    def _is_calm(self) -> bool:
        """Everything that came has gone on, and nobody leaves. Nearly every event ends so: this is for speed alone."""
        return not (
            self.client.unsent_bytes
            or self.broker.unsent_bytes
            or self._request_pipe
            or self._response_pipe
            or self.client.at_end
            or self.broker.at_end
            or self._life.is_leaving
            or self._held
            or self._has_tls
            or self._held_bytes
            or self.is_draining
            or self.requests.kept_bytes
            or self.responses.kept_bytes
            or not self.in_flight.is_plain
        )

    def _note_held_bytes(self) -> None:
        held = self._kept_bytes()
        if self._held:
            held += self._held.size + len(self._held.behind)
        if held > SMALL or self._held_bytes:
            self._held_bytes = max(held - SMALL, 0)
            self._account.holds(self, self._held_bytes)

    def _watch(self, side: Endpoint, mask: int) -> None:
        if side.mask == mask or (side.mask == UNWATCHED and not mask):
            return
        if side.mask == UNWATCHED:
            self._forwarder.loop.watch(side.fd, mask, self.on_broker)
        else:
            self._forwarder.loop.change(side.fd, mask)
        side.mask = mask


def _reason(error: OSError) -> str:
    return "reset" if isinstance(error, (ConnectionError, TimeoutError)) else "error"

"""The life and death of a connection: who has said all, who has gone, by when it must go on, and when it is over.

A side has said all when its endpoint is ``at_end``. The other side is told by a half close once everything before it is
delivered. Once everything for the client is delivered, the first row that applies says when the connection is over:

=============================================  =====================================================================
a request is held                              when the broker has gone
no more requests are read (``ending``)         when all are answered, or the broker has gone
the gateway drains, between two frames         when all are answered
the broker has gone                            when the client has too, when nothing could be sent to the broker, or
                                               with TLS: it has no half close
the client has said all, to a broker with TLS  when all are answered
=============================================  =====================================================================

Deadlines: ``known_by`` for a client's first word or login, ``complete_by`` for a request that is kept whole, and
``ends_by`` for a connection that is about to begin or to end.
"""

import time

from brimline.gateway.net.endpoint import Endpoint

_KEPT_BYTES_PER_SECOND = 1 << 16
"""How slowly a request that is kept whole may arrive before its connection is given up."""
_LAST_WORDS_SECONDS = 10.0
"""How long a connection that is about to end may still take to deliver what it has."""


class Lifetime:
    __slots__ = (
        "_began_keeping",
        "_broker",
        "_broker_told",
        "_client",
        "_client_told",
        "_complete_by",
        "_ends_by",
        "_kept_number",
        "_known_by",
        "broker_leaves",
        "ending",
        "has_lost_broker",
        "is_leaving",
        "needs_login",
    )

    def __init__(
        self, client: Endpoint, broker: Endpoint, *, login_timeout: float, header_timeout: float, needs_login: bool
    ) -> None:
        self._client = client
        self._broker = broker
        self.needs_login = needs_login
        self.ending: str | None = None
        """Why no more requests are read, and the connection ends when all are answered."""
        self.broker_leaves = False
        """It has said that it will say no more, or is gone; what it has said may still be there to be read."""
        self.has_lost_broker = False
        """Nothing more can be sent to it."""
        self.is_leaving = False
        """Any of the three."""
        self._client_told = False
        self._broker_told = False
        self._kept_number = 0
        self._began_keeping = 0.0
        now = time.monotonic()
        self._known_by: float | None = now + login_timeout
        self._ends_by: float | None = now + header_timeout
        self._complete_by: float | None = None

    def opened(self) -> None:
        self._ends_by = None

    def read_no_more(self, reason: str) -> None:
        self.ending = reason
        self.is_leaving = True
        self._expect_the_end_soon()

    def broker_begins_to_leave(self) -> None:
        self.broker_leaves = self.is_leaving = True

    def broker_is_lost(self) -> None:
        self.has_lost_broker = self.is_leaving = True

    def late_for(self, now: float, *, has_passed_token: bool, has_asked: bool) -> str | None:
        """Why this connection is given up now; ``None``: it is not."""
        if (self._ends_by is not None and self._ends_by <= now) or (
            self._complete_by is not None and self._complete_by <= now
        ):
            return "too-slow"
        if self._known_by is not None and self._known_by <= now:
            if not (has_passed_token if self.needs_login else has_asked):
                return "not-logged-in" if self.needs_login else "silent"
            self._known_by = None
        return None

    def keeps(self, kept_bytes: int, number: int, header_timeout: float) -> None:
        """A request that is kept has until its deadline to be complete. Every byte puts that off a little."""
        if not kept_bytes:
            self._complete_by = None
            return
        if self._complete_by is None or self._kept_number != number:
            self._kept_number = number
            self._began_keeping = time.monotonic()
        self._complete_by = self._began_keeping + header_timeout + kept_bytes / _KEPT_BYTES_PER_SECOND

    def is_not_read(self) -> None:
        """Whoever is not read cannot be late."""
        self._complete_by = None

    def is_over(
        self, *, is_held: bool, is_draining: bool, is_between_frames: bool, to_broker_done: bool, all_answered: bool
    ) -> bool:
        """Once everything for the client is delivered; the table above."""
        client_gone, broker_gone = self._client.at_end, self._broker.at_end
        is_done = to_broker_done and all_answered
        if is_held:
            return broker_gone
        if self.ending:
            return is_done or broker_gone
        if is_draining and is_between_frames and is_done:
            return True
        if broker_gone:
            return client_gone or self.has_lost_broker or not self._client.can_splice
        return client_gone and is_done and not self._broker.can_splice

    def pass_on_ends(self, *, is_held: bool, is_waiting: bool, to_broker_done: bool, to_client_done: bool) -> None:
        """Half closes, and deadlines for whoever is left. ``is_waiting``: not all requests are answered."""
        has_said_all = (self._client.at_end and not is_held) or self.ending
        if has_said_all and to_broker_done and not self._broker_told:
            self._broker_told = True
            self._broker.no_more()
            self._expect_the_end(is_waiting=is_waiting)
        if self._broker.at_end and to_client_done and not self._client_told:
            self._client_told = True
            self._client.no_more()
            self._expect_the_end(is_waiting=is_waiting)
        is_last = self._broker.at_end or self.broker_leaves or (self._client.at_end and not is_waiting)
        if is_last and not to_client_done:
            # From now on: whenever the client has taken something it gets as much time again.
            self._expect_the_end_soon()

    def _expect_the_end(self, *, is_waiting: bool) -> None:
        if self._client.at_end and is_waiting:
            return  # the client waits for its last answers, and the broker takes the time that it takes
        self._expect_the_end_soon()

    def _expect_the_end_soon(self) -> None:
        self._ends_by = time.monotonic() + _LAST_WORDS_SECONDS

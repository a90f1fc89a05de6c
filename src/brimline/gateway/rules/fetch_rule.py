"""What becomes of Fetch requests on a listener over which followers fetch; one of these stands in each connection.

A connection is a follower's or it is not: which, its first Fetch tells that is looked at, and one that is a consumer's
is never looked at again. A follower's is looked at only while something is skipped for that follower, and until it and
the broker agree again on their session (``decide.followers``). Everything else passes without a look at its body.

**Nothing is answered here.** Even a fetch of which nothing is left goes to the broker, which answers it in its own
order, with its own throttling, and to nobody who has not logged in. Only its answer is added to.

**Fail open.** A request that cannot be read, or is of a version that is not known here, passes and is counted: the
guard then does not call anything held back. (The broker closes the connection of one that it cannot read either.) After
an answer that cannot be read the follower's session is ended, and then its connection is left alone for good.
"""

from collections.abc import Callable

from brimline.decide.followers import SKIPPED_ERROR, FetchPlan, FollowerSession
from brimline.gateway.counters import FetchCounters
from brimline.gateway.describe.rule import framed
from brimline.gateway.net.connection import Connection, Judge
from brimline.gateway.rules.follower_orders import FollowerSkips, OwnSkips, SkippedPartitions
from brimline.wire.fetch import (
    API_KEY,
    FIRST_VERSION_WITH_TOPIC_ID,
    MAX_VERSION,
    MIN_VERSION,
    FetchIndex,
    Partition,
    index_fetch,
    rewritten_fetch,
)
from brimline.wire.fetch_response import rewritten_answer
from brimline.wire.in_flight import Expected, Frame
from brimline.wire.primitives import WireError
from brimline.wire.request_stream import Request

_NOBODY = SkippedPartitions()


class NobodyJudges:
    """Everything passes: what this broker sends to another is that one's matter."""

    def wants(self, api_key: int, version: int) -> bool:
        return False

    def judge(self, connection: Connection, request: Request) -> None:
        connection.forward([request.frame], request.correlation_id)


def fetch_rules(others: Judge, skips: FollowerSkips | OwnSkips, counters: FetchCounters) -> Callable[[], "FetchRule"]:
    """Makes one for each connection; ``others`` judges everything but Fetch."""
    return lambda: FetchRule(others, skips, counters)


class FetchRule:
    __slots__ = ("_counters", "_follower", "_gives_up", "_is_left_alone", "_others", "_session", "_skips", "_uses_ids")

    def __init__(self, others: Judge, skips: FollowerSkips | OwnSkips, counters: FetchCounters) -> None:
        self._others = others
        self._skips = skips
        self._counters = counters
        self._follower: int | None = None
        """Whose connection it is; ``None``: not known yet."""
        self._uses_ids = True
        self._is_left_alone = False
        self._gives_up = False
        """It will be left alone, after one more request."""
        self._session: FollowerSession | None = None
        """``None`` while the follower and the broker are among themselves."""

    def wants(self, api_key: int, version: int) -> bool:
        if api_key != API_KEY:
            return self._others.wants(api_key, version)
        if self._session is None and not self._skips.snapshot.followers:
            return False
        has_something_to_do, is_known = self._has_something_to_do(), MIN_VERSION <= version <= MAX_VERSION
        if not (has_something_to_do and is_known):
            self._session = None
        if has_something_to_do and not is_known:
            self._counters.passed_unread += 1
        return has_something_to_do and is_known

    def judge(self, connection: Connection, request: Request) -> None:
        if request.api_key != API_KEY:
            self._others.judge(connection, request)
            return
        try:
            index = index_fetch(request.payload, request.version)
        except WireError:
            self._session = None
            self._counters.passed_unread += 1
            connection.forward([request.frame], request.correlation_id)
            return
        if index.replica_id < 0:
            self._is_left_alone = True
            connection.forward([request.frame], request.correlation_id)
            return
        self._judge_follower(connection, request, index)

    def _has_something_to_do(self) -> bool:
        if self._is_left_alone:
            return False
        if self._gives_up or (self._session is not None and self._session.owes):
            return True
        snapshot = self._skips.snapshot
        return (self._follower is None or self._follower in snapshot.followers) and snapshot.is_in_force

    def _judge_follower(self, connection: Connection, request: Request, index: FetchIndex) -> None:
        uses_ids = request.version >= FIRST_VERSION_WITH_TOPIC_ID
        if self._session is None or self._follower != index.replica_id or self._uses_ids != uses_ids:
            self._session = FollowerSession()
            self._follower, self._uses_ids = index.replica_id, uses_ids
        blocked = self._blocked()
        if self._gives_up:
            self._is_left_alone = True
        elif not (blocked or self._session.owes):
            self._session = None  # another follower than the one that is full
            connection.forward([request.frame], request.correlation_id)
            return
        plan = self._session.plan(
            epoch=index.session_epoch,
            listed=[part.key for part in index.parts],
            forgotten=index.forgotten,
            blocked=blocked,
        )
        self._count(plan)
        expected: int | Expected = request.correlation_id
        if plan.changes_answer:
            expected = Expected(request.correlation_id, self._changing(request.version, index, plan))
        connection.forward(_changed(request, index, plan), expected)

    def _blocked(self) -> frozenset[Partition]:
        snapshot = self._skips.snapshot
        if self._follower is None or self._gives_up:
            return frozenset()
        skipped = snapshot.followers.get(self._follower, _NOBODY) if snapshot.is_in_force else _NOBODY
        return skipped.by_id if self._uses_ids else skipped.by_name

    def _count(self, plan: FetchPlan) -> None:
        self._counters.rewritten += plan.changes_request
        self._counters.restarted += plan.is_restart
        self._counters.skipped += len(plan.refused)
        self._counters.probed += len(plan.probed)

    def _changing(
        self, version: int, index: FetchIndex, plan: FetchPlan
    ) -> Callable[[Expected, bytearray], Frame | None]:
        probed = {index.parts[position].key: index.parts[position].fetch_offset for position in plan.probed}

        def change(_expected: Expected, payload: bytearray) -> Frame:
            try:
                answer = rewritten_answer(
                    memoryview(payload), version, refused=plan.refused, error_code=SKIPPED_ERROR, emptied=probed
                )
            except WireError:
                self._session, self._gives_up = FollowerSession(), True
                self._counters.not_understood += 1
                return framed(payload)
            self._counters.withheld_bytes += answer.records_bytes
            return answer.frame

        return change


def _changed(request: Request, index: FetchIndex, plan: FetchPlan) -> list[bytes | bytearray | memoryview]:
    if not plan.changes_request:
        return [request.frame]
    return [
        *rewritten_fetch(
            request.payload,
            index,
            dropped=plan.dropped,
            of_one_byte=plan.probed,
            forgotten=plan.forgotten,
            session_epoch=plan.epoch,
        )
    ]

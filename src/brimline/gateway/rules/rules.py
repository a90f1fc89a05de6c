"""What the gateway does with the requests that it looks into. Everything else never comes here.

- **Produce** is looked into only while something may be refused: a fence is in force, or a producer's refused sequence
  is remembered. What is refused is answered here, what is allowed goes on, and the client gets one answer for both.
  One that cannot be read ends its connection: nothing goes past a fence unread. One for a partition that nobody here
  has seen waits for a fresh look at the log dirs; the first one to be refused waits for the broker's word (``writer``).
- **ApiVersions** tells which software the client is, and learns what this gateway adds (DescribeLogDirs, its mark).
- **OffsetCommit** is looked into only while a volume is past its line (``commit_rule``).
- **DescribeLogDirs** is answered in the layout that was asked for (``describe``).

Observing (``enforces`` is false), it counts what it would have refused and changes no byte but the highest version of
DescribeLogDirs in ApiVersions, and the answers to whoever asks for more than the broker tells.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from brimline.decide import admission
from brimline.decide.admission import Fence, RejectError, Verdict
from brimline.decide.sequences import DEFAULT_EXPIRY_SECONDS, RefusedSequence
from brimline.gateway.counters import Counters, RefusalCount, RefusedPartition
from brimline.gateway.describe.rule import DescribeRule, framed
from brimline.gateway.net.connection import Connection
from brimline.gateway.rules.commit_rule import CommitRule
from brimline.gateway.rules.fences import Fences, FenceSnapshot
from brimline.gateway.rules.placement import Placement
from brimline.gateway.rules.seen_client import UNKNOWN, seen_on
from brimline.gateway.rules.sequence_memory import SequenceMemory, key_of
from brimline.gateway.rules.writer import Told, writer_of
from brimline.wire import api_versions, offset_commit, produce
from brimline.wire.api_versions import GATEWAY_API_KEY, GATEWAY_API_VERSIONS
from brimline.wire.describe_log_dirs_request import MAX_VERSION as DESCRIBE_LOG_DIRS_MAX_VERSION
from brimline.wire.in_flight import Expected
from brimline.wire.kafkajs import KAFKAJS, is_kafkajs
from brimline.wire.primitives import WireError
from brimline.wire.produce import ProduceIndex, ProducePart
from brimline.wire.produce_response import Refusal, RefusedPart, refusing_response
from brimline.wire.request_header import API_VERSIONS, DESCRIBE_LOG_DIRS, OFFSET_COMMIT, PRODUCE
from brimline.wire.request_stream import Request

_LOG = logging.getLogger("brimline.gateway")
_BURST_SECONDS = 1.0
_MIXED_SECONDS = 10.0
"""For so long a client that was allowed something is taken for one that will be again."""
_SILENCE_SECONDS = 10.0
"""Between two lines about requests that cannot be read, which a hostile client can send by the thousand."""
_NO_ACKS = 0
_NOT_IDEMPOTENT = ProducePart(None, None, 0, 0, 0, 0, -1, -1, -1, is_transactional=False)


class _Ruling(NamedTuple):
    """Of a part that is refused, or that changes the entry of ``key``, or both."""

    position: int
    part: ProducePart
    topic: str
    fence: Fence | None
    refusal: Refusal | None
    key: bytes | None

    def after(self, told: Told) -> "_Ruling":
        """Whom the broker turns away gets its own error, does not learn what is full, and changes nothing."""
        code = told.turned_away.get(self.part.where)
        if code is None:
            return self
        refusal = None if self.refusal is None else Refusal(self.part, code, None)
        return self._replace(fence=None, refusal=refusal, key=None)


@dataclass(slots=True, kw_only=True)
class RuleSettings:
    """May be changed while running."""

    error: RejectError = RejectError.KAFKA_STORAGE_ERROR
    refusals_per_second: int = 20
    """Of wholly refused requests of a connection that sends nothing else; above this rate the answers come later."""
    memory_seconds: int = DEFAULT_EXPIRY_SECONDS


class Rules:
    def __init__(
        self,
        settings: RuleSettings,
        fences: Fences,
        placement: Callable[[], Placement],
        memory: SequenceMemory,
        now: Callable[[], int],
        describe: DescribeRule,
        commits: CommitRule,
        counters: Counters,
        when_fresh: Callable[[Callable[[], None]], None],
        *,
        enforces: bool = True,
    ) -> None:
        """``describe`` answers DescribeLogDirs. ``now`` is the clock of ``memory``. Without ``enforces``: observe only.

        ``when_fresh`` calls back later, with a ``placement`` of then.
        """
        self.settings = settings
        self._fences = fences
        self._placement = placement
        self._memory = memory
        self._now = now
        self._describe = describe
        self.commits = commits
        self._counters = counters
        self._when_fresh = when_fresh
        self._silent_until = 0.0
        self.enforces = enforces

    def wants(self, api_key: int, version: int) -> bool:
        if api_key == PRODUCE:
            return not (self._fences.snapshot.is_empty and self._memory.is_empty)
        if api_key == API_VERSIONS:
            return True
        if api_key == OFFSET_COMMIT:
            return self.commits.wants
        return self._describe.wants(api_key, version)

    def judge(self, connection: Connection, request: Request) -> None:
        if request.api_key == PRODUCE:
            self._judge_produce(connection, request)
        elif request.api_key == API_VERSIONS:
            self._note_versions(connection, request)
        elif request.api_key == OFFSET_COMMIT:
            self.commits.judge(connection, request)
        else:
            self._describe.judge(connection, request)

    def _judge_produce(self, connection: Connection, request: Request) -> None:
        try:
            index = produce.index_produce(request.payload, request.version)
        except WireError as error:
            self._cannot_be_judged(connection, request, error)
            return
        if self.enforces and self._names_strangers(index):
            connection.hold(lambda: self._judge_again(connection, request, None), len(request.frame))
            self._when_fresh(connection.let_go)
        else:
            self._judge_parts(connection, request, index, None)

    def _judge_again(self, connection: Connection, request: Request, told: Told | None) -> None:
        """One that was held: without its index, which is many times as large."""
        self._judge_parts(connection, request, produce.index_produce(request.payload, request.version), told)

    def _cannot_be_judged(self, connection: Connection, request: Request, error: WireError) -> None:
        """The broker would refuse it too, or it is of a version that nobody was offered here."""
        if self.enforces:
            connection.end_after_this("unreadable-produce")
            self._say_unreadable(connection, request, error)
        else:
            connection.forward([request.frame], request.correlation_id)

    def _say_unreadable(self, connection: Connection, request: Request, error: WireError) -> None:
        now = time.monotonic()
        if now < self._silent_until:
            return
        self._silent_until = now + _SILENCE_SECONDS
        _LOG.warning(
            "a Produce request (version %d, client %r) could not be read while something is fenced: %s. Connection "
            "closed, counted as unreadable-produce",
            request.version,
            seen_on(connection).software,
            error,
            extra={"event": "unreadable-produce"},
        )

    def _names_strangers(self, index: ProduceIndex) -> bool:
        """Whether it names a partition that was seen in no log dir, while one is fenced."""
        if not self._fences.snapshot.has_log_dirs:
            return False
        placement = self._placement()
        seen = placement.log_dirs
        return any(
            (part.topic, part.partition) not in seen and _place_of(placement, part)[1] is None for part in index.parts
        )

    def _judge_parts(self, connection: Connection, request: Request, index: ProduceIndex, told: Told | None) -> None:
        """``told`` is what the broker has said to some parts without their records (``gateway.rules.writer``)."""
        rulings, changes = self._rulings(index)
        if rulings and _fails_as_one(connection, request, index):
            rulings, changes = self._rulings(index, next((each.fence for each in rulings if each.fence), None))
        if not self.enforces:
            self._count(self._counters.would_refuse, connection, rulings)
            rulings = []
        if rulings and index.acks != _NO_ACKS:
            writer = writer_of(connection)
            strange = writer.not_let_in({each.part.where[0] for each in rulings})
            if strange or told is not None:
                told = Told() if told is None else told
                strange -= told.let_in
                unknown = [
                    each.position
                    for each in rulings
                    if each.part.where[0] in strange and each.part.where not in told.turned_away
                ]
                if unknown:
                    writer.ask(connection, request, index, unknown, told)
                    connection.hold(lambda: self._judge_again(connection, request, told), len(request.frame))
                    return
                rulings = [each.after(told) for each in rulings]
            # Before the refusals are sent: a gateway that is killed in between must still know of them.
            kept = {each.key: changes[each.key] for each in rulings if each.key} if changes else {}
            if kept and not writer.remember(self._memory, kept):
                connection.end_after_this("too-many-producers")
                return
        self._count(self._counters.refused, connection, rulings)
        self._send(connection, request, index, {each.position: each.refusal for each in rulings if each.refusal})

    def _send(
        self, connection: Connection, request: Request, index: ProduceIndex, refusals: Mapping[int, Refusal]
    ) -> None:
        """What is refused is answered, by its position in the request; the rest goes on."""
        has_answer = index.acks != _NO_ACKS
        is_refused_wholly = len(refusals) == len(index.parts)
        if not is_refused_wholly:
            seen_on(connection).allowed_at = time.monotonic()
        if not refusals:
            connection.forward([request.frame], request.correlation_id if has_answer else None)
        elif is_refused_wholly and has_answer:
            frame = refusing_response(request.version, request.correlation_id, refusals.values())
            connection.answer(frame, after_seconds=self._slow_down(connection))
        elif not is_refused_wholly:
            allowed = produce.without(request.payload, index, refusals.keys())
            refused = RefusedPart(request.version, refusals.values())
            expected = Expected(request.correlation_id, _merging(refused), refused.kept_bytes)
            connection.forward(allowed, expected if has_answer else None)
        if refusals and not has_answer:
            # There is no answer in which to say it. A broker closes the connection then.
            connection.end_after_this()

    def _rulings(
        self, index: ProduceIndex, of_all: Fence | None = None
    ) -> tuple[list[_Ruling], dict[bytes, RefusedSequence | None]]:
        """What is refused or changes what is remembered, and how the latter would be afterwards.

        ``of_all`` is a fence before parts that have none of their own.
        """
        snapshot, placement = self._fences.snapshot, self._placement()
        seen, followers = placement.log_dirs, snapshot.followers_in_force
        nothing_is_held = self._memory.is_empty
        judge = partial(
            admission.judge, error=self.settings.error, now=self._now(), expiry_seconds=self.settings.memory_seconds
        )
        # A request may name thousands of partitions of one topic in one log dir, most of them by one kind of producer.
        of_plain: dict[tuple[str, str | None], tuple[Fence | None, Verdict]] = {}
        rulings: list[_Ruling] = []
        changes: dict[bytes, RefusedSequence | None] = {}
        for position, part in enumerate(index.parts):
            topic = part.topic
            log_dir = None if topic is None else seen.get((topic, part.partition))
            if log_dir is None:
                topic, log_dir = _place_of(placement, part)
                log_dir = log_dir or _where_it_may_be(snapshot, placement, topic)
            if topic is None:
                if log_dir is None:
                    continue  # a topic that nobody here has heard of: the broker answers
                topic = str(part.topic_id)
            known = of_plain.get((topic, log_dir))
            if known is None:
                fence = snapshot.of(topic, log_dir)
                known = of_plain[topic, log_dir] = fence, judge(topic, _NOT_IDEMPOTENT, fence, None)
            fence, verdict = known
            if fence is None:
                fence = followers.get((topic, part.partition)) or of_all
                if fence is not None:
                    verdict = judge(topic, _NOT_IDEMPOTENT, fence, None)
                elif nothing_is_held:
                    continue
            key = None
            if part.producer_id >= 0 and self.enforces:
                key = key_of(part.producer_id, topic, part.partition)
                held = changes[key] if key in changes else self._memory.get(key)
                verdict = judge(topic, part, fence, held)
                if verdict.held == held:
                    key = None
                else:
                    changes[key] = verdict.held
            if verdict.refusal is not None:
                refusal = Refusal(part, verdict.code, verdict.refusal)
                rulings.append(_Ruling(position, part, topic, fence, refusal, key))
            elif key is not None:
                rulings.append(_Ruling(position, part, topic, fence, None, key))
        return rulings, changes

    @staticmethod
    def _count(table: RefusalCount, connection: Connection, rulings: Sequence[_Ruling]) -> None:
        software = seen_on(connection).software
        for _, part, topic, _, refusal, _ in rulings:
            if refusal is not None and refusal.message is not None:  # else it is the broker's own
                table.add(RefusedPartition(topic, part.partition, software), part.records_bytes)

    def _slow_down(self, connection: Connection) -> float:
        """How long the answer to a wholly refused request waits, so that a connection keeps to the rate.

        Whoever writes to healthy partitions, too, does not wait: answers keep their order, and his other requests
        would wait with this one.
        """
        now, seen = time.monotonic(), seen_on(connection)
        if now - seen.allowed_at < _MIXED_SECONDS:
            return 0.0
        seen.refused_at = max(seen.refused_at, now - _BURST_SECONDS) + 1 / self.settings.refusals_per_second
        return seen.refused_at - now

    def _note_versions(self, connection: Connection, request: Request) -> None:
        seen = seen_on(connection)
        seen.asked_api_versions = request.version
        software = api_versions.client_software(request.payload, request.version)
        if software is not None:
            seen.software = software
        describe = self._describe

        def offered_describe(newest: int) -> int:
            describe.broker_version = newest
            return max(newest, DESCRIBE_LOG_DIRS_MAX_VERSION)

        def patch(_expected: Expected, payload: bytearray) -> bytes:
            set_max = {DESCRIBE_LOG_DIRS: offered_describe}
            add = {}
            if self.enforces:
                set_max[PRODUCE] = _understood_produce
                add[GATEWAY_API_KEY] = GATEWAY_API_VERSIONS
            if self.commits.is_on:
                set_max[OFFSET_COMMIT] = _understood_commit
            try:
                patched = api_versions.patched_response(memoryview(payload), request.version, set_max, add)
            except WireError:
                return framed(payload)  # an answer from the future, which is not ours to change
            return framed(patched)

        connection.forward([request.frame], Expected(request.correlation_id, patch))


def _understood_produce(newest: int) -> int:
    """A client must not be led to a version in which its requests could not be judged."""
    return min(newest, produce.MAX_VERSION)


def _understood_commit(newest: int) -> int:
    return min(newest, offset_commit.MAX_VERSION)


def _merging(refused: RefusedPart) -> Callable[[Expected, bytearray], bytes]:
    def merge(_expected: Expected, payload: bytearray) -> bytes:
        try:
            return refused.merged_into(memoryview(payload))
        except WireError:
            # Not to be understood: the client gets the broker's own words, and asks again for the rest.
            return framed(payload)

    return merge


def _fails_as_one(connection: Connection, request: Request, index: ProduceIndex) -> bool:
    """Whether the client takes its whole request for failed if a part of it is refused (``wire.kafkajs``)."""
    if index.acks == _NO_ACKS:
        return False
    seen = seen_on(connection)
    if seen.software == UNKNOWN and is_kafkajs(request.payload, index, seen.asked_api_versions):
        seen.software = KAFKAJS
    return seen.software == KAFKAJS


def _where_it_may_be(snapshot: FenceSnapshot, placement: Placement, topic: str | None) -> str | None:
    """Of a partition that was seen nowhere: a fenced log dir, if it cannot be anywhere else.

    If it is one of this broker's, it is on its way into one of the log dirs. An id that is not known may also be that
    of a folder that has not told its own.
    """
    log_dirs = placement.topics
    fenced = [path for path in log_dirs if snapshot.of_log_dir(path) is not None]
    if len(fenced) < len(log_dirs):
        fenced = [path for path in fenced if path in placement.with_unknown_ids] if topic is None else []
    return fenced[0] if fenced else None


def _place_of(placement: Placement, part: ProducePart) -> tuple[str | None, str | None]:
    """The topic's name and the log dir, as far as they are known."""
    topic = part.topic
    if topic is None and part.topic_id is not None:
        topic = placement.name_of(part.topic_id)
    return topic, None if topic is None else placement.log_dir_of(topic, part.partition)

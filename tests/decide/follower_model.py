"""A follower, a leader and what stands between them, as Kafka's own code behaves, in a few lines each.

Records are numbers: a log is where it starts and where it ends. The follower is ReplicaFetcherThread with its
FetchSessionHandler, the leader is FetchManager with its sessions. Whatever a real follower would find wrong with an
answer ends the test.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from brimline.decide.followers import SKIPPED_ERROR, FetchPlan, FollowerSession, Partition

NO_ERROR = 0
OFFSET_OUT_OF_RANGE = 1
SESSION_NOT_FOUND = 70
INVALID_EPOCH = 71
NO_SESSION = 0
FULL, CLOSING = 0, -1
BACKOFF = 10
FETCHED_AT_ONCE = 50


@dataclass
class Log:
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Asked:
    fetch_offset: int
    log_start: int
    limit: int = FETCHED_AT_ONCE


@dataclass(frozen=True)
class Fetch:
    session_id: int
    epoch: int
    listed: dict[Partition, Asked]
    forgotten: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class Answered:
    error: int = NO_ERROR
    records: int = 0
    log_start: int = -1


@dataclass(frozen=True)
class Answer:
    session_id: int
    partitions: dict[Partition, Answered] = field(default_factory=dict)
    error: int = NO_ERROR
    waited: bool = False
    """Nothing was to be had, so that the leader took its time."""


@dataclass
class CachedPartition:
    asked: Asked
    told_start: int = -1
    """-1: nothing was told yet, so that the next answer has it in any case."""


@dataclass
class LeaderSession:
    epoch: int
    partitions: dict[Partition, CachedPartition]


class Leader:
    def __init__(self, partitions: Iterable[Partition]) -> None:
        self.logs = {partition: Log() for partition in partitions}
        self.follower_starts = dict.fromkeys(self.logs, 0)
        self.sessions: dict[int, LeaderSession] = {}
        self.has_room_for_sessions = True
        self._next_id = 1

    def answer(self, fetch: Fetch) -> Answer:
        if fetch.epoch in (FULL, CLOSING):
            self.sessions.pop(fetch.session_id, None)
            session = LeaderSession(1, {each: CachedPartition(asked) for each, asked in fetch.listed.items()})
            if fetch.epoch == CLOSING or not self.has_room_for_sessions:
                return self._answered(session.partitions, NO_SESSION, is_full=True)
            session_id, self._next_id = self._next_id, self._next_id + 1
            self.sessions[session_id] = session
            return self._answered(session.partitions, session_id, is_full=True)
        if fetch.session_id not in self.sessions:
            return Answer(NO_SESSION, error=SESSION_NOT_FOUND)
        session = self.sessions[fetch.session_id]
        if session.epoch != fetch.epoch:
            return Answer(NO_SESSION, error=INVALID_EPOCH)
        for partition, asked in fetch.listed.items():
            cached = session.partitions.setdefault(partition, CachedPartition(asked))
            cached.asked = asked
        for partition in fetch.forgotten:
            session.partitions.pop(partition, None)
        if not session.partitions:
            del self.sessions[fetch.session_id]
            return self._answered({}, NO_SESSION, is_full=True)
        session.epoch += 1
        return self._answered(session.partitions, fetch.session_id, is_full=False)

    def _answered(self, partitions: dict[Partition, CachedPartition], session_id: int, *, is_full: bool) -> Answer:
        answers: dict[Partition, Answered] = {}
        needs_one = True
        for partition, cached in partitions.items():
            log, asked = self.logs[partition], cached.asked
            self.follower_starts[partition] = asked.log_start
            if not log.start <= asked.fetch_offset <= log.end:
                answers[partition] = Answered(OFFSET_OUT_OF_RANGE)
                continue
            records = min(log.end - asked.fetch_offset, asked.limit - 1)
            if not records and needs_one and log.end > asked.fetch_offset:
                records = 1  # at least one batch, however large
            needs_one = needs_one and not records
            if is_full or records or cached.told_start != log.start:
                cached.told_start = log.start
                answers[partition] = Answered(records=records, log_start=log.start)
        has_something = any(each.records or each.error for each in answers.values())
        return Answer(session_id, answers, waited=bool(partitions) and not has_something)


class Follower:
    def __init__(self, leader: Leader, backoff: int = BACKOFF) -> None:
        self._leader = leader
        self.logs = {partition: Log() for partition in leader.logs}
        self.backed_off_until = dict.fromkeys(self.logs, 0)
        self._backoff = backoff
        self.session_id, self.epoch = NO_SESSION, FULL
        self.session: dict[Partition, Asked] = {}

    def next_fetch(self, now: int) -> Fetch | None:
        wanted = {
            partition: Asked(log.end, log.start)
            for partition, log in self.logs.items()
            if self.backed_off_until[partition] <= now
        }
        if not wanted and not (self.session and self.epoch > FULL):
            return None
        if self.epoch == FULL:
            if not wanted:
                return None
            self.session = wanted
            return Fetch(self.session_id, FULL, dict(wanted))
        changed = {each: asked for each, asked in wanted.items() if self.session.get(each) != asked}
        forgotten = tuple(each for each in self.session if each not in wanted)
        self.session = wanted
        return Fetch(self.session_id, self.epoch, changed, forgotten)

    def take(self, answer: Answer, now: int) -> None:
        if answer.error:
            self.session_id = NO_SESSION if answer.error == SESSION_NOT_FOUND else self.session_id
            self.epoch = FULL
            return
        if self.epoch == FULL:
            assert answer.partitions.keys() == self.session.keys(), "a full answer has what was asked for"
        else:
            assert answer.partitions.keys() <= self.session.keys(), "an answer has nothing that is not in the session"
        self.session_id, self.epoch = (
            (NO_SESSION, FULL) if answer.session_id == NO_SESSION else (answer.session_id, self.epoch + 1)
        )
        for partition, answered in answer.partitions.items():
            self._take_partition(partition, answered, now)

    def disconnect(self) -> None:
        """In the middle of a fetch; between two of them it would not even notice."""
        self.epoch = FULL

    def _take_partition(self, partition: Partition, answered: Answered, now: int) -> None:
        log = self.logs[partition]
        if answered.error == OFFSET_OUT_OF_RANGE:
            start = self._leader.logs[partition].start  # asked for by ListOffsets
            log.start = log.end = start
        elif answered.error:
            assert answered.error == SKIPPED_ERROR
            self.backed_off_until[partition] = now + self._backoff
        else:
            log.end += answered.records
            assert answered.log_start <= log.end, "a log start beyond the end: the partition would be given up"
            log.start = max(log.start, answered.log_start)


class Between:
    """What the gateway does with the plans. ``session`` is ``None`` while nothing is looked at."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self.session: FollowerSession | None = None
        self.restarts = 0

    def exchange(self, fetch: Fetch, blocked: frozenset[Partition]) -> Answer:
        if not blocked and not (self.session and self.session.owes):
            self.session = None
            return self._leader.answer(fetch)
        if self.session is None:
            self.session = FollowerSession()
        listed = list(fetch.listed)
        plan = self.session.plan(epoch=fetch.epoch, listed=listed, forgotten=fetch.forgotten, blocked=blocked)
        self.restarts += plan.is_restart
        return _changed_answer(self._leader.answer(_changed_fetch(fetch, listed, plan)), fetch, listed, plan)


def _changed_fetch(fetch: Fetch, listed: list[Partition], plan: FetchPlan) -> Fetch:
    left = dict(fetch.listed)
    for position in plan.dropped:
        del left[listed[position]]
    for position in plan.probed:
        asked = left[listed[position]]
        left[listed[position]] = Asked(asked.fetch_offset, asked.log_start, limit=1)
    epoch = fetch.epoch if plan.epoch is None else plan.epoch
    return Fetch(fetch.session_id, epoch, left, (*fetch.forgotten, *plan.forgotten))


def _changed_answer(answer: Answer, fetch: Fetch, listed: list[Partition], plan: FetchPlan) -> Answer:
    if answer.error:
        return answer
    partitions = dict(answer.partitions)
    for position in plan.probed:
        partition = listed[position]
        answered = partitions.get(partition)
        if answered is not None and not answered.error:
            start = min(answered.log_start, fetch.listed[partition].fetch_offset)
            partitions[partition] = Answered(records=0, log_start=start)
    for partition in plan.refused:
        assert partition not in answer.partitions, "the leader was not asked for it"
        partitions[partition] = Answered(SKIPPED_ERROR)
    return Answer(answer.session_id, partitions, answer.error, answer.waited)

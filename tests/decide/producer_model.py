"""An idempotent producer, a gateway that refuses, and a broker that knows nothing yet: small enough to try every order.

The producer keeps up to five requests in flight for one partition and retries in one of the two manners that clients
have. A connection that it abandons may still deliver what was sent on it. When it gives a batch up it goes on with the
next epoch. The broker is Kafka's as far as sequences go: without state it takes any first sequence.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from brimline.decide.sequences import DEFAULT_EXPIRY_SECONDS, RefusedSequence, rule_on

SEQUENCES = 1 << 31
MAX_IN_FLIGHT = 5


class Answer(Enum):
    STORED = "stored"
    REFUSED = "refused by the gateway"
    OUT_OF_ORDER = "out of order"
    OLD_EPOCH = "an old epoch"


class Retries(Enum):
    LOWEST_AT_ONCE = "Java: the lowest batch that is not acknowledged, whatever else is in flight"
    ALL_IN_ORDER = "librdkafka: when nothing higher is in flight any more, one after the other"


class Step(Enum):
    SEND = "send"
    DELIVER = "deliver"
    DELIVER_OLD = "deliver from the oldest connection"
    ANSWER = "answer"
    FENCE = "fence"
    RELEASE = "release"
    RECONNECT = "reconnect"
    GIVE_UP = "give up"


@dataclass(slots=True, kw_only=True)
class Batch:
    number: int
    records: int
    epoch: int = -1
    sequence: int = -1
    is_in_flight: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    batch: int
    epoch: int
    sequence: int
    records: int


@dataclass(slots=True)
class Broker:
    """``log`` is what was stored, in its order. ``recent`` are the last batches, by which it knows a duplicate."""

    log: list[Request] = field(default_factory=list)
    recent: deque[Request] = field(default_factory=lambda: deque(maxlen=5))

    def append(self, request: Request) -> Answer:
        if self.recent:
            last = self.recent[-1]
            if request.epoch < last.epoch:
                return Answer.OLD_EPOCH
            if any((each.epoch, each.sequence) == (request.epoch, request.sequence) for each in self.recent):
                return Answer.STORED
            is_new_epoch = request.epoch > last.epoch
            expected = 0 if is_new_epoch else (last.sequence + last.records) % SEQUENCES
            if request.sequence != expected:
                return Answer.OUT_OF_ORDER
        self.log.append(request)
        self.recent.append(request)
        return Answer.STORED


@dataclass(slots=True)
class Connection:
    requests: deque[Request] = field(default_factory=deque)
    answers: deque[tuple[Request, Answer]] = field(default_factory=deque)


@dataclass(slots=True, kw_only=True)
class Story:
    """``unacknowledged`` is in the order of sending; ``remembers`` switches the gateway's memory off."""

    unacknowledged: list[Batch]
    retries: Retries
    next_sequence: int = 0
    remembers: bool = True
    now: int = 1_000_000
    epoch: int = 0
    is_fenced: bool = False
    held: RefusedSequence | None = None
    broker: Broker = field(default_factory=Broker)
    connections: list[Connection] = field(default_factory=lambda: [Connection()])
    acknowledged: list[int] = field(default_factory=list)

    def do(self, step: Step) -> None:
        match step:
            case Step.SEND:
                self.send()
            case Step.DELIVER:
                self.deliver(self.connections[-1])
            case Step.DELIVER_OLD:
                self.deliver(next((each for each in self.connections if each.requests), self.connections[-1]))
            case Step.ANSWER:
                self.take_answer()
            case Step.FENCE | Step.RELEASE:
                self.is_fenced = step is Step.FENCE
            case Step.RECONNECT:
                self.connections.append(Connection())
                for batch in self.unacknowledged:
                    batch.is_in_flight = False
            case Step.GIVE_UP:
                self.give_up()

    def finish(self) -> None:
        """Space is back, and the client has all the tries it needs."""
        self.is_fenced = False
        for connection in self.connections[:-1]:
            while connection.requests:
                self.deliver(connection)
        self._try_on()
        if len(self.connections) > 1:
            # A copy of a batch that has landed long ago may have been refused last, on a connection that its client
            # has abandoned. Nobody brings that one back: only time ends the wait for it.
            self.now += DEFAULT_EXPIRY_SECONDS
            self._try_on()

    def _try_on(self) -> None:
        for _ in range(20 * (len(self.unacknowledged) + 1)):
            self.send()
            self.deliver(self.connections[-1])
            self.take_answer()

    def send(self) -> None:
        batch = self._next_to_send()
        if batch is None:
            return
        if batch.epoch < 0:
            batch.epoch, batch.sequence = self.epoch, self.next_sequence
            self.next_sequence = (self.next_sequence + batch.records) % SEQUENCES
        batch.is_in_flight = True
        request = Request(batch=batch.number, epoch=batch.epoch, sequence=batch.sequence, records=batch.records)
        self.connections[-1].requests.append(request)

    def _next_to_send(self) -> Batch | None:
        flying = [batch.number for batch in self.unacknowledged if batch.is_in_flight]
        waiting = next((batch for batch in self.unacknowledged if not batch.is_in_flight), None)
        if waiting is None or len(flying) >= MAX_IN_FLIGHT:
            return None
        is_retry = waiting.epoch >= 0
        if is_retry and self.retries is Retries.LOWEST_AT_ONCE and waiting is not self.unacknowledged[0]:
            return None
        if is_retry and self.retries is Retries.ALL_IN_ORDER and any(each > waiting.number for each in flying):
            return None
        return waiting

    def deliver(self, connection: Connection) -> None:
        if not connection.requests:
            return
        request = connection.requests.popleft()
        ruling = rule_on(
            request.epoch,
            request.sequence,
            self.held if self.remembers else None,
            is_fenced=self.is_fenced,
            is_retriable=True,
            now=self.now,
        )
        self.held = ruling.held
        answer = Answer.REFUSED if ruling.is_refused else self.broker.append(request)
        connection.answers.append((request, answer))

    def take_answer(self) -> None:
        """Of the connection in use; nobody listens to the others any more."""
        if not self.connections[-1].answers:
            return
        request, answer = self.connections[-1].answers.popleft()
        asked = [batch for batch in self.unacknowledged if batch.number == request.batch]
        for batch in asked:
            batch.is_in_flight = False
        if answer is Answer.STORED:
            self.acknowledged.append(request.batch)
            self.unacknowledged = [batch for batch in self.unacknowledged if batch not in asked]

    def give_up(self) -> None:
        """As Java does: only once nothing is in flight; the batches behind it are numbered anew."""
        tried = [batch for batch in self.unacknowledged if batch.epoch >= 0]
        if not tried or any(batch.is_in_flight for batch in self.unacknowledged):
            return
        self.unacknowledged.remove(tried[0])
        self.epoch += 1
        self.next_sequence = 0
        for batch in tried[1:]:
            batch.epoch = batch.sequence = -1

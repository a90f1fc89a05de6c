"""What is known of whoever writes over one connection: where the broker lets him in, and what is remembered for him.

**Invariant.** What stands refused of producers (``decide.sequences``) is changed only over a connection that the broker
was seen to let write to that topic. A producer's id is no secret: whoever may not write to a topic, or has not even
logged in, must neither hold back another's producer by guessing its id, nor free what is held back, nor push it out.

**How it is seen.** The client's own request goes to the broker, over the client's own connection, without its records
(``wire.produce.emptied``). A broker looks at rights first and at records then, so its answer tells whom it turns away,
and it stores nothing. The request itself is held meanwhile, and so is everything that the client sends behind it.

**Nothing overtakes.** Whether a refusal is to be remembered is known before it is made; and it is on record before its
answer leaves. A connection that ends before that has told its client nothing and has let nothing of his pass: he begins
again with the lowest sequence that he has no answer for. Whom the broker turns away gets the broker's own error, which
he would get without a gateway, and nothing of him is stored that could overtake.

Rights that were seen are believed for a minute. That somebody has none is asked again every time.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brimline.decide.sequences import RefusedSequence
from brimline.gateway.net.connection import Connection
from brimline.gateway.rules.seen_client import seen_on
from brimline.gateway.rules.sequence_memory import SequenceMemory
from brimline.wire import produce
from brimline.wire.in_flight import Expected, Frame
from brimline.wire.primitives import Malformed
from brimline.wire.produce import ProduceIndex, TopicName
from brimline.wire.produce_response import error_codes
from brimline.wire.request_stream import Request

MOST_ENTRIES = 10_000
"""Over one connection: more partitions than a producer has at one broker. Beyond that the connection is ended."""
_BELIEVED_SECONDS = 60.0
_MOST_TOPICS = 1000
_TOLD_BYTES = 320
"""What is kept of a partition that the broker turns away, besides its topic's name."""

TURNED_AWAY = frozenset({-1, 3, 17, 29, 31, 53, 100})
"""What a broker says to a request before it looks at its records: a failure of its own, no such topic (by name, or by
id), no right to write to it, or to write at all."""


@dataclass(slots=True)
class Told:
    """What the broker has said to a request that is held: little, if it lets its client in."""

    let_in: set[TopicName] = field(default_factory=set)
    turned_away: dict[tuple[TopicName, int], int] = field(default_factory=dict)
    """The broker's error codes, by ``ProducePart.where``."""


class Writer:
    """One for each connection of which something was to be refused or forgotten."""

    __slots__ = ("_entries", "_let_in_until")

    def __init__(self) -> None:
        self._let_in_until: dict[TopicName, float] = {}
        self._entries = 0
        """Remembered over this connection, less those that were forgotten over it."""

    def not_let_in(self, topics: Iterable[TopicName]) -> set[TopicName]:
        """To which of these topics the broker was not seen to let this client write."""
        now = time.monotonic()
        return {topic for topic in topics if self._let_in_until.get(topic, 0.0) <= now}

    def ask(
        self, connection: Connection, request: Request, index: ProduceIndex, asked: Sequence[int], told: Told
    ) -> None:
        """Put the broker's word on these parts into ``told``, and let the request go, which must be held so long."""
        version = request.version
        # Of the partitions themselves, which may be many, nothing is kept meanwhile.
        fingerprint = hash(frozenset(index.parts[position].where for position in asked))

        def learn(_expected: Expected, payload: bytearray) -> Frame:
            codes = error_codes(memoryview(payload), version)
            if hash(frozenset(codes)) != fingerprint:
                raise Malformed("an answer to Produce for other partitions than were asked for")
            told.turned_away |= {where: code for where, code in codes.items() if code in TURNED_AWAY}
            let_in = {topic for (topic, _), code in codes.items() if code not in TURNED_AWAY}
            told.let_in |= let_in
            for topic in let_in:
                self._note(topic)
            connection.let_go(more=_TOLD_BYTES * len(told.turned_away))
            return ()  # the client has not asked for it

        question = produce.emptied(request.payload, index, frozenset(asked))
        connection.forward([question], Expected(request.correlation_id, learn))

    def remember(self, memory: SequenceMemory, changes: Mapping[bytes, RefusedSequence | None]) -> bool:
        """False: more was remembered over this connection than any producer needs, and nothing is changed."""
        added = sum(entry is not None and memory.get(key) is None for key, entry in changes.items())
        if added and self._entries + added > MOST_ENTRIES:
            return False
        for key, entry in changes.items():
            if entry is None:
                memory.forget(key)
                self._entries = max(self._entries - 1, 0)
            else:
                memory.put(key, entry)
        self._entries += added
        return True

    def _note(self, topic: TopicName) -> None:
        if len(self._let_in_until) >= _MOST_TOPICS:
            self._let_in_until.clear()
        self._let_in_until[topic] = time.monotonic() + _BELIEVED_SECONDS


def writer_of(connection: Connection) -> Writer:
    seen = seen_on(connection)
    if seen.writer is None:
        seen.writer = Writer()
    return seen.writer

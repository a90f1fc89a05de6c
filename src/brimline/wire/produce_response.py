"""Answers to Produce (key 0), versions 0 to 13: refusals of our own, alone or put into the broker's answer.

A client matches answers by topic and partition: one that is missing leaves its batch waiting for the timeout, one that
was not asked for, or is there twice, is an error. So every refused partition is answered exactly once, even if a
request named it twice; and if the broker took one of the two, the refusal is the answer, because a client that sends
again is better than one that believes a lost record stored.

Everything that the broker says stays as it is, byte for byte: only counts change, and entries are added.

A request of 120 KB may name 20,000 partitions. So that a refusal is not many times as large as what it refuses, only
the first partitions of an answer are told the reason in words, the others by the error code alone.
"""

from array import array
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from brimline.wire.primitives import Malformed, Reader, Writer, encoded_count
from brimline.wire.produce import FIRST_VERSION_WITH_TOPIC_ID, VERSIONS, ProducePart, TopicName
from brimline.wire.request_header import PRODUCE, is_flexible
from brimline.wire.rewrite import Edit, rewritten_frame

_FIRST_VERSION_WITH_THROTTLE_TIME = 1
_FIRST_VERSION_WITH_LOG_APPEND_TIME = 2
_FIRST_VERSION_WITH_LOG_START_OFFSET = 5
_FIRST_VERSION_WITH_MESSAGE = 8

_INT32 = Struct(">i")
_NUMBER_AND_CODE = Struct(">ih")
_UNKNOWN = -1
_UUID_SIZE = 16
_LONGEST_TOPIC = 249
# Smallest possible encodings, to check a count before it is believed.
_SMALLEST_TOPIC = 3
_SMALLEST_RECORD_ERROR = 6

# A person may have typed the message, and it is sent with many partitions.
_LONGEST_MESSAGE = 1000
_MOST_MESSAGES = 100

# What Python takes besides the bytes themselves.
_TOPIC_OVERHEAD = 400


class Refusal(NamedTuple):
    part: ProducePart
    code: int
    message: str | None


def refusing_response(version: int, correlation_id: int, refusals: Iterable[Refusal]) -> bytes:
    """The whole frame of an answer that the broker has no part in."""
    layout = _layout(version)
    topics = layout.entries_by_topic(refusals)
    head = _INT32.pack(correlation_id) + layout.no_tags + encoded_count(len(topics), flexible=layout.flexible)
    answer = b"".join((head, *[layout.topic(name, topic) for name, topic in topics.items()], layout.end))
    return _INT32.pack(len(answer)) + answer


class RefusedTopic(NamedTuple):
    """The partitions' numbers, and what stands in the answer for them."""

    numbers: "array[int]"
    entries: bytes


class RefusedPart:
    """Refusals of a part of a request, until the broker has answered the rest of it."""

    __slots__ = ("_layout", "_topics", "_version", "kept_bytes")

    def __init__(self, version: int, refusals: Iterable[Refusal]) -> None:
        self._version = version
        self._layout = _layout(version)
        self._topics = self._layout.entries_by_topic(refusals)
        self.kept_bytes = sum(
            _TOPIC_OVERHEAD + len(name) + len(topic.entries) + topic.numbers.itemsize * len(topic.numbers)
            for name, topic in self._topics.items()
        )

    def merged_into(self, payload: memoryview) -> bytes:
        """The whole frame of the broker's answer with refusals added.

        Refused partitions join their topic's entry if the broker has one, else their topic is added behind the others.
        """
        layout, pending = self._layout, self._topics.copy()
        reader = Reader(payload, flexible=layout.flexible)
        reader.int32()  # correlation id
        reader.skip_tags()
        count_start = reader.position
        count = reader.count_not_null(smallest_element=_SMALLEST_TOPIC)
        count_end = reader.position
        edits: list[Edit] = []
        for _ in range(count):
            answered = layout.read_topic(reader)
            refused = pending.pop(answered.key, None)
            if refused is not None:
                edits += layout.put_into(payload, answered, refused)
        if pending:
            edits.insert(0, Edit(count_start, count_end, encoded_count(count + len(pending), flexible=layout.flexible)))
            added = b"".join(layout.topic(name, refused) for name, refused in pending.items())
            edits.append(Edit(reader.position, reader.position, added))
        if self._version >= _FIRST_VERSION_WITH_THROTTLE_TIME:
            reader.int32()
        reader.skip_tags()
        if reader.remaining:
            raise Malformed(f"an answer to Produce with {reader.remaining} bytes too many")
        return b"".join(rewritten_frame(payload, edits))


def error_codes(payload: memoryview, version: int) -> dict[tuple[TopicName, int], int]:
    """The broker's code for each partition that it answers, by ``ProducePart.where``."""
    layout = _layout(version)
    reader = Reader(payload, flexible=layout.flexible)
    reader.int32()  # correlation id
    reader.skip_tags()
    codes: dict[tuple[TopicName, int], int] = {}
    for _ in range(reader.count_not_null(smallest_element=_SMALLEST_TOPIC)):
        topic = layout.read_topic(reader)
        # Once for all its partitions: a name may be long.
        name = UUID(bytes=topic.key) if version >= FIRST_VERSION_WITH_TOPIC_ID else topic.key.decode(errors="replace")
        for start in topic.partition_starts:
            partition, code = _NUMBER_AND_CODE.unpack_from(payload, start)
            codes[name, partition] = code
    return codes


class _AnsweredTopic(NamedTuple):
    """Where things are in the broker's answer. ``key`` is the name or the id, as it stands there."""

    key: bytes
    count_start: int
    count_end: int
    partition_starts: list[int]
    partitions_end: int


class _Layout:
    """How one version writes an answer. Entries are encoded partitions, by their number."""

    def __init__(self, version: int) -> None:
        if version not in VERSIONS:
            raise Malformed(f"an answer to Produce of the unknown version {version}")
        self.flexible = is_flexible(PRODUCE, version)
        self.no_tags = b"\0" if self.flexible else b""
        throttled = bytes(_INT32.size) if version >= _FIRST_VERSION_WITH_THROTTLE_TIME else b""
        self.end = throttled + self.no_tags
        self._has_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_ID
        self._has_message = version >= _FIRST_VERSION_WITH_MESSAGE
        offsets_and_times = (
            1 + (version >= _FIRST_VERSION_WITH_LOG_APPEND_TIME) + (version >= _FIRST_VERSION_WITH_LOG_START_OFFSET)
        )
        self._unknown_offsets_and_times = Struct(f">{offsets_and_times}q").pack(*[_UNKNOWN] * offsets_and_times)
        self._fixed_size = _INT32.size + 2 + len(self._unknown_offsets_and_times)
        # What stands behind the fixed fields of a partition unless its batch was found faulty or its leader moved.
        self._plain_rest = self._rest(None)
        # Fences have few reasons and producers few topics, and each is told thousands of times.
        self.behind_number = lru_cache(maxsize=64)(self._behind_number)
        self._known_name = lru_cache(maxsize=1024)(self._name)

    def entries_by_topic(self, refusals: Iterable[Refusal]) -> dict[bytes, RefusedTopic]:
        """Refusals differ in their partition's number and little else, so that the rest is written once."""
        topics: dict[bytes, dict[int, bytes]] = {}
        for position, (part, code, reason) in enumerate(refusals):
            rest = self.behind_number(code, reason if position < _MOST_MESSAGES else None)
            entries = topics.setdefault(self._key(part), {})
            entries.setdefault(part.partition, _INT32.pack(part.partition) + rest)
        return {name: RefusedTopic(array("i", entries), b"".join(entries.values())) for name, entries in topics.items()}

    def topic(self, key: bytes, refused: RefusedTopic) -> bytes:
        count = encoded_count(len(refused.numbers), flexible=self.flexible)
        # Not for longer ones than a topic can have: a client may invent any.
        name = self._known_name(key) if len(key) <= _LONGEST_TOPIC else self._name(key)
        return name + count + refused.entries + self.no_tags

    def read_topic(self, reader: Reader) -> _AnsweredTopic:
        key = bytes(reader.take(_UUID_SIZE) if self._has_topic_ids else reader.string_bytes())
        count_start = reader.position
        count = reader.count_not_null(smallest_element=self._fixed_size)
        count_end = reader.position
        partition_starts = []
        for _ in range(count):
            partition_starts.append(reader.position)
            self._skip_partition(reader)
        partitions_end = reader.position
        reader.skip_tags()
        return _AnsweredTopic(key, count_start, count_end, partition_starts, partitions_end)

    def put_into(self, payload: memoryview, topic: _AnsweredTopic, refused: RefusedTopic) -> list[Edit]:
        numbers = set(refused.numbers)
        replaced = [
            Edit(start, end)
            for start, end in pairwise((*topic.partition_starts, topic.partitions_end))
            if _INT32.unpack_from(payload, start)[0] in numbers
        ]
        count = len(topic.partition_starts) - len(replaced) + len(numbers)
        return [
            Edit(topic.count_start, topic.count_end, encoded_count(count, flexible=self.flexible)),
            *replaced,
            Edit(topic.partitions_end, topic.partitions_end, refused.entries),
        ]

    def _skip_partition(self, reader: Reader) -> None:
        reader.take(self._fixed_size)
        if reader.take_if_next(self._plain_rest):
            return
        if self._has_message:
            for _ in range(reader.count_not_null(smallest_element=_SMALLEST_RECORD_ERROR)):
                reader.int32()  # which record of the batch
                reader.nullable_string_bytes()
                reader.skip_tags()
            reader.nullable_string_bytes()
        reader.skip_tags()

    def _key(self, part: ProducePart) -> bytes:
        if self._has_topic_ids:
            if part.topic_id is None:
                raise ValueError("this version names topics by their id")
            return part.topic_id.bytes
        if part.topic is None:
            raise ValueError("this version names topics by their name")
        return part.topic.encode()

    def _behind_number(self, code: int, message: str | None) -> bytes:
        return code.to_bytes(2, "big", signed=True) + self._unknown_offsets_and_times + self._rest(message)

    def _name(self, key: bytes) -> bytes:
        if self._has_topic_ids:
            return key
        writer = Writer(flexible=self.flexible)
        writer.string_bytes(key)
        return writer.finish()

    def _rest(self, message: str | None) -> bytes:
        writer = Writer(flexible=self.flexible)
        if self._has_message:
            writer.count(0)  # no record in particular is at fault
            cut = None if message is None else message[:_LONGEST_MESSAGE].encode(errors="replace")
            writer.string_bytes(cut)
        writer.no_tags()
        return writer.finish()


@lru_cache
def _layout(version: int) -> _Layout:
    return _Layout(version)

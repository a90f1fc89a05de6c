"""Requests for DescribeLogDirs, versions 1 to 5: written, read, and made into what the broker understands.

Two layouts share the number 5. Kafka 4.3 ships one (every log dir has IsCordoned), KIP-1187 sketches the other (the
request has IncludeRemoteInfo; every partition has RemoteLogSize and OnlyLocalLogSize; no IsCordoned). So a number alone
never names a layout here.

**Whose version 5.** After the topics, Kafka's own request has its tagged fields, which end where the request does;
KIP-1187's has one byte more before them, IncludeRemoteInfo, 0 or 1. A request is of the layout in which it can be read
exactly to its end:

- Without tagged fields, as every released client sends it, only one of the two can be: one byte is left (no tagged
  fields), or two (the bool, and no tagged fields), and neither pair of bytes is a whole section of tagged fields.
- With tagged fields both may be: a KIP-1187 request that says 1 begins like a section of one field. Then it is taken
  for Kafka's own, because those clients exist.
- If neither can be, nobody could answer it. It is refused here; what to do with it is for the caller to decide.

From version 2 on, all of Kafka's own requests look the same but for the version in their header.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct

from brimline.wire.describe_log_dirs_explained import (
    LONGEST_LIST_OF_TOPICS,
    decode_topics,
    encode_topics,
    find_tag,
    with_tag,
)
from brimline.wire.primitives import Malformed, Reader, Truncated, WireError, Writer, tags_end
from brimline.wire.request_header import body_start, request_head

API_KEY = 35
MIN_VERSION = 1
MAX_VERSION = 5
FIRST_FLEXIBLE_VERSION = 2
_FIRST_VERSION_WITH_ERROR_CODE = 3
_FIRST_VERSION_WITH_VOLUME_BYTES = 4
_FIRST_VERSION_WITH_CORDONED = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """A version as Kafka ships it, or with ``has_remote_sizes`` as KIP-1187 has it."""

    version: int
    has_remote_sizes: bool = False

    @property
    def is_flexible(self) -> bool:
        return self.version >= FIRST_FLEXIBLE_VERSION

    @property
    def has_error_code(self) -> bool:
        return self.version >= _FIRST_VERSION_WITH_ERROR_CODE

    @property
    def has_volume_bytes(self) -> bool:
        return self.version >= _FIRST_VERSION_WITH_VOLUME_BYTES

    @property
    def has_cordoned(self) -> bool:
        return self.version >= _FIRST_VERSION_WITH_CORDONED and not self.has_remote_sizes


KIP_1187 = Layout(5, has_remote_sizes=True)


LARGEST_READ = 128 * 1024
"""A longer request is not read, because whoever reads it has other work waiting: it is taken for Kafka's own.

It names a hundred topics with three hundred partitions each. Tools ask for all topics, which takes one byte.
"""

_NO_TAGS = b"\0"
_VERSION = Struct(">h")
_VERSION_AT = 2
_PARTITION = Struct(">i")
_SMALLEST_TOPIC = 3

Topics = Sequence[tuple[str, Sequence[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLogDirs:
    """What a client asked for, as far as the form of the answer depends on it.

    ``explain``: it wants to know the reasons too (see ``describe_log_dirs_explained``). ``remote_topics`` then limits
    whose remote sizes it wants; ``None`` is all. ``flag_at`` is where IncludeRemoteInfo stands in the request.
    """

    layout: Layout
    include_remote_info: bool = False
    explain: bool = False
    remote_topics: tuple[str, ...] | None = None
    flag_at: int | None = None


def encode_request(version: int, topics: Mapping[str, Sequence[int]] | None) -> bytes:
    """``None`` asks for every partition; an empty mapping for the volumes' bytes alone."""
    return _encoded(version, None if topics is None else list(topics.items()))


def encode_explained_request(remote_topics: Sequence[str] | None) -> bytes:
    """KIP-1187's request for every partition, with remote information and, from our gateway, reasons."""
    writer = Writer(flexible=True)
    writer.count(None)
    writer.int8(1)
    question = encode_topics(remote_topics)
    if len(question) > LONGEST_LIST_OF_TOPICS:
        question = encode_topics(None)
    writer.raw(with_tag(_NO_TAGS, question))
    return writer.finish()


def _encoded(version: int, topics: Topics | None) -> bytes:
    writer = Writer(flexible=Layout(version).is_flexible)
    writer.count(None if topics is None else len(topics))
    for topic, partitions in topics or ():
        writer.string(topic)
        writer.count(len(partitions))
        for partition in partitions:
            writer.int32(partition)
        writer.no_tags()
    writer.no_tags()
    return writer.finish()


def read_request(payload: bytes | bytearray | memoryview) -> AskedLogDirs:
    """What a request asks for; raises ``WireError`` if it is of no layout that we know."""
    view = memoryview(payload)
    asked = Layout(request_head(view).version)
    if len(view) > LARGEST_READ:
        return AskedLogDirs(layout=asked)
    reader = Reader(view, flexible=asked.is_flexible, position=_body_at(view, asked))
    _skip_topics(reader)
    at = reader.position
    if asked.version >= KIP_1187.version:
        return _read_end_of_version_5(view, at)
    reader.skip_tags()
    if reader.remaining:
        raise Malformed(f"{reader.remaining} bytes behind the end of the request")
    return AskedLogDirs(layout=asked)


def request_for_broker(payload: bytes | bytearray | memoryview, asked: AskedLogDirs, version: int) -> bytes:
    """The same question in Kafka's own layout of ``version``, which is no newer than the one it was asked in."""
    view = memoryview(payload)
    if not Layout(version).is_flexible:
        return _in_old_encoding(view, asked, version)
    changed = bytearray(view)
    if asked.flag_at is not None:
        del changed[asked.flag_at]
    _VERSION.pack_into(changed, _VERSION_AT, version)
    return bytes(changed)


def _read_end_of_version_5(view: memoryview, at: int) -> AskedLogDirs:
    if _are_tags_to_the_end(view, at):
        return AskedLogDirs(layout=Layout(KIP_1187.version))
    if at == len(view) or view[at] not in (0, 1) or not _are_tags_to_the_end(view, at + 1):
        raise Malformed("behind its topics the request is neither Kafka's own version 5 nor KIP-1187's")
    question = find_tag(view[at + 1 :])
    return AskedLogDirs(
        layout=KIP_1187,
        include_remote_info=view[at] == 1,
        explain=question is not None,
        remote_topics=None if question is None else decode_topics(question),
        flag_at=at,
    )


def _are_tags_to_the_end(view: memoryview, at: int) -> bool:
    try:
        return tags_end(view, at) == len(view)
    except WireError:
        return False


def _body_at(view: memoryview, layout: Layout) -> int:
    at = body_start(view, flexible=layout.is_flexible)
    if at is None:
        raise Truncated(len(view) + 1, len(view))
    return at


def _skip_topics(reader: Reader) -> None:
    for _ in range(reader.count(smallest_element=_SMALLEST_TOPIC) or 0):
        reader.string()
        reader.take(reader.count_not_null(smallest_element=_PARTITION.size) * _PARTITION.size)
        reader.skip_tags()


def _in_old_encoding(view: memoryview, asked: AskedLogDirs, version: int) -> bytes:
    """Brokers before 2.6 know neither compact lengths nor tagged fields, in the header as in the body."""
    header = bytearray(view[: _body_at(view, Layout(MIN_VERSION))])
    _VERSION.pack_into(header, _VERSION_AT, version)
    reader = Reader(view, flexible=asked.layout.is_flexible, position=_body_at(view, asked.layout))
    return bytes(header) + _encoded(version, _read_topics(reader))


def _read_topics(reader: Reader) -> Topics | None:
    count = reader.count(smallest_element=_SMALLEST_TOPIC)
    if count is None:
        return None
    topics = []
    for _ in range(count):
        name = reader.string()
        partitions = reader.take(reader.count_not_null(smallest_element=_PARTITION.size) * _PARTITION.size)
        topics.append((name, tuple(partition for (partition,) in _PARTITION.iter_unpack(partitions))))
        reader.skip_tags()
    return topics

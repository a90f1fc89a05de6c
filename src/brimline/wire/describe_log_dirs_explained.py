"""What Brimline's gateway tells Brimline's own client beside KIP-1187's layout: why a size is unknown, and more.

In KIP-1187's layout -1 says that a size is unknown and not why, and there is no place for IsCordoned. A client that
wants to know both says so with a tagged field in its request; the gateway then answers with tagged fields of the same
number. Everybody else neither sends nor gets them, and whoever does not know a tagged field skips it.

===================  =============================================================================================
where                what the field holds
===================  =============================================================================================
request, at its end  whose remote sizes are wanted: a nullable array of topic names, null for all
answer, at its end   records that could not be decoded (int32), and notes: an array of sentences
every log dir        is it cordoned (int8, -1: not known); an array of reasons, by their labels; then for remote and for
                     only-local sizes one byte per partition: a position in that array
===================  =============================================================================================

A field is there only if the sizes were worked out. Without it the client does that itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brimline.model import Reason
from brimline.model.log_dirs import ReasonColumn
from brimline.wire.api_versions import GATEWAY_API_KEY
from brimline.wire.primitives import Malformed, Reader, Writer, tags_end, uvarint_at

TAG = GATEWAY_API_KEY

LONGEST_LIST_OF_TOPICS = 16_384
"""Bytes of names in a request: more than that, and all topics are asked about.

It also keeps the field shorter than its own number, which is what a reader of Kafka's layout takes for its length: so
our request can never be mistaken for Kafka's own (see ``describe_log_dirs_request``).
"""

_NOT_KNOWN = -1
_SMALLEST_STRING = 1
# A reason that only a newer gateway knows.
_UNHEARD_OF = Reason.NO_ANSWER
_BY_LABEL = {reason.label: reason for reason in Reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Of a whole answer."""

    skipped_records: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogDirExplanation:
    """Of one log dir: a reason for every partition, in the order of the answer."""

    is_cordoned: bool | None
    remote_size_reason: ReasonColumn
    only_local_size_reason: ReasonColumn


def encode_topics(topics: Sequence[str] | None) -> bytes:
    writer = Writer(flexible=True)
    _write_strings(writer, topics)
    return writer.finish()


def decode_topics(data: bytes | memoryview) -> tuple[str, ...] | None:
    reader = Reader(data, flexible=True)
    count = reader.count(smallest_element=_SMALLEST_STRING)
    names = None if count is None else tuple(reader.string() for _ in range(count))
    _expect_end(reader)
    return names


def encode_explanation(explanation: Explanation) -> bytes:
    writer = Writer(flexible=True)
    writer.int32(explanation.skipped_records)
    _write_strings(writer, explanation.notes)
    return writer.finish()


def decode_explanation(data: bytes | memoryview) -> Explanation:
    reader = Reader(data, flexible=True)
    skipped = reader.int32()
    notes = _read_strings(reader)
    _expect_end(reader)
    return Explanation(skipped_records=skipped, notes=notes)


def encode_log_dir_explanation(explanation: LogDirExplanation) -> bytes:
    writer = Writer(flexible=True)
    writer.int8(_NOT_KNOWN if explanation.is_cordoned is None else explanation.is_cordoned)
    # A number means nothing outside the process that gave it, a label does.
    _write_strings(writer, [reason.label for reason in Reason])
    positions = np.zeros(256, dtype=np.uint8)
    positions[[int(reason) for reason in Reason]] = np.arange(len(Reason))
    for column in (explanation.remote_size_reason, explanation.only_local_size_reason):
        writer.raw(positions[column].tobytes())
    return writer.finish()


def decode_log_dir_explanation(data: bytes | memoryview, partitions: int) -> LogDirExplanation:
    reader = Reader(data, flexible=True)
    cordoned = reader.int8()
    reasons = np.array([_BY_LABEL.get(label, _UNHEARD_OF) for label in _read_strings(reader)], dtype=np.uint8)
    columns = []
    for _ in range(2):
        positions = np.frombuffer(reader.take(partitions), dtype=np.uint8)
        if partitions and positions.max() >= len(reasons):
            raise Malformed("a reason that is not in the list")
        columns.append(reasons[positions])
    _expect_end(reader)
    return LogDirExplanation(
        is_cordoned=None if cordoned == _NOT_KNOWN else cordoned != 0,
        remote_size_reason=columns[0],
        only_local_size_reason=columns[1],
    )


def find_tag(tags: bytes | memoryview) -> memoryview | None:
    """Our field in a section of tagged fields, if it is there."""
    view = memoryview(tags)
    count, at = uvarint_at(view, 0)
    for _ in range(count):
        tag, at = uvarint_at(view, at)
        size, at = uvarint_at(view, at)
        if tag == TAG:
            return view[at : at + size]
        at += size
    return None


def with_tag(tags: bytes, data: bytes) -> bytes:
    """The section with our field behind those that it has: Kafka counts its tags up from 0."""
    count, at = uvarint_at(memoryview(tags), 0)
    writer = Writer(flexible=True)
    writer.uvarint(count + 1)
    writer.raw(tags[at : tags_end(memoryview(tags), 0)])
    writer.uvarint(TAG)
    writer.uvarint(len(data))
    writer.raw(data)
    return writer.finish()


def _write_strings(writer: Writer, strings: Sequence[str] | None) -> None:
    writer.count(None if strings is None else len(strings))
    for string in strings or ():
        writer.string(string)


def _read_strings(reader: Reader) -> tuple[str, ...]:
    return tuple(reader.string() for _ in range(reader.count(smallest_element=_SMALLEST_STRING) or 0))


def _expect_end(reader: Reader) -> None:
    if reader.remaining:
        raise Malformed(f"{reader.remaining} bytes too many in a tagged field")

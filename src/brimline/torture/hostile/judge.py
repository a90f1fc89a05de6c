"""Is it all right what became of a hostile frame? The same broker, asked without a gateway, is the judge.

- What names nothing fenced has the same fate and the same answer as without a gateway, but for what changes from one
  moment to the next (offsets, times, sizes, ids that a broker invents).
- What names something fenced is never acknowledged there. Its other partitions are answered as without a gateway.
- Nothing is refused by ending a connection that a broker would answer.
"""

from collections.abc import Iterator
from struct import pack, unpack_from
from typing import Any

from kafka.protocol import admin, consumer, metadata, producer, sasl
from kafka.protocol.api_header import ResponseClassRegistry

from brimline.torture.hostile.frames import CLEAR, FENCED, OTHER_WORDS, STILL, name_of
from brimline.torture.hostile.sides import PATIENCE_SECONDS, Fate, FrameKind, Side, asks_for_no_answer, is_deceptive
from brimline.wire import produce
from brimline.wire.describe_log_dirs_request import KIP_1187, read_request
from brimline.wire.primitives import WireError
from brimline.wire.request_header import API_VERSIONS, DESCRIBE_LOG_DIRS, PRODUCE

_READERS = (admin, consumer, metadata, producer, sasl)
"""Imported for the answers that they register."""

_CHANGES = {"throttle_time_ms", "base_offset", "log_append_time_ms", "log_start_offset", "session_id", "member_id"}
_CHANGES |= {"producer_id", "producer_epoch", "high_watermark", "last_stable_offset", "offset", "timestamp", "members"}
_CHANGES |= {"error_message", "message", "current_txn_start_offset", "last_timestamp", "last_sequence", "generation_id"}
_CHANGES |= {"active_producers", "groups", "transaction_states", "start_offset", "end_offset", "current_voters"}
_CHANGES |= {"observers", "leader", "records"}
_WORDS = (FENCED.word, CLEAR.word, STILL.word, *OTHER_WORDS)
_IDS = (FENCED.topic_id, CLEAR.topic_id, STILL.topic_id)
_CHANGES_WITH_OTHERS = {"OffsetCommit", "OffsetFetch", "OffsetDelete", "DeleteGroups", "TxnOffsetCommit"}
_CHANGES_WITH_OTHERS |= {"ElectLeaders"}  # of all partitions it names those that were elected just now
"""Other frames of the attack change what is answered to these. That each is answered, or none, is compared."""
_TIMED_OUT, _REFUSED = 7, 56
_OF_KAFKAJS = 7
"""The one version of Produce that it speaks."""
_OWN = {API_VERSIONS, DESCRIBE_LOG_DIRS}
"""To whose answers the gateway adds something."""


def complaint(frame: bytes, through: Fate, past: Fate) -> str | None:
    """``through`` the gateway and ``past`` it, in the frame's own words. ``None``: all is as it should be."""
    if len(frame) < 12 or is_deceptive(frame):
        is_refused = writes_to_fenced(frame) and through.kind is FrameKind.ENDED
        return None if is_refused or past.kind is through.kind else _other_fate(through, past)
    api_key, version = unpack_from(">hh", frame, 4)
    if writes_to_fenced(frame):
        return _fenced_complaint(frame, version, through, past)
    if api_key == DESCRIBE_LOG_DIRS and (past.kind is FrameKind.ENDED or _asks_for_remote_sizes(frame)):
        return None  # the gateway has versions and a layout that the broker has not
    if through.kind is not past.kind:
        return _other_fate(through, past)
    if through.answer == past.answer or name_of(api_key) in _CHANGES_WITH_OTHERS:
        return None
    ours, theirs = _read(api_key, version, through.answer), _read(api_key, version, past.answer)
    if ours is None or theirs is None:
        return None if theirs is None else f"the gateway's answer cannot be read: {through.answer.hex()}"
    left, right = (sorted(_facts(each, codes_only=api_key in _OWN), key=repr) for each in (ours, theirs))
    if any(path.endswith("error_code") and value == _TIMED_OUT for path, value in left + right):
        return None
    if left == right:
        return None
    return f"{name_of(api_key)} {version}: {_first_difference(left, right)}"


def writes_to_fenced(frame: bytes) -> bool:
    is_produce = len(frame) >= 6 and unpack_from(">h", frame, 4)[0] == PRODUCE
    return is_produce and (FENCED.word.encode() in frame or FENCED.topic_id.bytes in frame)


def _asks_for_remote_sizes(frame: bytes) -> bool:
    """Kafka's own version 5 with one more byte is KIP-1187's; a broker looks at no byte behind what it knows."""
    try:
        return read_request(frame[4:]).layout == KIP_1187
    except WireError:
        return False


def _other_fate(through: Fate, past: Fate) -> str:
    return f"{through.kind.value} through the gateway, {past.kind.value} without it"


def _fenced_complaint(frame: bytes, version: int, through: Fate, past: Fate) -> str | None:
    is_same = _is_same_for_the_twin(frame, version)
    if through.kind is not FrameKind.ANSWERED:
        if not is_same:
            return None
        is_stricter = (
            through.kind is not past.kind and past.kind is FrameKind.ANSWERED and not asks_for_no_answer(frame)
        )
        return _other_fate(through, past) if is_stricter else None
    ours, theirs = _codes(version, through.answer), _codes(version, past.answer) if is_same else None
    if ours is None:
        return f"the gateway's answer cannot be read: {through.answer.hex()}"
    # A broker refuses a whole request for one bad batch. Without the fenced ones the rest of it may be good.
    is_refused_whole = theirs is not None and len(set(theirs.values())) == 1 and 0 not in theirs.values()
    # The gateway does so with what kafkajs may have sent: only version 7 may be
    is_refused_whole |= version == _OF_KAFKAJS and set(ours.values()) == {_REFUSED}
    for (topic, partition), code in ours.items():
        is_fenced = topic in (FENCED.word, FENCED.topic_id)
        if is_fenced and code == 0:
            return f"acknowledged behind the fence: {topic}-{partition}"
        if is_fenced or theirs is None or is_refused_whole:
            continue
        if code != theirs.get((topic, partition)):
            return f"{topic}-{partition}: {code} through the gateway, {theirs.get((topic, partition))} without it"
    if theirs is not None and ours.keys() != theirs.keys():
        return f"other partitions are answered: {sorted(map(str, ours.keys() ^ theirs.keys()))}"
    return None


def _is_same_for_the_twin(frame: bytes, version: int) -> bool:
    """Whether names stand in it as names only: in a number or a length the twin's makes it another request."""
    try:
        index = produce.index_produce(memoryview(frame)[4:], version)
    except WireError:
        return False
    with_parts = [index.parts[span.first_part] for span in index.topics if span.first_part < span.parts_end]
    named = sum(part.topic in _WORDS or part.topic_id in _IDS for part in with_parts)
    tokens = (*(word.encode() for word in _WORDS), *(topic_id.bytes for topic_id in _IDS))
    return sum(map(frame.count, tokens)) == named + (index.transactional_id in _WORDS)


def _codes(version: int, answer: bytes) -> dict[tuple[object, int], int] | None:
    read = _read(PRODUCE, version, answer)
    if read is None:
        return None
    return {
        (topic.topic_id if version >= 13 else topic.name, partition.index): partition.error_code
        for topic in read.responses
        for partition in topic.partition_responses
    }


def _read(api_key: int, version: int, answer: bytes) -> Any:  # kafka-python is not typed
    """``None`` if the client library cannot read it."""
    reader = ResponseClassRegistry._response_class_registry.get(api_key)
    if reader is None or not 0 <= version <= reader.max_version:
        return None
    try:
        return reader.decode(b"\0\0\0\0" + answer, version=version, header=True)
    except Exception:  # noqa: BLE001  on damaged input it raises whatever its fields raise
        return None


def _facts(value: Any, *, codes_only: bool, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, list | tuple):
        for position, each in enumerate(value):
            yield from _facts(each, codes_only=codes_only, path=f"{path}[{position}]")
    elif hasattr(value, "_struct"):
        for name in value._struct.fields:
            if name not in _CHANGES:
                yield from _facts(getattr(value, name, None), codes_only=codes_only, path=f"{path}.{name}")
    elif not codes_only or path == ".error_code":
        yield path, value


def _first_difference(left: list[tuple[str, object]], right: list[tuple[str, object]]) -> str:
    for ours, theirs in zip(left, right, strict=False):
        if ours != theirs:
            return f"{ours[0]} is {ours[1]} through the gateway, {theirs[0]} is {theirs[1]} without it"
    return f"{len(left)} facts through the gateway, {len(right)} without it"


async def offered(side: Side) -> dict[int, range]:
    """API → versions, by the broker's own word."""
    asked = pack(">ihhih", 10, API_VERSIONS, 0, 0, -1)
    (fate,) = await side.fates([asked], PATIENCE_SECONDS)
    return {
        api.api_key: range(api.min_version, api.max_version + 1) for api in _read(API_VERSIONS, 0, fate.answer).api_keys
    }

"""Hostile frames by a seed: requests of every API and version that a broker offers, and what damage makes of them.

The ways to damage a request go from those that a broker hardly notices to those that end every connection.

A frame names topics by words and ids of its own (``Name``). Whoever sends it puts in the real ones: so one seed makes
the same frames for every cluster, and a frame that did harm can be sent again to another.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from struct import pack
from typing import Any, NamedTuple
from uuid import UUID

from kafka.protocol.schemas import load_json, resources

from brimline.torture.hostile.produce import (
    Partition,
    PlainRequest,
    PlainTopic,
    batch,
    encoded_request,
    odd_requests,
)
from brimline.wire.primitives import Writer
from brimline.wire.request_header import PRODUCE

_INTERESTING = (b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0")
_TAGS = tuple(map(bytes.fromhex, ("01050178", "020501780500", "ffffffff0f", "010000", "0105ffffffff0f")))
_VERSIONS = (-1, 0, 1, 2, 3, 8, 9, 12, 13, 14, 15, 31, 32767)
_API_KEYS = (-1, 0, 0, 0, 1, 3, 18, 35, 36, 60, 28271, 32767)
_HEADER = 8
"""API key, version and correlation id."""
_HEADER_SPARED = 0.9
WORST = 11


def _damage(payload: bytearray, how: int, at: int, randomness: random.Random) -> None:
    """``how``: from 0 to ``WORST``, in the order of how likely a connection survives it."""
    match how:
        case 0:  # bytes behind the end
            payload += randomness.choice((b"\0", b"\xff", randomness.randbytes(randomness.randrange(1, 40))))
        case 1 if at < len(payload) and payload[at] < 0x80:  # the same number in five bytes, with bits that fit nowhere
            payload[at : at + 1] = bytes([payload[at] | 0x80, 0x80, 0x80, 0x80, randomness.choice((0, 0, 0x70))])
        case 2 if payload[-1:] == b"\0":  # tagged fields at the end
            payload[-1:] = randomness.choice(_TAGS)
        case 3 if at < len(payload):
            payload[at] ^= 1 << randomness.randrange(8)
        case 4:
            payload[at : at + 1] = randomness.randbytes(1)
        case 5 if at < len(payload):  # a length that is a little wrong
            payload[at] = (payload[at] + randomness.choice((-2, -1, 1, 2))) % 256
        case 6:  # a length that is very wrong
            value = randomness.choice(_INTERESTING)
            payload[at : at + len(value)] = value
        case 7:
            payload[2:4] = pack(">h", randomness.choice(_VERSIONS))
        case 8:
            payload[0:2] = pack(">h", randomness.choice(_API_KEYS))
        case 9:  # fields that come twice
            payload[at:at] = payload[at : at + randomness.randrange(1, 100)]
        case 10:
            del payload[at : at + randomness.randrange(1, 9)]
        case 11:
            del payload[at:]


def mutate(payload: bytearray, randomness: random.Random) -> int:
    """Damage it in one to four ways; returns the worst."""
    ways = [randomness.randrange(WORST + 1) for _ in range(randomness.choice((1, 1, 1, 2, 4)))]
    for how in ways:
        # The header is spared mostly: a request of an unknown API tells little.
        spared = min(_HEADER, len(payload)) if randomness.random() < _HEADER_SPARED else 0
        _damage(payload, how, randomness.randrange(spared, len(payload) + 1), randomness)
    return max(ways)


def mutated(whole: bytes, randomness: random.Random) -> bytes:
    """A frame whose length is right: the damage is inside."""
    payload = bytearray(whole[4:])
    mutate(payload, randomness)
    return pack(">i", len(payload)) + payload


BATCH_FRAMES = 64
CORRELATION = slice(8, 12)
"""Where a frame's correlation id is: its position in its batch, so that answers find their questions."""


class Name(NamedTuple):
    """A topic of the attack: what frames call it, and how it is found in an answer."""

    word: str
    topic_id: UUID


FENCED = Name("fence-a", UUID(bytes=b"fenced-topic-id!"))
CLEAR = Name("clear-a", UUID(bytes=b"clear-topics-id!"))
STILL = Name("still-a", UUID(bytes=b"still-topics-id!"))
"""Nobody writes to it: what reads of it say stays the same."""
OTHER_WORDS = GROUP, TRANSACTION = "group-a", "trans-a"
_DECOY = "decoy-a"
"""For requests that would change the cluster: there is no such topic, group or user."""

_READS = {"Fetch", "ListOffsets", "Metadata", "OffsetForLeaderEpoch", "DescribeProducers", "DescribeTopicPartitions"}
_READS |= {"DescribeLogDirs", "OffsetCommit", "OffsetFetch", "OffsetDelete", "TxnOffsetCommit", "DescribeConfigs"}

_VALUES: Mapping[str, Any] = {
    "ClientSoftwareName": "name",
    "ClientSoftwareVersion": "1.0",
    "Mechanism": "PLAIN",
    "ReplicaId": -1,
    "Timestamp": -1,
    "MaxNumOffsets": 1,
    "PartitionMaxBytes": 1 << 20,
    "ResourceType": 2,
    "ResponsePartitionLimit": 100,
    "TimeoutMs": 1000,
}
"""For fields whose default a broker would refuse before it looks at anything else."""


class Api(NamedTuple):
    key: int
    version: int


# Seeds ---------------------------------------------------------------------------------------------------------------


@cache
def schemas() -> Mapping[int, Mapping[str, Any]]:
    """API key → Kafka's own description of the request, as far as the client library has it."""
    found = (path.name.removesuffix(".json") for path in files(resources).iterdir())
    names = sorted(name for name in found if name.endswith("Request"))
    return {schema["apiKey"]: schema for schema in map(load_json, names)}


def name_of(api_key: int) -> str:
    schema = schemas().get(api_key)
    return str(api_key) if schema is None else schema["name"].removesuffix("Request")


def seeds(offered: Mapping[int, range]) -> dict[Api, list[bytes]]:
    """Payloads of every API and version. Of those that nobody here can write there is the header alone."""
    found: dict[Api, list[bytes]] = {}
    for key, versions in offered.items():
        for version in versions:
            api = Api(key, version)
            if key == PRODUCE:
                found[api] = list(_produce_seeds(version))
            elif key in schemas() and version in _range(schemas()[key]["validVersions"]):
                found[api] = [_request(schemas()[key], version, topic) for topic in (STILL, FENCED)]
            else:
                found[api] = []
    return found


def _produce_seeds(version: int) -> Iterator[bytes]:
    plain, idempotent = batch(), batch(producer_id=77, producer_epoch=0, base_sequence=0)
    odd = batch(producer_id=78, producer_epoch=0, base_sequence=5, transactional=True), batch(control=True), None
    for acks in (-1, 1, 0):
        for records in (plain, plain, idempotent, *odd):
            fenced = [PlainTopic(FENCED.word, FENCED.topic_id, [Partition(0, records), Partition(1, plain)])]
            clear = [PlainTopic(CLEAR.word, CLEAR.topic_id, [Partition(0, records)])]
            for topics in (fenced, clear, clear + fenced):
                yield encoded_request(PlainRequest(topics=topics, acks=acks), version)
        for name in (FENCED, CLEAR):
            for request in odd_requests(name.word, name.topic_id, plain, range(version, version + 1), acks=acks):
                yield request.payload


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), 1 << 15)
    return range(0) if text == "none" else range(int(first), int(last or first) + 1)


def _request(schema: Mapping[str, Any], version: int, topic: Name) -> bytes:
    """The shortest that has one of everything."""
    writer = Writer(flexible=version in _range(schema["flexibleVersions"]))
    writer.raw(pack(">hhih", schema["apiKey"], version, 0, 1) + b"c")
    writer.no_tags()
    word = topic if schema["name"].removesuffix("Request") in _READS else Name(_DECOY, UUID(int=1))
    _write_fields(writer, schema["fields"], version, word)
    return writer.finish()


def _write_fields(writer: Writer, fields: Sequence[Mapping[str, Any]], version: int, topic: Name) -> None:
    for field in fields:
        if version not in _range(field["versions"]) or version in _range(field.get("taggedVersions", "none")):
            continue
        kind = field["type"]
        if kind.startswith("[]"):
            writer.count(1)
        if "fields" not in field:
            _write_value(writer, field, kind.removeprefix("[]"), topic)
        elif kind.startswith("[]"):
            _write_fields(writer, field["fields"], version, topic)
        else:
            writer.int8(-1)  # one struct alone is always one that may be missing
    writer.no_tags()


def _write_value(writer: Writer, field: Mapping[str, Any], kind: str, topic: Name) -> None:
    value = _VALUES.get(field["name"], field.get("default", 0))
    if kind == "string":
        words = {"topicName": topic.word, "groupId": GROUP, "transactionalId": TRANSACTION}
        text = value if isinstance(value, str) and value not in ("null", "") else _DECOY
        writer.string(words.get(field.get("entityType", ""), text))
    elif kind == "uuid":
        writer.raw(topic.topic_id.bytes)
    elif kind == "bytes":
        writer.count(4)
        writer.raw(b"\0\0\0\0")
    elif kind == "float64":
        writer.raw(pack(">d", 1.0))
    elif kind == "bool":
        writer.int8(value == "true")
    else:
        number = int(str(value), 0) if str(value)[:1] in "-0123456789" else 0
        {"int8": writer.int8, "int16": writer.int16, "int32": writer.int32, "int64": writer.int64}[kind](number)


# Frames --------------------------------------------------------------------------------------------------------------


class Frames:
    """All frames of one seed, in batches. A batch is the same however many others were made before."""

    def __init__(self, offered: Mapping[int, range], seed: int, only: str | None = None) -> None:
        found = seeds(offered)
        wanted = [api for api in found if only is None or only.lower() in (name_of(api.key).lower(), str(api.key))]
        self._produce = [api for api in wanted if api.key == PRODUCE]
        self._others = [api for api in wanted if api.key != PRODUCE]
        self._seeds = found
        self._seed = seed

    @property
    def is_empty(self) -> bool:
        return not (self._produce or self._others)

    def batch(self, number: int) -> list[bytes]:
        """The least harmful first, so that those behind them are read, too."""
        randomness = random.Random(f"{self._seed}/{number}")
        made = sorted((self._frame(randomness) for _ in range(BATCH_FRAMES)), key=lambda each: each[0])
        return [_numbered(frame, position) for position, (_, frame) in enumerate(made)]

    def _frame(self, randomness: random.Random) -> tuple[int, bytes]:
        """Half of them are Produce: that is where a fence is. A few are whole, and a few lie about their length."""
        apis = self._produce if self._produce and (not self._others or randomness.random() < 0.5) else self._others
        api = randomness.choice(apis)
        known = self._seeds[api]
        risk, fate = WORST + 1, randomness.random()
        if known:
            payload = bytearray(randomness.choice(known))
            risk = mutate(payload, randomness) if fate < 0.95 else -1
        else:
            tags = b"\0" * randomness.randrange(2)
            payload = bytearray(pack(">hhih", api.key, api.version, 0, 1) + b"c" + tags)
            payload += randomness.randbytes(randomness.randrange(60))
        length = len(payload)
        if fate > 0.999:
            length, risk = randomness.choice((length + 1, length - 1, -1, 0, 1 << 30, 7)), WORST + 2
        return risk, pack(">i", length) + bytes(payload)


def _numbered(frame: bytes, position: int) -> bytes:
    if len(frame) < CORRELATION.stop:
        return frame
    return frame[: CORRELATION.start] + pack(">i", position) + frame[CORRELATION.stop :]

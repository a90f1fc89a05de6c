"""Produce requests that nobody writes and every broker takes: what a reader that is stricter than Kafka would miss."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from brimline.torture.hostile.produce import FIRST_VERSION_WITH_TOPIC_ID, VERSIONS, is_flexible

MINUS_ONE = bytes.fromhex("ffffffff0f")
"""A variable-length number: Kafka's unsigned ones have a sign after all."""
SMALLEST = bytes.fromhex("8080808008")


@dataclass(frozen=True)
class Odd:
    name: str
    version: int
    payload: bytes

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"


def odd_requests(
    topic: str, topic_id: UUID, records: bytes, versions: range = VERSIONS, *, acks: int = -1
) -> Iterator[Odd]:
    """Each with these records for partition 0 of the topic."""
    for version in versions:
        for name, payload in _odd(_Writer(version, topic, topic_id, records, acks)):
            yield Odd(name, version, payload)


def _odd(writer: "_Writer") -> Iterator[tuple[str, bytes]]:
    yield "one byte behind it", writer.request() + b"\0"
    yield "a thousand bytes behind it", writer.request() + b"\xff" * 1000
    for length in (-2, -32768):
        yield f"a client id of {length} bytes", writer.request(client_id=struct.pack(">h", length))
    yield "the partition twice", writer.request(topics=[writer.topic([writer.partition(), writer.partition()])])
    yield "the topic twice", writer.request(topics=[writer.topic([writer.partition()])] * 2)
    if writer.version >= 3 and not writer.flexible:
        yield "a transactional id of -2 bytes", writer.request(transactional_id=b"\xff\xfe")
    if writer.flexible:
        yield "a transactional id of -2 bytes", writer.request(transactional_id=MINUS_ONE)
        yield "lengths in five bytes", writer.request(count=_five_bytes(2))
        yield "a length with lost bits", writer.request(count=_five_bytes(2, lost=0x70))
        for tags in (MINUS_ONE, SMALLEST, b"\x02\x05\x01x\x05\x00"):
            yield f"tagged fields {tags.hex()} in the header", writer.request(header_tags=tags)
            yield f"tagged fields {tags.hex()} at the end", writer.request(tags=tags)
        yield "-1 tags of the topic", writer.request(topics=[writer.topic([writer.partition()], tags=MINUS_ONE)])
        yield "-1 tags of the partition", writer.request(topics=[writer.topic([writer.partition(tags=MINUS_ONE)])])


def _five_bytes(number: int, lost: int = 0) -> bytes:
    """``lost``: bits of the fifth byte that do not fit into 32."""
    return bytes([number | 0x80, 0x80, 0x80, 0x80, lost])


class _Writer:
    def __init__(self, version: int, topic: str, topic_id: UUID, records: bytes, acks: int) -> None:
        self.version = version
        self.flexible = is_flexible(version)
        self._key = topic_id.bytes if version >= FIRST_VERSION_WITH_TOPIC_ID else self._text(topic)
        self._records = records
        self._acks = acks

    def request(
        self,
        *,
        client_id: bytes = b"\0\1c",
        header_tags: bytes = b"\0",
        transactional_id: bytes | None = None,
        count: bytes | None = None,
        topics: list[bytes] | None = None,
        tags: bytes = b"\0",
    ) -> bytes:
        named = [self.topic([self.partition()])] if topics is None else topics
        null = b"\0" if self.flexible else b"\xff\xff"
        return b"".join(
            (
                struct.pack(">hhi", 0, self.version, 7),
                client_id,
                header_tags if self.flexible else b"",
                (null if transactional_id is None else transactional_id) if self.version >= 3 else b"",
                struct.pack(">hi", self._acks, 30_000),
                self._count(len(named)) if count is None else count,
                *named,
                tags if self.flexible else b"",
            )
        )

    def topic(self, partitions: list[bytes], tags: bytes = b"\0") -> bytes:
        return self._key + self._count(len(partitions)) + b"".join(partitions) + (tags if self.flexible else b"")

    def partition(self, tags: bytes = b"\0") -> bytes:
        records = self._count(len(self._records)) + self._records
        return struct.pack(">i", 0) + records + (tags if self.flexible else b"")

    def _count(self, number: int) -> bytes:
        return _varint(number + 1) if self.flexible else struct.pack(">i", number)

    def _text(self, text: str) -> bytes:
        encoded = text.encode()
        return (_varint(len(encoded) + 1) if self.flexible else struct.pack(">h", len(encoded))) + encoded


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])

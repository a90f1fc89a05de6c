"""One batch of hostile frames on its way: through a gateway, and past it to the same broker. What became of each?

Answers find their frames by correlation ids. A connection that ends was ended by the first frame without an answer,
because brokers answer in order; the rest goes on a new one. So a batch needs no more connections than it has killers.
"""

import asyncio
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from struct import pack, unpack_from
from typing import NamedTuple

from brimline.torture.hostile.frames import CORRELATION
from brimline.wire import produce
from brimline.wire.primitives import WireError
from brimline.wire.request_header import PRODUCE

SILENCE_SECONDS = 1.5
"""Without a byte; then nothing more is expected of a connection. A frame that matters is tried again alone."""
PATIENCE_SECONDS = 15.0
_LARGEST_WINDOW = 32
NO_LINGERING = pack("ii", 1, 0)
_PROBE = 0x70_00_00_00
"""Above the correlation ids of frames: ApiVersions, to know that what has no answer was taken."""


class FrameKind(Enum):
    ANSWERED = "answered"
    UNANSWERED = "taken without an answer"
    ENDED = "connection ended"
    SILENT = "silence"


class Fate(NamedTuple):
    kind: FrameKind
    answer: bytes = b""
    """Behind the correlation id."""


@dataclass(slots=True)
class Side:
    """A way to the broker, and what the words of a frame are called there."""

    host: str
    port: int
    names: Mapping[bytes, bytes]
    meanings: Mapping[bytes, bytes]
    """What is meant by a name in an answer, whichever side it belongs to."""
    connections: int = 0
    _there: "re.Pattern[bytes]" = field(init=False)
    _back: "re.Pattern[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        self._there = re.compile(b"|".join(map(re.escape, self.names)))
        self._back = re.compile(b"|".join(map(re.escape, self.meanings)))

    def translated(self, frame: bytes) -> bytes:
        return self._there.sub(lambda found: self.names[found[0]], frame)

    def understood(self, fate: "Fate") -> "Fate":
        return fate._replace(answer=self._back.sub(lambda found: self.meanings[found[0]], fate.answer))

    async def fates(
        self, frames: Sequence[bytes], silence: float = SILENCE_SECONDS, *, names_of: "Side | None" = None
    ) -> list[Fate]:
        """What became of each, in order. ``names_of``: with the names of another side."""
        sent = [(names_of or self).translated(frame) for frame in frames]
        found: list[Fate] = []
        window = _LARGEST_WINDOW
        while len(found) < len(sent):
            reader, writer = await asyncio.open_connection(self.host, self.port)
            self.connections += 1
            conversation = _Conversation(reader, writer, silence)
            lives = True
            while lives and len(found) < len(sent):
                chunk = sent[len(found) : len(found) + window]
                if any(map(is_deceptive, chunk)):
                    chunk = chunk[:1]
                lives = await conversation.ask(chunk, found)
                window = min(2 * window, _LARGEST_WINDOW) if lives else max(window // 2, 1)
            # Not a word more: an ordinary end would leave the port waiting for a minute.
            with suppress(OSError):  # the other side was quicker, and asyncio has closed it
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
            writer.transport.abort()
        return [self.understood(fate) if fate.answer else fate for fate in found]


class _Conversation:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: float) -> None:
        self._reader = reader
        self._writer = writer
        self._silence = silence
        self._received = bytearray()

    async def ask(self, chunk: Sequence[bytes], found: list[Fate]) -> bool:
        """Adds the fates of these, and of none behind one that ended it; whether the connection lives."""
        first = len(found)
        probe = asks_for_no_answer(chunk[-1])
        self._writer.write(b"".join(chunk) + (_probe() if probe else b""))
        numbers = [unpack_from(">i", frame, CORRELATION.start)[0] if len(frame) > 11 else -1 for frame in chunk]
        while len(found) < first + len(chunk) or probe:
            answer = await self._next_answer()
            if isinstance(answer, FrameKind):
                if len(found) < first + len(chunk):
                    found.append(Fate(answer))
                return False
            number = unpack_from(">i", answer)[0]
            waiting = numbers[len(found) - first :]
            if number == _PROBE:
                found += [Fate(FrameKind.UNANSWERED)] * len(waiting)
                probe = False
            elif number in waiting:
                found += [Fate(FrameKind.UNANSWERED)] * waiting.index(number)
                found.append(Fate(FrameKind.ANSWERED, answer[4:]))
            else:
                found.append(Fate(FrameKind.ANSWERED, b"an answer to nothing that was asked: " + answer))
                return False
        return True

    async def _next_answer(self) -> bytes | FrameKind:
        received = self._received
        while len(received) < 4 or len(received) < 4 + unpack_from(">i", received)[0]:
            try:
                more = await asyncio.wait_for(self._reader.read(1 << 16), self._silence)
            except TimeoutError:
                return FrameKind.SILENT
            except ConnectionError:
                return FrameKind.ENDED
            if not more:
                return FrameKind.ENDED
            received += more
        end = 4 + unpack_from(">i", received)[0]
        answer = bytes(received[4:end])
        del received[:end]
        return answer


def is_deceptive(frame: bytes) -> bool:
    """Its length is not its own: what comes behind it would be taken for a part of it."""
    return len(frame) <= CORRELATION.stop or unpack_from(">i", frame)[0] != len(frame) - 4


def asks_for_no_answer(frame: bytes) -> bool:
    """Produce with acks=0, as far as that can be told."""
    if len(frame) < CORRELATION.stop or unpack_from(">h", frame, 4)[0] != PRODUCE:
        return False
    try:
        return produce.read_acks(memoryview(frame)[4:], unpack_from(">h", frame, 6)[0]) == 0
    except WireError:
        return False


def _probe() -> bytes:
    payload = pack(">hhih", 18, 0, _PROBE, -1)
    return pack(">i", len(payload)) + payload

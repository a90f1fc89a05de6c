"""An attack on a pretended broker: everything is counted, a difference is a violation, and a leak has its culprits."""

import asyncio
from dataclasses import dataclass, field
from struct import pack, unpack_from
from types import SimpleNamespace
from typing import Any

from brimline.torture.hostile.attack import Attacker, AttackTally, culprits
from brimline.torture.hostile.frames import BATCH_FRAMES, FENCED, Frames
from brimline.torture.hostile.sides import Side

OFFERED = {0: range(7, 10), 3: range(13), 17: range(2)}
WORDS = {FENCED.word.encode(): FENCED.word.encode()}


@dataclass
class Pretended:
    """Ends a connection whose Produce names what is fenced, and echoes the rest."""

    leaks: bool = False
    refuses: bytes = b"none"
    """Requests that begin so end their connections, too."""
    stored: dict[str, int] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (length,) = unpack_from(">i", await reader.readexactly(4))
                if not 8 <= length < 1 << 20:
                    break
                payload = await reader.readexactly(length)
                if payload[:2] == b"\0\0" and FENCED.word.encode() in payload:
                    if self.leaks and payload.endswith(b"\0\xff"):
                        self.stored["log"] = self.stored.get("log", 0) + 1
                    break
                if payload.startswith(self.refuses):
                    break
                writer.write(pack(">i", length - 4) + payload[4:])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def attacked(gateway: Pretended, broker: Pretended, batches: int) -> tuple[AttackTally, list[tuple[str, bytes]]]:
    async def go() -> tuple[AttackTally, Any]:
        sides = []
        for each in (gateway, broker):
            server = await asyncio.start_server(each.serve, "127.0.0.1", 0)
            sides.append(Side("127.0.0.1", server.sockets[0].getsockname()[1], names=WORDS, meanings=WORDS))
        here: Any = SimpleNamespace(through=sides[0], past=sides[1], fenced_files=lambda: dict(gateway.stored))
        frames = Frames(OFFERED, seed=1)
        tally = await Attacker(here, frames).attack(range(batches))
        # Its own loop, as the command has none then.
        found = await asyncio.to_thread(lambda: list(culprits(here, frames, tally)))
        return tally, found

    return asyncio.run(go())


def test_every_frame_is_counted_and_equal_fates_are_no_violation() -> None:
    tally, found = attacked(Pretended(), Pretended(), 20)

    assert tally.frames == 20 * BATCH_FRAMES == sum(tally.fates.values()) == sum(tally.apis.values())
    assert tally.violations == found == []
    assert tally.connections > 20


def test_another_fate_is_a_violation_with_its_frame() -> None:
    tally, _ = attacked(Pretended(), Pretended(refuses=b"\0\3\0\5"), 5)

    assert tally.violations
    assert all(frame[4:8] == b"\0\3\0\5" for _, frame in tally.violations)


def test_what_was_stored_behind_the_fence_has_its_culprits() -> None:
    tally, found = attacked(Pretended(leaks=True), Pretended(), 20)

    assert tally.grown
    *culprit_frames, (sentence, no_frame) = found
    assert culprit_frames
    assert all(FENCED.word.encode() in frame and frame.endswith(b"\0\xff") for _, frame in culprit_frames)
    assert sentence.startswith("something was stored")
    assert no_frame == b""

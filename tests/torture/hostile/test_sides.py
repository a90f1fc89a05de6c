"""Which frame ended a connection, which was never answered, which needs none: told apart by a pretended broker."""

import asyncio
from struct import pack, unpack_from

import pytest

from brimline.torture.hostile.produce import Partition, PlainRequest, PlainTopic, encoded_request
from brimline.torture.hostile.sides import Fate, FrameKind, Side

ANSWERS, ENDS, IS_SILENT = 3, 99, 98


async def pretended_broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            (length,) = unpack_from(">i", await reader.readexactly(4))
            payload = await reader.readexactly(length)
            (api_key,) = unpack_from(">h", payload)
            if api_key == ENDS:
                break
            if api_key == IS_SILENT:
                await reader.read()
            if api_key != 0:  # Produce is without acks here
                writer.write(pack(">i", 4 + len(payload[8:])) + payload[4:])
    except asyncio.IncompleteReadError:
        pass
    finally:
        writer.close()


def frame(api_key: int, position: int, rest: bytes = b"\xff\xff") -> bytes:
    return pack(">ihhi", 8 + len(rest), api_key, 0, position) + rest


def without_acks(position: int) -> bytes:
    payload = encoded_request(PlainRequest(topics=[PlainTopic("t", None, [Partition(0, b"x")])], acks=0), 7)
    return pack(">i", len(payload)) + payload[:4] + pack(">i", position) + payload[8:]


def fates(*frames: bytes) -> tuple[list[Fate], int]:
    async def all_of_them() -> tuple[list[Fate], int]:
        async with await asyncio.start_server(pretended_broker, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            side = Side("127.0.0.1", port, names={b"word-a": b"word-b"}, meanings={b"word-b": b"word-a"})
            found = await side.fates(frames, silence=0.5)
            return found, side.connections

    return asyncio.run(all_of_them())


def test_all_are_answered_on_one_connection() -> None:
    found, connections = fates(*(frame(ANSWERS, position) for position in range(100)))

    assert {fate.kind for fate in found} == {FrameKind.ANSWERED}
    assert connections == 1


@pytest.mark.parametrize(("bad", "kind"), [(ENDS, FrameKind.ENDED), (IS_SILENT, FrameKind.SILENT)])
@pytest.mark.parametrize("position", [0, 3, 9])
def test_the_frame_that_did_it_is_found_and_the_others_go_on(bad: int, kind: FrameKind, position: int) -> None:
    found, connections = fates(*(frame(bad if each == position else ANSWERS, each) for each in range(10)))

    assert [fate.kind for fate in found] == [kind if each == position else FrameKind.ANSWERED for each in range(10)]
    assert connections == (1 if position == 9 else 2)


@pytest.mark.parametrize("position", [0, 3, 9])
def test_what_needs_no_answer_is_not_waited_for(position: int) -> None:
    found, connections = fates(
        *(without_acks(each) if each == position else frame(ANSWERS, each) for each in range(10))
    )

    assert [fate.kind for fate in found].index(FrameKind.UNANSWERED) == position
    assert sum(fate.kind is FrameKind.ANSWERED for fate in found) == 9
    assert connections == 1


def test_names_are_the_sides_own_and_answers_are_told_in_the_frames_words() -> None:
    ((fate,), _) = fates(frame(ANSWERS, 0, b"word-a!"))

    assert fate == Fate(FrameKind.ANSWERED, b"word-a!")


def test_a_frame_that_lies_about_its_length_does_not_eat_the_next() -> None:
    liar = pack(">i", 1000) + frame(ANSWERS, 1)[4:]

    found, _ = fates(frame(ANSWERS, 0), liar, frame(ANSWERS, 2))

    assert [fate.kind for fate in found] == [FrameKind.ANSWERED, FrameKind.SILENT, FrameKind.ANSWERED]

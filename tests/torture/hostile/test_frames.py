"""Hostile frames: the same for the same seed, of every API and version, and valid before they are damaged."""

import random
from struct import unpack_from

import pytest
from kafka.protocol import admin, consumer, metadata, producer, sasl

from brimline.torture.hostile.frames import BATCH_FRAMES, CLEAR, FENCED, Api, Frames, mutated, name_of, schemas, seeds
from brimline.torture.hostile.sides import asks_for_no_answer, is_deceptive

OFFERED = {0: range(3, 14), 1: range(4, 19), 3: range(14), 17: range(2), 18: range(5), 35: range(1, 6), 68: range(2)}


def reader_of(api_key: int) -> type:
    name = f"{name_of(api_key)}Request"
    found: type = next(
        getattr(room, name) for room in (admin, consumer, metadata, producer, sasl) if hasattr(room, name)
    )
    return found


@pytest.mark.parametrize("api_key", schemas())
def test_a_seed_is_a_valid_request(api_key: int) -> None:
    """The client library, which has its own writer, reads them."""
    first, _, last = schemas()[api_key]["validVersions"].partition("-")
    for api, payloads in seeds({api_key: range(int(first), int(last or first) + 1)}).items():
        assert payloads
        for payload in payloads[:6]:
            assert unpack_from(">hh", payload) == api
            reader_of(api_key).decode(payload, version=api.version, header=True)  # type: ignore[attr-defined]


def test_an_api_that_nobody_here_can_write_has_its_header_alone() -> None:
    assert seeds(OFFERED)[Api(68, 0)] == []


def test_the_same_seed_makes_the_same_frames() -> None:
    one, same, other = (Frames(OFFERED, seed) for seed in (1, 1, 2))
    same.batch(7)

    assert one.batch(8) == same.batch(8)
    assert one.batch(8) != other.batch(8)


def test_frames_are_of_every_api_and_version_and_find_their_answers() -> None:
    batches = [Frames(OFFERED, 1).batch(number) for number in range(50)]

    heads = {unpack_from(">hh", frame, 4) for batch in batches for frame in batch if len(frame) >= 12}
    assert {(key, version) for key, versions in OFFERED.items() for version in versions} <= heads
    for batch in batches:
        assert len(batch) == BATCH_FRAMES
        numbers = [unpack_from(">i", frame, 8)[0] if len(frame) >= 12 else None for frame in batch]
        assert all(number in (None, position) for position, number in enumerate(numbers))


def test_only_one_api() -> None:
    frames = Frames(OFFERED, 1, only="saslhandshake")

    assert sum(unpack_from(">h", frame, 4)[0] == 17 for frame in frames.batch(1) if len(frame) >= 12) > BATCH_FRAMES / 2
    assert Frames(OFFERED, 1, only="nothing").is_empty


def test_every_way_of_damage_leaves_a_frame_whose_length_is_right() -> None:
    randomness = random.Random(1)
    whole = Frames(OFFERED, 1, only="Produce").batch(1)[0]

    for _ in range(1000):
        damaged = mutated(whole, randomness)
        assert unpack_from(">i", damaged)[0] == len(damaged) - 4


def test_half_of_the_produce_requests_name_what_is_fenced() -> None:
    payloads = seeds(OFFERED)[Api(0, 9)]

    assert any(FENCED.word.encode() in payload for payload in payloads)
    assert any(FENCED.word.encode() not in payload and CLEAR.word.encode() in payload for payload in payloads)
    assert any(asks_for_no_answer(b"\0\0\0\0" + payload) for payload in payloads)


@pytest.mark.parametrize(
    ("frame", "deceptive"),
    [
        (bytes.fromhex("0000000a001200000000000effff"), False),
        (bytes.fromhex("0000000b001200000000000effff"), True),
        (b"\0\0\0\1\0", True),
    ],
)
def test_a_frame_that_lies_about_its_length_goes_alone(frame: bytes, *, deceptive: bool) -> None:
    assert is_deceptive(frame) == deceptive

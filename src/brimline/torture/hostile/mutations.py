"""Ways to damage a request: from those that a broker hardly notices to those that end every connection."""

import random
from struct import pack

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

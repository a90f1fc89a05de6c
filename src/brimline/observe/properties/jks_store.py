"""Java's own key store format, JKS: the private key and its certificates, without a JVM.

The format is as old as Java and does not change. All numbers are big-endian, texts have two bytes of length::

    FEEDFEED  version  number of entries
    entry: tag  alias  time, then for tag 1 (private key):  length + EncryptedPrivateKeyInfo,  chain (leaf first)
                                 for tag 2 (trusted):       one certificate
    SHA-1 of (password, "Mighty Aphrodite", everything before)

Passwords count as UTF-16. A key is protected by Sun's own scheme: salt, key XOR a stream of SHA-1 sums that begins with
the salt, and a SHA-1 sum of the key that shows whether the password was right.
"""

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
_WHITENER = b"Mighty Aphrodite"
_SUM = hashlib.sha1().digest_size
_KEY_ENTRY, _TRUSTED_ENTRY = 1, 2
_SUN_KEY_PROTECTOR = bytes.fromhex("06 0a 2b 06 01 04 01 2a 02 11 01 01".replace(" ", ""))
_SEQUENCE, _OCTET_STRING = 0x30, 0x04


@dataclass(frozen=True, slots=True, kw_only=True)
class JksKey:
    """``private_key`` is PKCS #8, ``chain`` X.509, the leaf first; all DER."""

    alias: str
    private_key: bytes = field(repr=False)
    chain: tuple[bytes, ...]


def read_jks(data: bytes, *, store_password: str | None, key_password: str) -> list[JksKey]:
    """The private keys in a store; ``ValueError`` says why it cannot be read. Without a store password nobody can tell
    whether it was tampered with, which Java accepts too."""
    entries = _opened(data, store_password, "ssl.keystore.password")
    try:
        return [
            JksKey(alias=entry.alias, private_key=_unprotected(entry.protected, key_password), chain=entry.chain)
            for entry in entries
            if entry.protected is not None
        ]
    except (struct.error, IndexError) as damage:
        raise ValueError("it is damaged") from damage


def read_trusted_jks(data: bytes, store_password: str | None) -> list[bytes]:
    """Whom Java trusts by this store: its trusted certificates, and the leaf of each key; DER."""
    return [entry.chain[0] for entry in _opened(data, store_password, "ssl.truststore.password") if entry.chain]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """``protected``: the private key, ``None`` for a trusted certificate, which is a chain of one."""

    alias: str
    protected: bytes | None = field(repr=False)
    chain: tuple[bytes, ...]


def _opened(data: bytes, store_password: str | None, key: str) -> list[_Entry]:
    if not data.startswith(MAGIC) or len(data) < 12 + _SUM:
        raise ValueError("not a JKS key store")
    body, checksum = data[:-_SUM], data[-_SUM:]
    if store_password is not None and hashlib.sha1(_utf_16(store_password) + _WHITENER + body).digest() != checksum:
        raise ValueError(f"{key} does not open it, or it is damaged")
    try:
        return list(_entries(body))
    except (struct.error, IndexError) as damage:
        raise ValueError("it is damaged") from damage


def _entries(body: bytes) -> Iterator[_Entry]:
    reader = _Reader(body, 4)
    version, count = reader.number(">I"), reader.number(">I")
    for _ in range(count):
        tag, alias = reader.number(">I"), reader.text()
        reader.number(">Q")
        if tag == _KEY_ENTRY:
            protected = reader.sized()
            chain = tuple(_certificate(reader, version) for _ in range(reader.number(">I")))
            yield _Entry(alias=alias, protected=protected, chain=chain)
        elif tag == _TRUSTED_ENTRY:
            yield _Entry(alias=alias, protected=None, chain=(_certificate(reader, version),))
        else:
            raise ValueError("damaged, or of a newer format")


def _certificate(reader: "_Reader", version: int) -> bytes:
    if version > 1:
        reader.text()  # its type, which is X.509
    return reader.sized()


def _unprotected(protected: bytes, password: str) -> bytes:
    outer = _Reader(protected, 0).der(_SEQUENCE)
    inside = _Reader(outer, 0)
    if not inside.der(_SEQUENCE).startswith(_SUN_KEY_PROTECTOR):
        raise ValueError("its private key has an unknown protection")
    secret = inside.der(_OCTET_STRING)
    link, sealed, wanted = secret[:_SUM], secret[_SUM:-_SUM], secret[-_SUM:]
    word = _utf_16(password)
    stream = bytearray()
    while len(stream) < len(sealed):
        link = hashlib.sha1(word + link).digest()
        stream += link
    key = bytes(a ^ b for a, b in zip(sealed, stream, strict=False))
    if hashlib.sha1(word + key).digest() != wanted:
        raise ValueError("ssl.key.password does not open its private key")
    return key


def _utf_16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """``struct.error`` or ``IndexError`` where the bytes end too soon."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def text(self) -> str:
        return self._take(self.number(">H")).decode("utf-8", "replace")

    def sized(self) -> bytes:
        return self._take(self.number(">I"))

    def der(self, tag: int) -> bytes:
        """The contents of the next element, which must have this tag."""
        if self.number("B") != tag:
            raise ValueError("it is damaged")
        length = self.number("B")
        if length & 0x80:
            length = int.from_bytes(self._take(length & 0x7F), "big")
        return self._take(length)

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise IndexError
        taken = self._data[self._position : end]
        self._position = end
        return taken

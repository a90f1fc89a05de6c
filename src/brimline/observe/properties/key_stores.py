"""The key and certificates that a broker shows at a listener, read from the broker's own settings; and trust stores.

Kafka's rules: a listener's own ``listener.name.<name>.ssl.*`` wins over ``ssl.*``; the format is PEM (a file, or inline
text), PKCS12 or JKS, which is the default. Java opens a PKCS12 file under the name of JKS and the other way round, so
the file's first bytes decide between these two, not the name. Nothing is written anywhere on the way.
"""

import base64
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from brimline.model import BadInput
from brimline.observe.properties import jks_store
from brimline.observe.properties.connection_limits import listener_key
from brimline.observe.properties.java_properties import JavaProperties, PropertyReader
from brimline.observe.properties.pem_stores import blocks_of

_PEM: Final = "PEM"
_TYPES = ("JKS", "PKCS12", _PEM)
_LOCATION = "ssl.keystore.location"
_INLINE_KEY, _INLINE_CHAIN = "ssl.keystore.key", "ssl.keystore.certificate.chain"
_STORE_PASSWORD, _KEY_PASSWORD = "ssl.keystore.password", "ssl.key.password"
_ENGINE = "ssl.engine.factory.class"
_PROTOCOLS, _SUITES = "ssl.enabled.protocols", "ssl.cipher.suites"
_KEYS = (
    _LOCATION,
    "ssl.keystore.type",
    _INLINE_KEY,
    _INLINE_CHAIN,
    _STORE_PASSWORD,
    _KEY_PASSWORD,
    _ENGINE,
    _PROTOCOLS,
    _SUITES,
)
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_DER_SEQUENCE = b"\x30"
_NEEDS_CRYPTOGRAPHY = (
    "a PKCS12 store is opened with the cryptography package, which is not installed: pip install 'brimline[gateway]'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStoreSettings:
    """Either ``location`` or the inline texts are given."""

    where: str
    """Where in which file the store is named, for messages."""
    is_pem: bool
    location: str | None = None
    private_key: str = field(default="", repr=False)
    chain: str = ""
    store_password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)

    def refusal(self, why: str) -> BadInput:
        return BadInput(f"{self.where}: {self.location or _INLINE_KEY}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    """``not_honoured``: settings of the broker that a gateway does not follow, each as a sentence."""

    listener: str
    key_store: KeyStoreSettings
    oldest: ssl.TLSVersion
    newest: ssl.TLSVersion
    not_honoured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMaterial:
    """All PEM; the leaf is the first certificate of the chain."""

    private_key: str = field(repr=False)
    chain: str
    password: str | None = field(default=None, repr=False)

    @property
    def leaf(self) -> str:
        return certificates_in(self.chain)[0]


def certificates_in(pem: str) -> list[str]:
    """Each certificate of a text, laid out anew, as a text of its own."""
    end = "-----END CERTIFICATE-----\n"
    return [block + end for block in blocks_of(pem, "CERTIFICATE").split(end) if block]


def tls_keys(listener: str) -> frozenset[str]:
    """The properties that say how this listener speaks TLS: its own, and those that count for all."""
    return frozenset((*_KEYS, *(listener_key(listener, key) for key in _KEYS)))


def listener_tls(properties: JavaProperties, listener: str, broker_cwd: str | None = None) -> ListenerTls:
    """``BadInput`` when the settings cannot be followed. No key store is opened yet."""
    reader = PropertyReader(_of_listener(properties, listener))
    if reader.text(_ENGINE):
        raise reader.refusal(_ENGINE, "the certificates come from a Java class, which cannot be loaded here")
    oldest, newest, unknown = _versions(reader)
    not_honoured = []
    if unknown:
        not_honoured.append(f"{_PROTOCOLS}: {', '.join(unknown)} is not offered by the gateway")
    if reader.text(_SUITES):
        not_honoured.append(f"{_SUITES}: the gateway offers OpenSSL's default suites; their names differ")
    return ListenerTls(
        listener=listener,
        key_store=_key_store(reader, listener, broker_cwd),
        oldest=oldest,
        newest=newest,
        not_honoured=tuple(not_honoured),
    )


def read_key_store(settings: KeyStoreSettings) -> KeyMaterial:
    """Open the store; ``BadInput`` says why it cannot be used, and never shows what is in it."""
    try:
        if settings.location is None:
            return _from_pem(settings.private_key, settings.chain, settings.key_password)
        data = Path(settings.location).read_bytes()
        if settings.is_pem:
            text = data.decode("utf-8", "replace")
            return _from_pem(text, text, settings.key_password)
        if data.startswith(_DER_SEQUENCE):
            return _from_pkcs12(data, settings)
        return _from_jks(data, settings)
    except OSError as failure:
        raise settings.refusal(f"it cannot be read: {failure.strerror}") from failure
    except ValueError as failure:
        raise settings.refusal(str(failure)) from failure


def read_trust_store(data: bytes, password: str | None) -> str:
    """All that a JKS or PKCS12 store trusts, as PEM; ``ValueError`` says why it cannot be read."""
    if data.startswith(_DER_SEQUENCE):
        try:
            from brimline.observe.properties.pkcs12_store import read_trusted_pkcs12
        except ModuleNotFoundError as missing:
            raise ValueError(_NEEDS_CRYPTOGRAPHY) from missing
        return "".join(read_trusted_pkcs12(data, password))
    return "".join(_pem("CERTIFICATE", each) for each in jks_store.read_trusted_jks(data, password))


def _of_listener(properties: JavaProperties, listener: str) -> JavaProperties:
    """Under the plain names, what counts for this listener."""
    common = [properties.entry(key) for key in _KEYS if key in properties]
    own = [
        replace(properties.entry(spelling), key=key)
        for key in _KEYS
        if (spelling := listener_key(listener, key)) in properties
    ]
    return JavaProperties([*common, *own])


def _versions(reader: PropertyReader) -> tuple[ssl.TLSVersion, ssl.TLSVersion, list[str]]:
    names = [name.strip() for name in (reader.text(_PROTOCOLS) or ",".join(_VERSIONS)).split(",") if name.strip()]
    known = sorted(_VERSIONS[name] for name in names if name in _VERSIONS)
    if not known:
        raise reader.refusal(_PROTOCOLS, f"the gateway speaks none of them; it speaks {', '.join(_VERSIONS)}")
    return known[0], known[-1], [name for name in names if name not in _VERSIONS]


def _key_store(reader: PropertyReader, listener: str, broker_cwd: str | None) -> KeyStoreSettings:
    location, inline = reader.text(_LOCATION), reader.text(_INLINE_KEY)
    kind = (reader.text("ssl.keystore.type") or "JKS").upper()
    if kind not in _TYPES:
        raise reader.refusal("ssl.keystore.type", f"the gateway can read {', '.join(_TYPES)}")
    is_pem = kind == _PEM
    if location:
        return KeyStoreSettings(
            where=reader.properties.entry(_LOCATION).where,
            is_pem=is_pem,
            location=_absolute(reader, location, broker_cwd),
            store_password=reader.text(_STORE_PASSWORD),
            key_password=reader.text(_KEY_PASSWORD),
        )
    if not inline or not is_pem:
        raise BadInput(f"no key store is named: neither {listener_key(listener, _LOCATION)} nor {_LOCATION} is set")
    return KeyStoreSettings(
        where=reader.properties.entry(_INLINE_KEY).where,
        is_pem=True,
        private_key=inline,
        chain=reader.text(_INLINE_CHAIN) or "",
        key_password=reader.text(_KEY_PASSWORD),
    )


def _absolute(reader: PropertyReader, location: str, broker_cwd: str | None) -> str:
    if location.startswith("/"):
        return location
    if broker_cwd is None:
        raise reader.refusal(
            _LOCATION,
            "it is relative to the directory that the broker was started in, which the file does not name: use "
            "--broker-cwd, or write an absolute path",
        )
    return f"{broker_cwd.rstrip('/')}/{location}"


def _from_pem(key: str, chain: str, password: str | None) -> KeyMaterial:
    private_key, certificates = blocks_of(key, "PRIVATE KEY"), blocks_of(chain, "CERTIFICATE")
    if not certificates:
        raise ValueError("no certificate in it")
    if not private_key:
        raise ValueError("no private key in it")
    return KeyMaterial(private_key=private_key, chain=certificates, password=password)


def _from_jks(data: bytes, settings: KeyStoreSettings) -> KeyMaterial:
    keys = jks_store.read_jks(
        data,
        store_password=settings.store_password,
        key_password=settings.key_password or settings.store_password or "",
    )
    if len(keys) != 1 or not keys[0].chain:
        raise ValueError(f"it holds {len(keys)} private keys with a certificate; exactly one is needed")
    return KeyMaterial(
        private_key=_pem("PRIVATE KEY", keys[0].private_key),
        chain="".join(_pem("CERTIFICATE", certificate) for certificate in keys[0].chain),
    )


def _from_pkcs12(data: bytes, settings: KeyStoreSettings) -> KeyMaterial:
    try:
        from brimline.observe.properties.pkcs12_store import read_pkcs12
    except ModuleNotFoundError as missing:
        raise ValueError(_NEEDS_CRYPTOGRAPHY) from missing
    private_key, chain = read_pkcs12(data, settings.store_password)
    return KeyMaterial(private_key=private_key, chain="".join(chain))


def _pem(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode("ascii")
    return blocks_of(f"-----BEGIN {label}-----\n{text}-----END {label}-----", label)

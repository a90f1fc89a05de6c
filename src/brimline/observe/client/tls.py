"""TLS: trust store, key store and protocol versions from a client's properties.

PEM stores go by Kafka's own rules for them (a location or inline text, never both; no store password). JKS, which is
Kafka's default, and PKCS12 are read as the gateway reads a broker's (``properties.key_stores``).
"""

import ssl
from pathlib import Path

from brimline.model.failures import BadInput
from brimline.observe.properties.java_properties import PropertyReader
from brimline.observe.properties.key_stores import KeyStoreSettings, read_key_store, read_trust_store
from brimline.observe.properties.pem_stores import load_key, load_trusted, new_context

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context_of(reader: PropertyReader) -> ssl.SSLContext:
    reader.choice("ssl.protocol", ["TLS", *_VERSIONS])  # enabled.protocols decides, in Java too
    reader.choice("ssl.trustmanager.algorithm", ["PKIX"])
    reader.choice("ssl.keymanager.algorithm", ["SunX509", "PKIX"])
    algorithm = reader.choice("ssl.endpoint.identification.algorithm", ["https", ""], fold_case=True)
    oldest, newest = _versions(reader)
    context = new_context(oldest=oldest, newest=newest, check_host_name=algorithm != "")
    _trust(context, reader)
    _identify(context, reader)
    return context


def _versions(reader: PropertyReader) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = [name.strip() for name in (reader.text("ssl.enabled.protocols") or "TLSv1.2,TLSv1.3").split(",")]
    if not set(names) <= set(_VERSIONS):
        raise reader.refusal("ssl.enabled.protocols", f"allowed: {', '.join(_VERSIONS)}, or both with a comma")
    versions = sorted(_VERSIONS[name] for name in names)
    return versions[0], versions[-1]


def _trust(context: ssl.SSLContext, reader: PropertyReader) -> None:
    key = _source(reader, "truststore", "ssl.truststore.certificates")
    if key is None:
        context.load_default_certs()
        return
    try:
        if _is_pem(reader, "truststore"):
            trusted = _pem(reader, key)
        else:
            trusted = read_trust_store(_bytes(reader, key), reader.text("ssl.truststore.password"))
        load_trusted(context, trusted)
    except ValueError as failure:
        raise reader.refusal(key, str(failure)) from failure


def _identify(context: ssl.SSLContext, reader: PropertyReader) -> None:
    chain_key = "ssl.keystore.certificate.chain"
    key = _source(reader, "keystore", "ssl.keystore.key")
    if key is None:
        if reader.text(chain_key):
            raise reader.refusal(chain_key, "ssl.keystore.key, which belongs to it, is missing")
        return
    if key == "ssl.keystore.key" and not reader.text(chain_key):
        raise reader.refusal(key, f"{chain_key}, which belongs to it, is missing")
    if not _is_pem(reader, "keystore"):
        _identify_by_java_store(context, reader, key)
        return
    private_key = _pem(reader, key)
    chain = private_key if key == "ssl.keystore.location" else _pem(reader, chain_key)
    try:
        load_key(context, private_key=private_key, chain=chain, password=reader.text("ssl.key.password"))
    except ValueError as failure:
        raise reader.refusal(key, str(failure)) from failure


def _identify_by_java_store(context: ssl.SSLContext, reader: PropertyReader, key: str) -> None:
    material = read_key_store(
        KeyStoreSettings(
            where=f"{reader.properties.entry(key).where}: {key}",
            is_pem=False,
            location=reader.text(key),
            store_password=reader.text("ssl.keystore.password"),
            key_password=reader.text("ssl.key.password"),
        )
    )
    try:
        load_key(context, private_key=material.private_key, chain=material.chain, password=material.password)
    except ValueError as failure:
        raise reader.refusal(key, str(failure)) from failure


def _is_pem(reader: PropertyReader, store: str) -> bool:
    return (reader.text(f"ssl.{store}.type") or "JKS").upper() == "PEM"


def _source(reader: PropertyReader, store: str, inline_key: str) -> str | None:
    """The key that holds the PEM text or a store's file name; ``None`` when no such store is given."""
    location_key, type_key, password_key = (f"ssl.{store}.{part}" for part in ("location", "type", "password"))
    location, inline = reader.text(location_key), reader.text(inline_key)
    if not location and not inline:
        return None
    reader.choice(type_key, ["JKS", "PKCS12", "PEM"], fold_case=True)
    if not _is_pem(reader, store):
        if not location:
            missing = "" if type_key in reader.properties else "; Kafka's default is JKS"
            raise reader.refusal(inline_key, f"inline text is PEM: set {type_key}=PEM{missing}")
        return location_key
    if location and inline:
        raise reader.refusal(inline_key, f"{location_key} is given too; remove one of them")
    if reader.text(password_key):
        raise reader.refusal(
            password_key, "a PEM store has no password of its own (for an encrypted key: ssl.key.password)"
        )
    return location_key if location else inline_key


def _pem(reader: PropertyReader, key: str) -> str:
    if not key.endswith(".location"):
        return reader.text(key) or ""
    return _bytes(reader, key).decode("utf-8", "replace")


def _bytes(reader: PropertyReader, key: str) -> bytes:
    value = reader.text(key) or ""
    try:
        return Path(value).read_bytes()
    except OSError as failure:
        where = reader.properties.entry(key).where
        raise BadInput(f"{where}: {key}: cannot read {value}: {failure.strerror}") from failure

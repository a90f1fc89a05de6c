"""PEM stores by Kafka's rules, proved by shaking hands."""

import os
import ssl
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from brimline.model import BadInput
from brimline.observe.client.tls import tls_context_of
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry, PropertyReader
from brimline.observe.properties.pem_stores import load_key


@cache
def certificate() -> tuple[str, str, str]:
    """A self-signed certificate for localhost, its key, and the key encrypted with ``opensesame``; all PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )

    def pem(encryption: serialization.KeySerializationEncryption) -> str:
        return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()

    encrypted = pem(serialization.BestAvailableEncryption(b"opensesame"))
    return made.public_bytes(serialization.Encoding.PEM).decode(), pem(serialization.NoEncryption()), encrypted


def one_line(pem: str) -> str:
    """As people write PEM into a properties file: blanks where the line ends were."""
    return " ".join(pem.split("\n")).strip()


def handshake(client: ssl.SSLContext, *, host: str = "localhost", ask_client: bool = False) -> str | None:
    """Shake hands in memory with a server that has the certificate; gives the TLS version."""
    chain, key, _ = certificate()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key(server, private_key=key, chain=chain, password=None)
    if ask_client:
        server.verify_mode = ssl.CERT_REQUIRED
        server.load_verify_locations(cadata=chain)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname=host)
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    unfinished = [client_side, server_side]
    for _ in range(10):
        for side in list(unfinished):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            unfinished.remove(side)
    assert not unfinished
    return client_side.version()


def tls(**more: str) -> ssl.SSLContext:
    chain, _, _ = certificate()
    return context_of(
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": one_line(chain),
        }
        | {key.replace("_", "."): value for key, value in more.items()}
    )


def context_of(properties: dict[str, str]) -> ssl.SSLContext:
    entries = [PropertyEntry(key, value, "client.properties") for key, value in properties.items()]
    return tls_context_of(PropertyReader(JavaProperties(entries)))


def test_an_inline_trust_store_on_one_line() -> None:
    assert handshake(tls()) == "TLSv1.3"
    assert handshake(tls(ssl_enabled_protocols="TLSv1.2")) == "TLSv1.2"


def test_host_names_are_checked_unless_the_algorithm_is_empty() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tls(), host="other.example.com")
    handshake(tls(ssl_endpoint_identification_algorithm=""), host="other.example.com")


def test_nobody_else_is_trusted() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context_of({}))


@pytest.mark.parametrize("with_memfd", [True, False])
def test_an_inline_key_identifies_us_and_leaves_nothing_on_disk(
    *, with_memfd: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, _, encrypted = certificate()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if not with_memfd:
        monkeypatch.delattr(os, "memfd_create")

    context = tls(
        ssl_keystore_type="PEM",
        ssl_keystore_key=one_line(encrypted),
        ssl_keystore_certificate_chain=one_line(chain),
        ssl_key_password="opensesame",
    )

    assert list(tmp_path.iterdir()) == []
    handshake(context, ask_client=True)


def test_a_key_store_file_holds_key_and_chain(tmp_path: Path) -> None:
    chain, key, _ = certificate()
    store = tmp_path / "keystore.pem"
    store.write_text(f"Bag Attributes\n{chain}\n{key}")

    handshake(tls(ssl_keystore_type="PEM", ssl_keystore_location=str(store)), ask_client=True)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "its private key is encrypted: give ssl.key.password"),
        ({"ssl_key_password": "wrong"}, "ssl.key.password does not open the key"),
        ({"ssl_keystore_password": "x"}, "a PEM store has no password of its own"),
        ({"ssl_keystore_location": "/k.pem"}, "ssl.keystore.location is given too"),
        ({"ssl_keystore_type": "PKCS12"}, "a PKCS12 store cannot be read"),
        ({"ssl_keystore_certificate_chain": ""}, "ssl.keystore.certificate.chain, which belongs to it, is missing"),
    ],
)
def test_a_key_store_that_cannot_be_used(more: dict[str, str], message: str) -> None:
    chain, _, encrypted = certificate()
    inline = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_key": encrypted,
        "ssl_keystore_certificate_chain": chain,
    }

    with pytest.raises(BadInput) as refused:
        tls(**(inline | more))

    assert message in str(refused.value)
    assert "PRIVATE KEY" not in str(refused.value)

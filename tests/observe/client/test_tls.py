"""PEM, JKS and PKCS12 stores by Kafka's rules, proved by shaking hands."""

import os
import ssl
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from brimline.model import BadInput
from brimline.observe.client.tls import tls_context_of
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry, PropertyReader
from brimline.observe.properties.pem_stores import load_key
from tests.observe.properties.key_store_files import keytool

STORE_PASSWORD = "open sesame"


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


@pytest.fixture(params=["JKS", "PKCS12"])
def java_stores(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A trust store and a key store, as people have them: made by Java's own tool."""
    chain, key, _ = certificate()
    pem, source = tmp_path / "ca.pem", tmp_path / "source.p12"
    pem.write_text(chain)
    private_key = serialization.load_pem_private_key(key.encode(), None)
    assert isinstance(private_key, ec.EllipticCurvePrivateKey)
    encryption = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
    leaf = x509.load_pem_x509_certificate(chain.encode())
    source.write_bytes(pkcs12.serialize_key_and_certificates(b"us", private_key, leaf, None, encryption))
    kind, trust, own = request.param, tmp_path / "trust", tmp_path / "own"
    store = ("-storetype", kind, "-storepass", STORE_PASSWORD)
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", str(pem), "-keystore", str(trust), *store)
    keytool(
        *("-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12"),
        *("-srcstorepass", STORE_PASSWORD, "-destkeystore", str(own)),
        *("-deststoretype", kind, "-deststorepass", STORE_PASSWORD),
    )
    return {
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(own),
        "ssl.keystore.password": STORE_PASSWORD,
    }


def test_javas_own_stores_are_read(java_stores: dict[str, str]) -> None:
    handshake(context_of(java_stores), ask_client=True)


def test_without_a_type_the_bytes_tell(java_stores: dict[str, str]) -> None:
    untold = {key: value for key, value in java_stores.items() if not key.endswith(".type")}

    handshake(context_of(untold), ask_client=True)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_wrong_password_of_a_store_is_named_and_not_shown(java_stores: dict[str, str], store: str) -> None:
    with pytest.raises(BadInput) as refused:
        context_of(java_stores | {f"ssl.{store}.password": "not the one"})

    assert f"ssl.{store}.password does not open it" in str(refused.value)
    assert "not the one" not in str(refused.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "its private key is encrypted: give ssl.key.password"),
        ({"ssl_key_password": "wrong"}, "ssl.key.password does not open the key"),
        ({"ssl_keystore_password": "x"}, "a PEM store has no password of its own"),
        ({"ssl_keystore_location": "/k.pem"}, "ssl.keystore.location is given too"),
        ({"ssl_keystore_type": "PKCS12"}, "inline text is PEM: set ssl.keystore.type=PEM"),
        ({"ssl_keystore_type": "BCFKS"}, "allowed: JKS, PKCS12, PEM"),
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

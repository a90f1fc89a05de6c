"""The broker's key stores in all of Kafka's formats, made by real tools and proved by what comes out of them."""

import contextlib
import ssl
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import BadInput
from brimline.observe.properties.java_properties import parse_properties
from brimline.observe.properties.jks_store import read_jks
from brimline.observe.properties.key_stores import ListenerTls, listener_tls, read_key_store, tls_keys
from tests.observe.properties.key_store_files import PASSWORD, Issued, issue, jks, keytool

ROOT = issue("root", is_authority=True)
BROKER = issue("broker7", by=issue("intermediate", by=ROOT, is_authority=True))


def settings(text: str, listener: str = "CLIENT", cwd: str | None = None) -> ListenerTls:
    return listener_tls(parse_properties(text.encode("iso-8859-1"), "server.properties"), listener, cwd)


def opened(text: str, issued: Issued = BROKER) -> None:
    """The store gives back the key and the whole chain, in order."""
    material = read_key_store(settings(text).key_store)
    password = material.password.encode() if material.password else None
    key = load_pem_private_key(material.private_key.encode(), password)
    chain = x509.load_pem_x509_certificates(material.chain.encode())

    assert key.public_key() == issued.certificate.public_key()
    assert chain == [issued.certificate, *issued.above]
    assert ssl.PEM_cert_to_DER_cert(material.leaf) == issued.der


def refused(text: str) -> str:
    with pytest.raises(BadInput) as refusal:
        read_key_store(settings(text).key_store)
    assert PASSWORD not in str(refusal.value)
    assert "PRIVATE KEY" not in str(refusal.value)
    return str(refusal.value)


@pytest.fixture
def pkcs12_store(tmp_path: Path) -> Path:
    store = tmp_path / "store.p12"
    store.write_bytes(BROKER.pkcs12())
    return store


@pytest.fixture(scope="module")
def jks_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a password of its own for the key."""
    return jks(BROKER, tmp_path_factory.mktemp("jks"), key_password="another one")


def test_pkcs12(pkcs12_store: Path) -> None:
    opened(f"ssl.keystore.type=PKCS12\nssl.keystore.location={pkcs12_store}\nssl.keystore.password={PASSWORD}")


@pytest.mark.parametrize("options", [(), ("-J-Dkeystore.pkcs12.legacy",)], ids=["as today", "as Java 8"])
def test_a_pkcs12_store_that_java_made(options: tuple[str, ...], tmp_path: Path) -> None:
    source, made = tmp_path / "source.p12", tmp_path / "made.p12"
    source.write_bytes(BROKER.pkcs12("for the tool"))
    keytool(
        *options,
        *("-importkeystore", "-noprompt"),
        *("-srckeystore", str(source), "-srcstoretype", "PKCS12", "-srcstorepass", "for the tool"),
        *("-destkeystore", str(made), "-deststoretype", "PKCS12", "-deststorepass", "all in ASCII"),
    )

    opened(f"ssl.keystore.type=PKCS12\nssl.keystore.location={made}\nssl.keystore.password=all in ASCII")


def test_what_is_missing_for_pkcs12_is_named(pkcs12_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "brimline.observe.properties.pkcs12_store", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)

    problem = refused(f"ssl.keystore.location={pkcs12_store}\nssl.keystore.password={PASSWORD}")

    assert "pip install 'brimline[gateway]'" in problem


def test_jks_with_a_password_for_the_key(jks_file: Path) -> None:
    opened(
        f"ssl.keystore.type=JKS\nssl.keystore.location={jks_file}\nssl.keystore.password={PASSWORD}\n"
        "ssl.key.password=another one"
    )


def test_the_files_bytes_tell_jks_from_pkcs12_as_they_do_in_java(pkcs12_store: Path, jks_file: Path) -> None:
    opened(f"ssl.keystore.location={pkcs12_store}\nssl.keystore.password={PASSWORD}")
    opened(
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={jks_file}\nssl.keystore.password={PASSWORD}\n"
        "ssl.key.password=another one"
    )


def test_a_pem_file_with_an_encrypted_key(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text(f"{BROKER.private_key('secret')}Bag Attributes\n{BROKER.chain}")

    opened(f"ssl.keystore.type=PEM\nssl.keystore.location={store}\nssl.key.password=secret")


def test_inline_pem() -> None:
    key, chain = (" ".join(text.split("\n")) for text in (BROKER.private_key(), BROKER.chain))

    opened(f"ssl.keystore.type=PEM\nssl.keystore.key={key}\nssl.keystore.certificate.chain={chain}")


def test_a_listeners_own_settings_win(pkcs12_store: Path) -> None:
    opened(
        "ssl.keystore.location=/nowhere\nssl.keystore.password=wrong\nssl.keystore.type=PEM\n"
        f"listener.name.client.ssl.keystore.location={pkcs12_store}\n"
        f"listener.name.client.ssl.keystore.type=PKCS12\nlistener.name.client.ssl.keystore.password={PASSWORD}\n"
        "listener.name.admin.ssl.keystore.location=/elsewhere"
    )


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_wrong_password_is_named_and_not_shown(kind: str, pkcs12_store: Path, jks_file: Path) -> None:
    store = pkcs12_store if kind == "PKCS12" else jks_file

    problem = refused(f"node.id=1\nssl.keystore.location={store}\nssl.keystore.password=hunter2")

    assert problem.startswith(f"server.properties line 2: {store}: ssl.keystore.password does not open it")
    assert "hunter2" not in problem


def test_a_wrong_password_for_a_jks_key(jks_file: Path) -> None:
    problem = refused(f"ssl.keystore.location={jks_file}\nssl.keystore.password={PASSWORD}")

    assert "ssl.key.password does not open its private key" in problem


def test_a_store_that_is_not_there() -> None:
    assert "/nowhere/store.jks: it cannot be read: No such file" in refused("ssl.keystore.location=/nowhere/store.jks")


@pytest.mark.parametrize("content", [b"", b"\xce\xce\xce\xce and more", b"-----BEGIN CERTIFICATE-----", b"\x30\x82"])
def test_a_file_that_is_no_store(content: bytes, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_bytes(content)

    refused(f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}")
    refused(f"ssl.keystore.type=PEM\nssl.keystore.location={store}")


def test_a_jks_store_cut_off_anywhere_is_damaged_and_nothing_worse(jks_file: Path) -> None:
    """Without the store's password, which would find all of it at once."""
    whole = jks_file.read_bytes()

    for length in range(len(whole) - 21):
        with pytest.raises(ValueError):
            read_jks(whole[:length] + bytes(20), store_password=None, key_password="another one")


@given(st.data())
def test_a_damaged_jks_store_is_damaged_and_nothing_worse(jks_file: Path, data: st.DataObject) -> None:
    damaged = bytearray(jks_file.read_bytes())
    for position in data.draw(st.lists(st.integers(4, len(damaged) - 1), min_size=1, max_size=4)):
        damaged[position] = data.draw(st.integers(0, 255))

    with contextlib.suppress(ValueError):
        read_jks(bytes(damaged), store_password=None, key_password="another one")


def test_a_jks_store_of_authorities_has_no_key(tmp_path: Path) -> None:
    certificate, store = tmp_path / "ca.pem", tmp_path / "trust.jks"
    certificate.write_text(ROOT.chain)
    keytool(
        "-importcert",
        "-noprompt",
        *("-alias", "ca", "-file", str(certificate), "-keystore", str(store)),
        *("-storetype", "JKS", "-storepass", PASSWORD),
    )

    assert "0 private keys" in refused(f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("node.id=1", "neither listener.name.client.ssl.keystore.location nor ssl.keystore.location is set"),
        ("ssl.keystore.location=/x\nssl.keystore.type=BCFKS", "the gateway can read JKS, PKCS12, PEM"),
        ("ssl.keystore.location=certs/x.jks", "--broker-cwd"),
        ("ssl.keystore.location=/x\nssl.engine.factory.class=a.B", "a Java class"),
        ("ssl.keystore.location=/x\nssl.enabled.protocols=TLSv1.1", "it speaks TLSv1.2, TLSv1.3"),
    ],
)
def test_settings_that_cannot_be_followed(text: str, why: str) -> None:
    with pytest.raises(BadInput) as refusal:
        settings(text)

    assert why in str(refusal.value)


def test_a_relative_location_is_the_brokers() -> None:
    assert settings("ssl.keystore.location=a/x.jks", cwd="/opt/kafka/").key_store.location == "/opt/kafka/a/x.jks"


def test_the_protocol_versions() -> None:
    both = settings("ssl.keystore.location=/x")
    old = settings("ssl.keystore.location=/x\nlistener.name.client.ssl.enabled.protocols=TLSv1.2, TLSv1.1")

    assert (both.oldest, both.newest) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert (old.oldest, old.newest) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert old.not_honoured == ("ssl.enabled.protocols: TLSv1.1 is not offered by the gateway",)


def test_cipher_suites_are_named_as_not_honoured() -> None:
    found = settings("ssl.keystore.location=/x\nssl.cipher.suites=TLS_AES_128_GCM_SHA256")

    assert len(found.not_honoured) == 1
    assert found.not_honoured[0].startswith("ssl.cipher.suites")


def test_no_secret_shows_in_a_representation() -> None:
    found = settings(f"ssl.keystore.location=/x\nssl.keystore.password={PASSWORD}\nssl.key.password=hunter2")

    assert PASSWORD not in repr(found)
    assert "hunter2" not in repr(found)


def test_only_what_is_needed_is_looked_at() -> None:
    keys = tls_keys("CLIENT")

    assert "listener.name.client.ssl.keystore.password" in keys
    assert "ssl.key.password" in keys
    assert not any("truststore" in key for key in keys)

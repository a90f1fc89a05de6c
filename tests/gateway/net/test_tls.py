"""TLS on both sides of the gateway, proved by shaking hands: what clients see, and who is taken for the broker."""

import ssl
from pathlib import Path

import pytest

from brimline.gateway.net.tls import ServerTls
from brimline.model import BadInput
from brimline.observe.properties.java_properties import parse_properties
from brimline.observe.properties.key_stores import listener_tls
from brimline.observe.properties.pem_stores import load_key
from tests.observe.properties.key_store_files import PASSWORD, Issued, issue, pem

ROOT = issue("root", is_authority=True)
INTERMEDIATE = issue("intermediate", by=ROOT, is_authority=True)
BROKER = issue("broker7", by=INTERMEDIATE)
RENEWED = issue("broker7", by=INTERMEDIATE)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str | None = None) -> ssl.SSLObject:
    """In memory; gives the client's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname=host)
    unfinished = [client_side, server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(10):
        for side in list(unfinished):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            unfinished.remove(side)
    assert not unfinished
    return client_side


def kafka_client() -> ssl.SSLContext:
    """Trusts the root alone and checks names, as clients do: so the server must send what is in between."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(ROOT.certificate))
    return context


def broker(shows: Issued) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key(context, private_key=shows.private_key(), chain=shows.chain, password=None)
    return context


def seen_by_clients(tls: ServerTls) -> bytes | None:
    return shake_hands(tls.client_context(), kafka_client(), "broker7.example.org").getpeercert(binary_form=True)


def replace_store(store: Path, issued: Issued) -> None:
    fresh = store.with_suffix(".new")
    fresh.write_bytes(issued.pkcs12())
    fresh.rename(store)


def server_tls(properties: str, memory: Path | None = None) -> ServerTls:
    parsed = parse_properties(properties.encode("iso-8859-1"), "server.properties")
    return ServerTls(listener_tls(parsed, "CLIENT"), memory)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.p12"
    replace_store(path, BROKER)
    return path


@pytest.fixture
def tls(store: Path) -> ServerTls:
    return server_tls(f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}")


def test_clients_see_the_brokers_certificate_and_all_that_leads_to_it(tls: ServerTls) -> None:
    assert seen_by_clients(tls) == BROKER.der


def test_an_encrypted_pem_key(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text(BROKER.private_key("secret") + BROKER.chain)

    tls = server_tls(f"ssl.keystore.type=PEM\nssl.keystore.location={store}\nssl.key.password=secret")

    assert seen_by_clients(tls) == BROKER.der


def test_the_brokers_protocol_versions_count(store: Path) -> None:
    common = f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}\n"
    old = server_tls(f"{common}ssl.enabled.protocols=TLSv1.2")
    new = server_tls(f"{common}ssl.enabled.protocols=TLSv1.3")

    versions = [
        shake_hands(tls.client_context(), kafka_client(), "broker7.example.org").version() for tls in (old, new)
    ]

    assert versions == ["TLSv1.2", "TLSv1.3"]


@pytest.mark.parametrize(
    ("password", "why"),
    [("", "its private key is encrypted"), ("\nssl.key.password=hunter2", "does not open the key")],
)
def test_a_key_that_cannot_be_opened_ends_the_start(password: str, why: str, tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text(BROKER.private_key("secret") + BROKER.chain)

    with pytest.raises(BadInput) as refused:
        server_tls(f"ssl.keystore.type=PEM\nssl.keystore.location={store}{password}")

    assert why in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_key_and_a_certificate_that_do_not_belong_together(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text(RENEWED.private_key() + BROKER.chain)

    with pytest.raises(BadInput, match="KEY_VALUES_MISMATCH"):
        server_tls(f"ssl.keystore.type=PEM\nssl.keystore.location={store}")


def test_a_renewed_store_is_read_when_it_changes(tls: ServerTls, store: Path) -> None:
    unchanged = tls.refresh()
    replace_store(store, RENEWED)
    changed = tls.refresh()

    assert unchanged is None
    assert changed is not None
    assert changed.is_loaded
    assert tls.refresh() is None
    assert seen_by_clients(tls) == RENEWED.der


def test_a_bad_store_is_named_once_and_the_old_certificate_goes_on(tls: ServerTls, store: Path) -> None:
    store.write_bytes(b"half of a store")
    said = [tls.refresh(), tls.refresh()]

    assert said[0] is not None
    assert not said[0].is_loaded
    assert str(store) in said[0].sentence
    assert said[1] is None
    assert seen_by_clients(tls) == BROKER.der


def test_a_store_that_is_good_again_is_read(tls: ServerTls, store: Path) -> None:
    store.unlink()
    gone = tls.refresh()
    replace_store(store, RENEWED)
    back = tls.refresh()

    assert gone is not None
    assert "No such file" in gone.sentence
    assert back is not None
    assert back.is_loaded
    assert seen_by_clients(tls) == RENEWED.der


def test_an_inline_key_never_changes() -> None:
    key, chain = (" ".join(text.split("\n")) for text in (BROKER.private_key(), BROKER.chain))
    tls = server_tls(f"ssl.keystore.type=PEM\nssl.keystore.key={key}\nssl.keystore.certificate.chain={chain}")

    assert tls.refresh() is None
    assert seen_by_clients(tls) == BROKER.der


def test_the_broker_is_known_by_its_certificate(tls: ServerTls) -> None:
    shake_hands(broker(BROKER), tls.upstream_context())


@pytest.mark.parametrize(
    "other",
    [RENEWED, issue("broker7"), issue("broker8", by=INTERMEDIATE), issue("broker7", by=BROKER)],
    ids=["same name and issuer", "self-signed", "other name", "signed by the broker's key"],
)
def test_nobody_else_is_taken_for_the_broker(tls: ServerTls, other: Issued) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(broker(other), tls.upstream_context())


def test_after_a_renewal_the_broker_may_show_either_certificate(tls: ServerTls, store: Path) -> None:
    """It reads the new one when it is told to, which may be never until its next start."""
    replace_store(store, RENEWED)
    tls.refresh()

    shake_hands(broker(BROKER), tls.upstream_context())
    shake_hands(broker(RENEWED), tls.upstream_context())


@pytest.mark.parametrize("shown", [issue("self"), issue("old", by=ROOT, until=2021)], ids=["self-signed", "expired"])
def test_a_certificate_that_no_client_would_trust_is_still_the_brokers(shown: Issued, tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text(shown.private_key() + shown.chain)

    tls = server_tls(f"ssl.keystore.type=PEM\nssl.keystore.location={store}")

    shake_hands(broker(shown), tls.upstream_context())


def test_a_gateway_that_was_restarted_since_knows_its_broker_again(store: Path, tmp_path: Path) -> None:
    properties, memory = f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}", tmp_path / "known.pem"
    server_tls(properties, memory)
    replace_store(store, RENEWED)

    tls = server_tls(properties, memory)

    shake_hands(broker(BROKER), tls.upstream_context())
    shake_hands(broker(RENEWED), tls.upstream_context())
    assert [path.name for path in tmp_path.glob("known*")] == ["known.pem"]


@pytest.mark.parametrize(
    "damage", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"]
)
def test_a_damaged_memory_is_no_memory(damage: bytes, store: Path, tmp_path: Path) -> None:
    memory = tmp_path / "known.pem"
    memory.write_bytes(damage)

    tls = server_tls(f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}", memory)

    shake_hands(broker(BROKER), tls.upstream_context())
    assert memory.read_text() == pem(BROKER.certificate)


def test_a_memory_that_cannot_be_written_is_named_and_stops_nobody(store: Path, tmp_path: Path) -> None:
    tls = server_tls(
        f"ssl.keystore.location={store}\nssl.keystore.password={PASSWORD}", tmp_path / "none" / "known.pem"
    )

    assert tls.complaint is not None
    assert "No such file" in tls.complaint
    assert seen_by_clients(tls) == BROKER.der

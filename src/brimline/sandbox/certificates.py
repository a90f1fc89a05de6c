"""A certificate authority for one sandbox, with a certificate for its brokers and one for a client.

Files in the given directory: ``ca.pem``; ``broker-key-store``, in the format that was asked for; ``client.pem``, first
the key, then the certificate.
"""

import datetime as dt
import ipaddress
import subprocess
from pathlib import Path

from brimline.sandbox.errors import MissingPart, SandboxError
from brimline.sandbox.java import find_java
from brimline.sandbox.properties import KEY_STORE_PASSWORD
from brimline.sandbox.spec import KeyStoreType

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import NameOID
except ImportError:
    raise MissingPart("TLS certificates need the cryptography package: pip install 'brimline[sandbox]'") from None

_LIFE = dt.timedelta(days=30)


class Authority:
    """Signs what the sandbox needs, at the start and again when a certificate is to be renewed."""

    def __init__(self, directory: Path, key_store: KeyStoreType) -> None:
        directory.mkdir()
        self._directory = directory
        self._key_store = key_store
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("brimline-sandbox-ca")
        self._certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        (directory / "ca.pem").write_bytes(_pem(self._certificate))
        client_key, client = self._issue("brimline-client")
        (directory / "client.pem").write_bytes(_key_pem(client_key) + _pem(client))
        self.write_broker_store()

    def write_broker_store(self) -> None:
        """A new key with its certificate. It is there whole or not at all: a broker may look at any moment."""
        key, certificate = self._issue("brimline-broker")
        partial = self._directory / "broker-key-store.partial"
        if self._key_store == "PEM":
            partial.write_bytes(_key_pem(key) + _pem(certificate) + _pem(self._certificate))
        else:
            encryption = serialization.BestAvailableEncryption(KEY_STORE_PASSWORD.encode())
            chain = [self._certificate]
            partial.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, certificate, chain, encryption))
        if self._key_store == "JKS":
            partial = _converted_to_jks(partial)
        partial.rename(self._directory / "broker-key-store")

    def _issue(self, common_name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(_name(common_name), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_loopback(), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return key, certificate

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        """Valid from an hour ago (clocks differ) for a month."""
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + _LIFE)
        )


def _converted_to_jks(store: Path) -> Path:
    """Java's own format, which only Java writes; the tool stands beside every ``java``."""
    converted = store.with_suffix(".jks")
    converted.unlink(missing_ok=True)
    password = ("-srcstorepass", KEY_STORE_PASSWORD, "-deststorepass", KEY_STORE_PASSWORD)
    formats = ("-srcstoretype", "PKCS12", "-deststoretype", "JKS")
    files = ("-srckeystore", str(store), "-destkeystore", str(converted))
    keytool = find_java().resolve().with_name("keytool")
    command = [str(keytool), "-importkeystore", "-noprompt", *files, *formats, *password]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SandboxError(f"keytool could not make a JKS key store: {done.stdout.strip() or done.stderr.strip()}")
    store.unlink()
    return converted


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _loopback() -> x509.SubjectAlternativeName:
    """The names under which clients reach a sandbox: they check them."""
    return x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

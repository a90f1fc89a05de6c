"""Key stores as operators have them: made with real tools, for a root, an intermediate authority and a leaf."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

PASSWORD = "open sesame ö"
"""With a blank and a letter beyond ASCII: what goes wrong first."""


@dataclass(frozen=True, kw_only=True)
class Issued:
    """A key with its certificate and those of the authorities above it, the nearest first."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    above: tuple[x509.Certificate, ...] = ()

    @property
    def chain(self) -> str:
        return pem(self.certificate, *self.above)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    def private_key(self, password: str | None = None) -> str:
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str = PASSWORD) -> bytes:
        """The authorities in the wrong order, which the format allows."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"broker", self.key, self.certificate, reversed(self.above), encryption
        )


def pem(*certificates: x509.Certificate) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def issue(common_name: str, by: Issued | None = None, *, is_authority: bool = False, until: int = 2120) -> Issued:
    """``by`` nobody: self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(by.certificate.subject if by else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(until, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("broker7.example.org")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(by.key if by else key, hashes.SHA256())
    )
    return Issued(key=key, certificate=certificate, above=(by.certificate, *by.above) if by else ())


def jks(issued: Issued, folder: Path, *, store_password: str = PASSWORD, key_password: str | None = None) -> Path:
    """Java's own tool makes it, from a PKCS12 store."""
    source, store = folder / "source.p12", folder / "store.jks"
    source.write_bytes(issued.pkcs12("for the tool"))
    keytool(
        "-importkeystore",
        "-noprompt",
        *("-srckeystore", str(source), "-srcstoretype", "PKCS12", "-srcstorepass", "for the tool"),
        *("-destkeystore", str(store), "-deststoretype", "JKS", "-deststorepass", store_password),
        *("-srcalias", "broker", "-srckeypass", "for the tool", "-destkeypass", key_password or store_password),
    )
    source.unlink()
    return store


def keytool(*arguments: str) -> None:
    # Java takes its arguments in the encoding of the locale.
    command: Sequence[str] = ("keytool", "-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData", *arguments)
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr

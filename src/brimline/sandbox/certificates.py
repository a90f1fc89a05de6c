"""A certificate authority for one sandbox, with a certificate for its brokers and one for a client.

Files in the given directory: ``ca.pem``; ``broker.p12``, because old brokers take a PEM key only encrypted in a way
that new libraries no longer write; ``client.pem``, first the key, then the certificate.
"""

import datetime as dt
import ipaddress
from pathlib import Path

from brimline.sandbox.errors import MissingPart
from brimline.sandbox.properties import KEY_STORE_PASSWORD

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import NameOID
except ImportError:
    raise MissingPart("TLS certificates need the cryptography package: pip install 'brimline[sandbox]'") from None

_LIFE = dt.timedelta(days=30)


def write_certificates(directory: Path) -> None:
    """Make the authority and both certificates, valid from an hour ago (clocks differ) for a month."""
    directory.mkdir()
    now = dt.datetime.now(dt.UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("brimline-sandbox-ca")
    authority = (
        _builder(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    (directory / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("broker", "client")}
    certificates = {
        name: _builder(_name(f"brimline-{name}"), authority_name, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_loopback(), critical=False)
        .sign(authority_key, hashes.SHA256())
        for name, key in keys.items()
    }
    encryption = serialization.BestAvailableEncryption(KEY_STORE_PASSWORD.encode())
    (directory / "broker.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"broker", keys["broker"], certificates["broker"], [authority], encryption
        )
    )
    (directory / "client.pem").write_bytes(
        _key_pem(keys["client"]) + certificates["client"].public_bytes(serialization.Encoding.PEM)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _loopback() -> x509.SubjectAlternativeName:
    """The names under which clients reach a sandbox: they check them."""
    return x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

"""PKCS12 key stores, by way of the cryptography package: an extra, so this module is imported only when one is read."""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
from cryptography.x509 import Certificate


def read_trusted_pkcs12(data: bytes, password: str | None) -> list[str]:
    """Every certificate in it, as PEM; ``ValueError`` says why it cannot be read."""
    store = _opened(data, password, "ssl.truststore.password")
    found = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    return [each.certificate.public_bytes(Encoding.PEM).decode("ascii") for each in found]


def _opened(data: bytes, password: str | None, key: str) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except UnsupportedAlgorithm as failure:
        raise ValueError(f"its encryption is unknown to OpenSSL ({failure})") from failure
    except ValueError as failure:
        raise ValueError(f"{key} does not open it, or it is not a PKCS12 or JKS store") from failure


def read_pkcs12(data: bytes, password: str | None) -> tuple[str, list[str]]:
    """The private key and its chain, the leaf first, as PEM; ``ValueError`` says why there is none."""
    store = _opened(data, password, "ssl.keystore.password")
    if store.key is None or store.cert is None:
        raise ValueError("it holds no private key with a certificate")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = _chain(store.cert.certificate, [other.certificate for other in store.additional_certs])
    return key.decode("ascii"), [certificate.public_bytes(Encoding.PEM).decode("ascii") for certificate in chain]


def _chain(leaf: Certificate, others: list[Certificate]) -> list[Certificate]:
    """From the leaf upwards: the format keeps no order, and TLS wants one."""
    chain = [leaf]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((other for other in others if other.subject == chain[-1].issuer and other not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain

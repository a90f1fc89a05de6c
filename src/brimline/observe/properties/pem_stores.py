"""PEM trust and key stores, as Kafka's clients take them, made into an ``ssl.SSLContext``.

Kafka allows the base64 of an inline certificate to stand on one line, with blanks where the line ends were; OpenSSL
does not, so the text is laid out anew. OpenSSL takes a private key only from a file: the key is shown to it through
an anonymous file in memory, so that nothing readable is left on any disk, whatever becomes of this process.
"""

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_BLOCK = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+\s+([A-Za-z0-9+/=\s]+?)-+END \1-+")
_LINE_LENGTH = 64


def new_context(*, oldest: ssl.TLSVersion, newest: ssl.TLSVersion, check_host_name: bool) -> ssl.SSLContext:
    """A client's context that trusts nobody yet. Without the host name's check the chain is still verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = oldest
    context.maximum_version = newest
    context.check_hostname = check_host_name
    return context


def blocks_of(pem: str, kind: str) -> str:
    """The blocks whose label ends in ``kind`` (``CERTIFICATE``, ``PRIVATE KEY``), laid out as OpenSSL wants them."""
    found = []
    for block in _BLOCK.finditer(pem):
        label, base64 = block[1], "".join(block[2].split())
        if label.endswith(kind):
            lines = [base64[start : start + _LINE_LENGTH] for start in range(0, len(base64), _LINE_LENGTH)]
            found.append("\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]))
    return "".join(found)


def load_trusted(context: ssl.SSLContext, pem: str) -> None:
    """Trust the certificates in ``pem``; ``ValueError`` when there is none, or OpenSSL does not take one."""
    certificates = blocks_of(pem, "CERTIFICATE")
    if not certificates:
        raise ValueError("no certificate in it")
    try:
        context.load_verify_locations(cadata=certificates)
    except ssl.SSLError as failure:
        raise ValueError(f"OpenSSL rejects its certificates ({failure.reason or failure})") from failure


def load_key(context: ssl.SSLContext, *, private_key: str, chain: str, password: str | None) -> None:
    """Identify ourselves with this key and chain (PEM, the leaf first); ``ValueError`` says what is wrong with them."""
    certificates = blocks_of(chain, "CERTIFICATE")
    key = blocks_of(private_key, "PRIVATE KEY")
    if not certificates:
        raise ValueError("no certificate in it")
    if not key:
        raise ValueError("no private key in it")
    encrypted = "ENCRYPTED" in key
    if encrypted and not password:
        raise ValueError("its private key is encrypted: give ssl.key.password")
    with _secret_file(key + certificates) as path:
        try:
            # Without a password of some kind OpenSSL would ask for one on the terminal.
            context.load_cert_chain(path, password=password or "")
        except ssl.SSLError as failure:
            opened = not encrypted or failure.reason == "KEY_VALUES_MISMATCH"
            why = str(failure.reason or failure) if opened else "ssl.key.password does not open the key"
            raise ValueError(f"OpenSSL rejects its private key and certificate ({why})") from failure


@contextmanager
def _secret_file(text: str) -> Iterator[str]:
    """A path to read ``text`` from that only this process can use: in memory, or a 0600 file that is gone at once."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("brimline-key")
        try:
            os.write(descriptor, text.encode("ascii"))
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile("w", encoding="ascii", prefix="brimline-") as file:
            file.write(text)
            file.flush()
            yield file.name

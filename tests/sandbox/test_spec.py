"""Impossible wishes are refused before anything starts, by name."""

from collections.abc import Callable

import pytest

from brimline.model import Bytes
from brimline.sandbox import BadSpec, SandboxSpec, SecuritySpec, VolumeSpec

TWO = (VolumeSpec(), VolumeSpec())
SCRAM = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256",), users={"u": "p"})
PEM = SecuritySpec(protocol="SSL", key_store="PEM")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: SandboxSpec(version="0.8"), r"no Kafka 0\.8"),
        (lambda: SandboxSpec(brokers=0), "0 brokers"),
        (lambda: SandboxSpec(volumes=()), "at least one volume"),
        (lambda: SandboxSpec(brokers=2, short_paths=True), "short paths are for one broker"),
        (lambda: SandboxSpec(version="3.2.3", volumes=TWO), "KIP-858"),
        (lambda: SandboxSpec(version="3.2.3", volumes=(VolumeSpec(log_dirs=2),)), "KIP-858"),
        (lambda: SandboxSpec(version="3.2.3", tiered=True), "KIP-405"),
        (lambda: SandboxSpec(version="3.2.3", security=SCRAM), "KIP-900"),
        (lambda: SandboxSpec(version="3.2.3", security=PEM), "takes PEM keys only in an obsolete encryption"),
        (lambda: VolumeSpec(size=Bytes(1)), "too small"),
        (lambda: VolumeSpec(log_dirs=0), "at least one log dir"),
        (lambda: SecuritySpec(protocol="SASL_SSL"), "do not go together"),
        (lambda: SecuritySpec(protocol="SSL", mechanisms=("PLAIN",)), "do not go together"),
        (lambda: SecuritySpec(protocol="SASL_SSL", mechanisms=("PLAIN",)), "lets no client in"),
        (lambda: SecuritySpec(protocol="SASL_SSL", mechanisms=("PLAIN",), users={"a b": ""}), "user 'a b'"),
        (lambda: SecuritySpec(protocol="PLAINTEXT", mutual_tls=True), "no TLS"),
        (lambda: SecuritySpec(protocol="SSL", acls=True), "ANONYMOUS"),
    ],
)
def test_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(BadSpec, match=why):
        make()

"""What cluster to run, said once, before anything starts; impossible wishes are refused here, by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from brimline.model import Bytes
from brimline.sandbox.errors import BadSpec
from brimline.sandbox.jars.lock import locked_versions

DEFAULT_VERSION = "4.3.1"
DEFAULT_VOLUME = Bytes(256 * 1024 * 1024)
DEFAULT_HEAP = Bytes(256 * 1024 * 1024)
SMALLEST_VOLUME = Bytes(16 * 1024 * 1024)
"""Below this a broker cannot even write its own metadata log and indexes for long."""

Filesystem = Literal["tmpfs", "ext4"]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
KeyStoreType = Literal["PKCS12", "JKS", "PEM"]

_USER_NAME = re.compile(r"[A-Za-z0-9._@-]+")

CLIENT_CERTIFICATE_PRINCIPAL = "User:CN=brimline-client"
"""Who a client is that shows the sandbox's client certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSpec:
    """A bounded volume of a broker, holding ``log_dirs`` log dirs side by side."""

    size: Bytes = DEFAULT_VOLUME
    log_dirs: int = 1
    filesystem: Filesystem = "tmpfs"
    """``ext4`` is loop-mounted and needs root; its reserved blocks make usable differ from free."""

    def __post_init__(self) -> None:
        if self.size < SMALLEST_VOLUME:
            raise BadSpec(f"a volume of {self.size} bytes is too small for a broker: at least {SMALLEST_VOLUME}")
        if self.log_dirs < 1:
            raise BadSpec("a volume needs at least one log dir")
        if self.filesystem not in ("tmpfs", "ext4"):
            raise BadSpec(f"no {self.filesystem} volumes: choose tmpfs or ext4")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySpec:
    """How the client listener is protected. The admin listener stays open to anyone on this machine."""

    protocol: Protocol
    mechanisms: tuple[Mechanism, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    """Name and password, known to every mechanism."""
    super_users: tuple[str, ...] = ()
    acls: bool = False
    mutual_tls: bool = False
    key_store: KeyStoreType = "PKCS12"
    """The format of the brokers' own key and certificate."""

    def __post_init__(self) -> None:
        if self.uses_sasl != bool(self.mechanisms):
            raise BadSpec(f"{self.protocol} and mechanisms {self.mechanisms} do not go together")
        if self.uses_sasl and not self.users:
            raise BadSpec(f"{self.protocol} without users lets no client in: name at least one")
        for name in self.users:
            if not _USER_NAME.fullmatch(name):
                raise BadSpec(f"user {name!r}: letters, digits and . _ @ - make a name that every mechanism can carry")
        if self.mutual_tls and not self.uses_tls:
            raise BadSpec(f"{self.protocol} has no TLS to be mutual")
        if self.acls and not (self.uses_sasl or self.mutual_tls):
            raise BadSpec(
                f"with {self.protocol} everyone is ANONYMOUS, the sandbox's super user: ACLs need SASL or mutual TLS"
            )

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def scram_mechanisms(self) -> tuple[Mechanism, ...]:
        return tuple(mechanism for mechanism in self.mechanisms if mechanism.startswith("SCRAM-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """A cluster. Every broker has the same volumes; ``properties`` override any broker property."""

    version: str = DEFAULT_VERSION
    brokers: int = 1
    volumes: tuple[VolumeSpec, ...] = (VolumeSpec(),)
    tiered: bool = False
    security: SecuritySpec | None = None
    fronted: bool = False
    """Tell clients a port at which no broker listens: it is held for a gateway in front of the client listener."""
    short_paths: bool = False
    """Log dirs are ``/data/a``, ``/data/b``, …, where the kernel gives private mounts and the machine has no /data."""
    kafka_defaults: bool = False
    """Kafka's own intervals, delays, buffers and numbers of partitions; they need a heap of 512 MiB."""
    properties: Mapping[str, str] = field(default_factory=dict)
    heap: Bytes = DEFAULT_HEAP
    java_options: tuple[str, ...] = ()
    """More options for every JVM."""
    more_jars: tuple[Path, ...] = ()
    """Plug-ins, behind Kafka's own jars."""

    def __post_init__(self) -> None:
        if self.version not in locked_versions():
            raise BadSpec(f"no Kafka {self.version} for a sandbox: choose one of {', '.join(locked_versions())}")
        if not 1 <= self.brokers <= 99:
            raise BadSpec(f"{self.brokers} brokers: a sandbox has between 1 and 99")
        if self.log_dirs_per_broker < 1:
            raise BadSpec("a broker needs at least one volume")
        if self.short_paths and (self.brokers, self.log_dirs_per_broker) != (1, len(self.volumes)):
            raise BadSpec("short paths are for one broker with one log dir on each volume")
        self._refuse_what_the_version_lacks()

    @property
    def log_dirs_per_broker(self) -> int:
        return sum(volume.log_dirs for volume in self.volumes)

    @property
    def volumes_size(self) -> Bytes:
        """What all volumes of all brokers hold."""
        return Bytes(self.brokers * sum(volume.size for volume in self.volumes))

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(number) for number in self.version.split("."))

    def _refuse_what_the_version_lacks(self) -> None:
        if self.log_dirs_per_broker > 1 and self.release < (3, 7):
            raise BadSpec(f"Kafka {self.version} in KRaft mode has one log dir: several came with 3.7 (KIP-858)")
        if self.tiered and self.release < (3, 9):
            raise BadSpec(f"no tiered storage in a sandbox of Kafka {self.version}: it is ready since 3.9 (KIP-405)")
        if self.security and self.security.scram_mechanisms and self.release < (3, 5):
            raise BadSpec(f"Kafka {self.version} in KRaft mode has no SCRAM: it came with 3.5 (KIP-900)")
        if self.security and self.security.key_store == "PEM" and self.release < (3, 7):
            raise BadSpec(f"Kafka {self.version} takes PEM keys only in an obsolete encryption")

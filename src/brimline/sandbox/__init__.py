"""A real Kafka cluster, of any version, on small real volumes: for the demo, the tests and the curious.

    with Sandbox(SandboxSpec(brokers=3, volumes=(VolumeSpec(size=Bytes(64 << 20), log_dirs=2),))) as sandbox:
        print(sandbox.bootstrap_servers)

Read ``supervisor`` first: it is why a sandbox leaves nothing behind.
"""

from brimline.sandbox.broker import Broker, SupervisedProcess
from brimline.sandbox.cluster import Sandbox
from brimline.sandbox.errors import (
    BadSpec,
    BrokerFailed,
    DownloadFailed,
    JarMismatch,
    MissingPart,
    NamespaceRefused,
    SandboxError,
    SandboxGone,
)
from brimline.sandbox.namespace import why_no_real_volumes
from brimline.sandbox.spec import CLIENT_CERTIFICATE_PRINCIPAL, SandboxSpec, SecuritySpec, VolumeSpec

__all__ = [
    "CLIENT_CERTIFICATE_PRINCIPAL",
    "BadSpec",
    "Broker",
    "BrokerFailed",
    "DownloadFailed",
    "JarMismatch",
    "MissingPart",
    "NamespaceRefused",
    "Sandbox",
    "SandboxError",
    "SandboxGone",
    "SandboxSpec",
    "SecuritySpec",
    "SupervisedProcess",
    "VolumeSpec",
    "why_no_real_volumes",
]

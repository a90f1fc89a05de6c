"""Clusters that several files use, one after the other: started once, handed on clean.

A file asks for one by its specification. Which files run in one process, and so meet the same cluster, is a table in
tests/scheduling.py. Between two files a cluster is idle; any other cluster's start ends it. One whose brokers were
restarted, or have other properties than at their start, is ended and not handed on.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePatternFilter,
    ResourceType,
)

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec, VolumeSpec
from tests.integration.full_disks import admin_client, clean_up
from tests.waiting import eventually

_idle: dict[str, Sandbox] = {}
"""By specification; one at most."""
_OURS = ("brimline-state", "guard.properties", "gateway.properties")
"""What guards and gateways of tests leave in a broker's home."""


def with_logins() -> SandboxSpec:
    """A listener that asks who one is, and ACLs."""
    security = SecuritySpec(protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",), users={"guard": "secret"}, acls=True)
    return SandboxSpec(volumes=(VolumeSpec(size=Bytes(64 << 20)),), security=security)


@contextmanager
def shared(spec: SandboxSpec) -> Iterator[Sandbox]:
    sandbox = _idle.pop(repr(spec), None)
    if sandbox is None:
        sandbox = Sandbox(spec)
        sandbox.start()
    before = _as_started(sandbox)
    try:
        yield sandbox
        if _as_started(sandbox) == before:
            _make_clean(sandbox)
            _idle[repr(spec)] = sandbox
    finally:
        if repr(spec) not in _idle:
            sandbox.close()


def end_idle() -> None:
    """Before another cluster is started, and at the end: an idle one would cost a part of a processor."""
    while _idle:
        _idle.popitem()[1].close()


def _as_started(sandbox: Sandbox) -> list[tuple[int, bool, str]]:
    return [(broker.pid, broker.is_running, str(sorted(broker.properties.items()))) for broker in sandbox.brokers]


def _make_clean(sandbox: Sandbox) -> None:
    for broker in sandbox.brokers:
        for name in _OURS:
            path = sandbox.outside(broker.node.home / name)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    clean_up(sandbox)
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(broker.broker_id), {}) for broker in sandbox.brokers]
    with admin_client(sandbox) as client:
        # All that is not named goes back to its default
        client.alter_configs(brokers, incremental=False)
        groups = [group["group_id"] for group in client.list_groups()]
        if groups:
            client.delete_groups(groups)
            eventually(lambda: client.list_groups() == [])
        if sandbox.spec.security and sandbox.spec.security.acls:
            client.delete_acls([_EVERY_ACL])
            eventually(lambda: client.describe_acls(_EVERY_ACL)[0] == [])


_EVERY_ACL = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)

"""The conformance kit at home: a broker of any version on two small real disks, alone, with a plug-in, or with us."""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from brimline.model import BadInput, Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.conformance.command import Hands
from brimline.torture.hostile.world import gateway_before

_VOLUME = VolumeSpec(size=Bytes(128 << 20))
_LEFT_FREE = Bytes(16 << 20)
_OWN_ADDRESS = "ADDRESS"
"""In the value of a property: the broker's own, which nobody knows before it is there."""
_LIMIT = {"disk.max.used.percent": "80", "disk.min.free.bytes": "0"}
"""Of our own: 25 MiB free, before the last 16 that are left to fill."""


@contextmanager
def in_sandbox(options: argparse.Namespace) -> Iterator[tuple[str, Hands]]:
    spec = SandboxSpec(
        version=options.sandbox, fronted=options.brimline, volumes=(_VOLUME, _VOLUME), more_jars=tuple(options.jar)
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sandbox = stack.enter_context(Sandbox(spec))
        broker = sandbox.broker(1)
        if options.property:
            pairs = dict(_pair(text) for text in options.property)
            broker.alter_properties(
                {key: value.replace(_OWN_ADDRESS, broker.admin_address) for key, value in pairs.items()}
            )
            broker.restart()
        if options.brimline:
            stack.enter_context(gateway_before(sandbox, folder / "gateway.log", _LIMIT))
        foreign: list[Path] = []
        yield (
            sandbox.bootstrap_servers,
            Hands(
                fill=lambda log_dir: foreign.append(sandbox.fill(Path(log_dir), leave_free=_LEFT_FREE)),
                free=lambda: sandbox.unfill(foreign.pop()),
                restart=broker.restart,
                is_alive=lambda: broker.is_running,
            ),
        )


def _pair(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not found:
        raise BadInput(f"--property {text}: write KEY=VALUE")
    return key, value

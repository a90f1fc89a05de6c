"""Formatted log dirs without a JVM per broker.

Kafka refuses a log dir that its StorageTool has not formatted. What the tool writes depends on the version only,
but for three ids in ``meta.properties``: so it runs once per version, its result is kept beside the jars, and every
log dir gets a copy with its own ids. Only SCRAM users, which live in the bootstrap records, need a run of their own.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from brimline.sandbox.errors import SandboxError
from brimline.sandbox.java import kafka_command, stock_jars
from brimline.sandbox.properties import render
from brimline.sandbox.spec import SecuritySpec

_SCRAM_ITERATIONS = 4096
"""The fewest that Kafka accepts."""

_SCRATCH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


@dataclass(frozen=True, slots=True)
class FormattedDir:
    """The files of a freshly formatted log dir, by name."""

    files: dict[str, bytes]

    def write(self, log_dir: Path, *, cluster_id: str, node_id: int) -> None:
        """Format ``log_dir``, making it, as a log dir of this node."""
        log_dir.mkdir(parents=True, exist_ok=True)
        ids = {"cluster.id": cluster_id, "node.id": str(node_id), "directory.id": random_id()}
        for name, content in self.files.items():
            text = with_ids(content, ids) if name == "meta.properties" else content
            (log_dir / name).write_bytes(text)


def with_ids(meta_properties: bytes, ids: dict[str, str]) -> bytes:
    """Replace the ids that are there; older versions have no directory id, and get none."""
    text = meta_properties.decode()
    for key, value in ids.items():
        text = re.sub(rf"^{re.escape(key)}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
    return text.encode()


def random_id() -> str:
    """Kafka's Uuid text: URL-safe base64 without padding, never beginning with a dash (tools read an option)."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def formatted_dir(jars: Sequence[Path], security: SecuritySpec | None, scratch: Path) -> FormattedDir:
    """From the cache beside the jars if possible, else by one run of StorageTool in ``scratch``."""
    if security and security.scram_mechanisms:
        return _format(jars, scratch, _scram_options(security))
    kept = jars[0].parent / "formatted"
    if not kept.is_dir():
        _keep(_format(jars, scratch, ()), kept)
    return FormattedDir({path.name: path.read_bytes() for path in kept.iterdir()})


def _keep(made: FormattedDir, kept: Path) -> None:
    """Whole or not at all. Another process may be first; its result is as good as ours."""
    partial = kept.with_name(f"formatted-{os.getpid()}")
    partial.mkdir(exist_ok=True)
    for name, content in made.files.items():
        (partial / name).write_bytes(content)
    try:
        partial.rename(kept)
    except OSError:
        shutil.rmtree(partial)
        if not kept.is_dir():
            raise


def _scram_options(security: SecuritySpec) -> list[str]:
    return [
        option
        for mechanism in security.scram_mechanisms
        for name, password in security.users.items()
        for option in ("--add-scram", _scram_record(mechanism, name, password))
    ]


def _scram_record(mechanism: str, name: str, password: str) -> str:
    """With the salted password of RFC 5802, section 3: the tool cannot read a comma in a plain one."""
    digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, _SCRAM_ITERATIONS)
    fields = {"salt": _quoted_base64(salt), "saltedpassword": _quoted_base64(salted), "iterations": _SCRAM_ITERATIONS}
    return f"{mechanism}=[name={name},{','.join(f'{key}={value}' for key, value in fields.items())}]"


def _quoted_base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _format(jars: Sequence[Path], scratch: Path, options: Iterable[str]) -> FormattedDir:
    scratch.mkdir()
    log_dir = scratch / "log-dir"
    config = scratch / "server.properties"
    config.write_text(render({**_SCRATCH, "log.dirs": str(log_dir)}))
    arguments = ["format", "--cluster-id", random_id(), "--config", str(config), *options]
    command = kafka_command(stock_jars(jars), "kafka.tools.StorageTool", arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines() or ["it gave no reason"]
        raise SandboxError(f"Kafka's StorageTool could not format a log dir: {words[-1]}")
    return FormattedDir({path.name: path.read_bytes() for path in log_dir.iterdir()})

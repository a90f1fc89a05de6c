"""How the JMX bridge is reached, and the login that it asks for.

A login is made once, where the operator chose none, and kept with the guard's state. A loopback port is open to every
user of the machine, and whoever may write to a JVM's beans can make it load code and write files as the guard's user.
So the one user that there is may only read.

The standard agent does the serving: it is configured by the ``com.sun.management.jmxremote.*`` properties that
operators know from Kafka itself, and they are passed through as they are. Without any, the bridge listens on the
loopback address, without TLS, and asks for a login of its own that may only read. A port that is open to everybody, on
this machine or beyond it, must be asked for by name.
"""

import ipaddress
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from brimline.metrics.bridge_jar import MAIN_CLASS
from brimline.model import BadInput
from brimline.service.durable_files import NotRecorded, open_state, put_on_record, why_untrusted

USER = "brimline"
_ACCESS = f"{USER} readonly\n".encode()
_PASSWORD_BYTES = 24
_LONGEST_FILE = 4096
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class JmxLogin:
    folder: Path
    node_id: int

    @property
    def passwords(self) -> Path:
        return self.folder / f"jmx-{self.node_id}.password"

    @property
    def access(self) -> Path:
        return self.folder / f"jmx-{self.node_id}.access"

    def make(self) -> None:
        """What is there and usable stays: a monitoring system knows its password. Raises ``NotRecorded``."""
        if (why := why_untrusted(self.folder)) is not None:
            raise NotRecorded.since(why)
        if not _own_content(self.passwords).startswith(f"{USER} ".encode()):
            put_on_record(self.passwords, f"{USER} {secrets.token_urlsafe(_PASSWORD_BYTES)}\n".encode())
        if _own_content(self.access) != _ACCESS:
            put_on_record(self.access, _ACCESS)


def _own_content(path: Path) -> bytes:
    """Empty unless it is a plain file of this user that nobody else may open."""
    try:
        fd = open_state(path, os.O_RDONLY)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        facts = os.fstat(fd)
        is_own = facts.st_uid == os.geteuid() and not facts.st_mode & _FOR_OTHERS
        return file.read(_LONGEST_FILE) if is_own else b""


LOOPBACK = "127.0.0.1"
_AGENT = "com.sun.management.jmxremote"
_CONFIG_FILE = "com.sun.management.config.file"
PASSED_THROUGH = ("com.sun.management.", "java.rmi.", "javax.net.ssl.", "java.security.auth.login.")
"""Properties of the standard agent, of RMI, and of the TLS and login modules that they use."""

JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Xms8m",
    # 10,000 beans take 9 MB, 100,000 take 60 MB
    "-Xmx256m",
    "-XX:+ExitOnOutOfMemoryError",
    # hsperfdata files in /tmp would outlive a killed JVM
    "-XX:-UsePerfData",
    # RMI would collect all garbage every hour otherwise
    "-XX:+DisableExplicitGC",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JmxSettings:
    port: int
    host: str = LOOPBACK
    properties: Mapping[str, str] = field(default_factory=dict)
    """System properties for the JVM; names begin with one of ``PASSED_THROUGH``."""
    login: JmxLogin | None = None
    """What is asked for where ``properties`` say nothing else; ``None``: nothing."""
    java: Path | None = None
    """``None``: that of $JAVA_HOME, else of the PATH."""
    jvm_options: tuple[str, ...] = ()
    """Come after our own, so that they win."""

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise BadInput(f"the JMX port {self.port} is not between 1 and 65535")
        for name in self.properties:
            if not name.startswith(PASSED_THROUGH):
                raise BadInput(
                    f"{name} is not a property of the JMX agent: these begin with {', '.join(PASSED_THROUGH)}"
                )
        if not _is_loopback(self.host) and not self._says_who_may_connect:
            raise BadInput(
                f"JMX on {self.host} would be open to the network: set {_AGENT}.authenticate (and {_AGENT}.ssl), "
                f"to false if that is what you want"
            )

    @property
    def _says_who_may_connect(self) -> bool:
        return f"{_AGENT}.authenticate" in self.properties or _CONFIG_FILE in self.properties

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches the port may do everything, as far as can be told from here."""
        return self.system_properties().get(f"{_AGENT}.authenticate", "true").strip().lower() == "false"

    @property
    def own_login(self) -> JmxLogin | None:
        """The login that has to be there before the JVM starts, unless the operator chose another."""
        chosen = (_CONFIG_FILE, f"{_AGENT}.password.file", f"{_AGENT}.login.config")
        is_off = self.properties.get(f"{_AGENT}.authenticate", "true").strip().lower() == "false"
        return None if is_off or any(name in self.properties for name in chosen) else self.login

    def system_properties(self) -> dict[str, str]:
        """Registry and objects share one port, which is all that a firewall has to know."""
        ours = {
            f"{_AGENT}.port": str(self.port),
            f"{_AGENT}.rmi.port": str(self.port),
            f"{_AGENT}.host": self.host,
            "java.rmi.server.hostname": self.host,
        }
        if not self._says_who_may_connect:
            ours |= {f"{_AGENT}.authenticate": "true" if self.login else "false", f"{_AGENT}.ssl": "false"}
        if (login := self.own_login) is not None:
            ours |= {
                f"{_AGENT}.password.file": str(login.passwords),
                f"{_AGENT}.access.file": str(login.access),
                # The JVM would put a hash in the password's place, and nobody could look it up any more
                f"{_AGENT}.password.toHashes": "false",
            }
        return ours | dict(self.properties)

    def argument_file(self, jar: Path) -> str:
        """Everything after ``java``, for ``java @FILE``: passwords of key stores must not show in ``ps``."""
        properties = [f"-D{name}={value}" for name, value in self.system_properties().items()]
        arguments = [*JVM_OPTIONS, *self.jvm_options, *properties, "-cp", str(jar), MAIN_CLASS]
        return "".join(f"{_quoted(argument)}\n" for argument in arguments)


def _quoted(argument: str) -> str:
    """A line of an argument file: in quotes a backslash escapes, and a line feed has its own escape."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

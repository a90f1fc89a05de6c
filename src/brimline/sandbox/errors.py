"""What can go wrong with a sandbox, one tree, each error one sentence for the person who reads it.

::

    BrimlineError
    └── SandboxError
        ├── BadSpec               the cluster that was asked for cannot exist (caller's fault)
        ├── MissingPart           this machine lacks a part: Java, Ivy, a command, a package
        ├── NamespaceRefused      what was asked for needs private mounts, and the kernel gives us none
        ├── JarMismatch           a downloaded jar is not the one in the lock file
        ├── DownloadFailed        the package registry did not give us Kafka's jars
        ├── BrokerFailed          a broker or controller died or does not answer; carries its last log lines
        └── SandboxGone           the sandbox has ended, or was ended from outside
"""

from brimline.model import BrimlineError


class SandboxError(BrimlineError):
    """Everything the sandbox raises on purpose."""


class BadSpec(SandboxError):
    """The cluster that was asked for cannot exist."""


class MissingPart(SandboxError):
    """Something the sandbox is built on is not on this machine."""


class NamespaceRefused(SandboxError):
    """The kernel, or the container around us, forbids the private mounts that this needs."""


class JarMismatch(SandboxError):
    """A jar's checksum is not the one in the lock file. Nothing was installed."""


class DownloadFailed(SandboxError):
    """Ivy could not get every jar. Nothing was installed."""


class BrokerFailed(SandboxError):
    """A Kafka process died or does not answer in time."""

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(message if not log_tail else f"{message}; its last lines:\n{log_tail}")
        self.log_tail = log_tail


class SandboxGone(SandboxError):
    """The sandbox has ended: there is nobody left to ask."""

"""The parent's side of a sandbox: makes the namespaces, talks to the supervisor, looks inside."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any

from brimline.model import Bytes
from brimline.sandbox.errors import MissingPart, NamespaceRefused, SandboxError, SandboxGone
from brimline.sandbox.jars.cache import cache_dir
from brimline.sandbox.supervisor import read_line

_PRIVATE = ("--mount", "--pid", "--fork", "--kill-child")


FORCE_PLAIN = "BRIMLINE_SANDBOX_PLAIN"
"""Set to 1 in the environment: do without private mounts even where they are to be had."""

_MEMORY = Path("/dev/shm")
_REMEDY = (
    "run as root (in a container: with CAP_SYS_ADMIN), or allow unprivileged user namespaces (sysctl "
    "kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, "
    "user.max_user_namespaces above 0)"
)


class Namespace:
    """Private mounts and processes, alive until ``close`` or until this process ends in whatever way.

    Where the kernel refuses them: plain folders and processes, which end in the same ways.
    """

    def __init__(self, size: Bytes) -> None:
        """``size`` is what all volumes are to hold: plain folders are put where there is so much room."""
        self._lock = threading.Lock()
        self.is_user = False
        self.refusal: str | None = None
        """Why there are no private mounts; ``None`` if there are."""
        refusals = [f"{FORCE_PLAIN} is set"] if os.environ.get(FORCE_PLAIN, "") not in ("", "0") else []
        base = cache_dir() / "sandbox"
        _make_mount_point(base)
        # Under /proc/…/root an absolute symbolic link would lead back out
        base = base.resolve()
        if not refusals:
            for flags in _ways():
                refused = self._start(["unshare", *flags, "--"], [str(base)])
                if refused is None:
                    self.is_user = "--user" in flags
                    return
                refusals.append(refused)
        self.refusal = "; ".join(dict.fromkeys(refusals))
        plain = base.with_name("plain-sandbox-"), _MEMORY / f"brimline-sandbox-{os.geteuid()}-", size
        refused = self._start([], list(map(str, plain)))
        if refused is not None:
            raise SandboxError(f"no folder for a sandbox: {refused}")

    def _start(self, prefix: Sequence[str], places: Sequence[str]) -> str | None:
        """Start a supervisor; returns why it could not work."""
        self._process = _supervise(prefix, places)
        greeting = _read_answer(self._process) or {}
        if "pid" not in greeting:
            return _end(self._process) or greeting.get("error", "no answer")
        self.pid: int = greeting["pid"]
        self.base = Path(greeting["base"])
        """Where everything lives. Every private one has this same path, and sees only its own files under it."""
        self.volumes = Path(greeting["volumes"])
        """Where the volumes are: there too, but for plain folders that main memory has room for."""
        return None

    def why_plain(self) -> str:
        """One sentence for whoever gets plain folders and asked for volumes."""
        return (
            f"no private mounts ({self.refusal}): volumes are plain, unbounded folders in {self.volumes.parent}; "
            f"for real ones, {_REMEDY}"
        )

    def outside(self, path: Path) -> Path:
        """Where this process finds a file of the sandbox; valid while the sandbox lives."""
        if self.refusal is not None:
            return path
        return Path(f"/proc/{self.pid}/root") / path.relative_to("/")

    def inside(self, argv: Sequence[str]) -> list[str]:
        """The same command, run where the sandbox's files are under their own names."""
        if self.refusal is not None:
            return list(argv)
        user = ["--user", "--preserve-credentials"] if self.is_user else []
        # The root too: in a chroot, or after rename, the mount namespace's own root is not ours. And the working
        # directory, entered in there: one that lies outside that root starts no JVM.
        place = ["--mount", "--root", "--", "env", f"--chdir={Path.cwd()}"]
        return ["nsenter", "--target", str(self.pid), *user, *place, *argv]

    def rename(self, name: Path) -> bool:
        """Call ``base`` so in here from now on; ``False``: no private mounts, or this machine uses the name."""
        if self.refusal is not None or name.exists():
            return False
        self._ask(do="rename", base=str(self.base), name=str(name))
        self.base = self.volumes = name
        return True

    def mount(self, path: Path, filesystem: str, size: Bytes) -> None:
        if filesystem == "ext4":
            if self.refusal is not None:
                raise NamespaceRefused(f"no ext4 volume without private mounts ({self.refusal}): {_REMEDY}")
            if self.is_user:
                raise NamespaceRefused("an ext4 volume is loop-mounted, which only root may do: ask for tmpfs")
            if which("mkfs.ext4") is None:
                raise MissingPart("mkfs.ext4 is not on the PATH: install e2fsprogs, or ask for tmpfs volumes")
        self._ask(do="mount", path=str(path), filesystem=filesystem, size=size)

    def reserve_ports(self, count: int) -> list[int]:
        ports: list[int] = self._ask(do="reserve", count=count)["ports"]
        return ports

    def spawn(self, name: str, argv: Sequence[str], *, directory: Path, output: Path) -> int:
        """Start a process; returns its pid as this process sees it."""
        pid: int = self._ask(do="spawn", name=name, argv=list(argv), directory=str(directory), output=str(output))[
            "pid"
        ]
        return pid

    def signal(self, name: str, number: int) -> None:
        self._ask(do="signal", name=name, number=number)

    def exit_code(self, name: str) -> int | None:
        """How the process ended (negative: by that signal); ``None`` while it runs."""
        code: int | None = self._ask(do="status", name=name)["exit"]
        return code

    def close(self) -> None:
        """End it all. Returns when the kernel has taken back every process and mount; again is fine."""
        if self._process.returncode is None:
            _end(self._process)

    def _ask(self, **command: object) -> dict[str, Any]:
        with self._lock:
            stdin = self._process.stdin
            if stdin is None or stdin.closed:
                raise SandboxGone("the sandbox has ended")
            try:
                stdin.write(json.dumps(command).encode() + b"\n")
                stdin.flush()
            except BrokenPipeError:
                raise SandboxGone("the sandbox's first process was killed from outside") from None
            answer = _read_answer(self._process)
        if answer is None:
            raise SandboxGone("the sandbox's first process was killed from outside")
        if "error" in answer:
            raise SandboxError(f"the sandbox could not {command['do']}: {answer['error']}")
        return answer


def _ways() -> Iterator[tuple[str, ...]]:
    """Root needs no user namespace (and may loop-mount without); a root without rights may still get one."""
    if os.geteuid() == 0:
        yield _PRIVATE
    yield ("--user", "--map-root-user", *_PRIVATE)


def _make_mount_point(base: Path) -> None:
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            f"cannot make the mount point {base} ({error.strerror}): set XDG_CACHE_HOME to a directory you own"
        ) from error


def _supervise(prefix: Sequence[str], places: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start the supervisor, tied to our life by a pidfd; its own session keeps ctrl-C ours to handle."""
    if prefix and which(prefix[0]) is None:
        raise MissingPart(f"{prefix[0]} is not on the PATH: install util-linux")
    supervisor = Path(__file__).with_name("supervisor.py")
    ourselves = os.pidfd_open(os.getpid())
    try:
        return subprocess.Popen(
            [*prefix, sys.executable, "-I", str(supervisor), str(ourselves), *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(ourselves,),
            start_new_session=True,
        )
    finally:
        os.close(ourselves)


def _read_answer(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """One answer; ``None`` when the process is gone."""
    assert process.stdout is not None
    line = process.stdout.readline()
    answer: dict[str, Any] | None = read_line(line) if line.endswith(b"\n") else None
    return answer


def _end(process: subprocess.Popen[bytes]) -> str:
    """Close its input, wait for its end, return what it had to complain."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with suppress(BrokenPipeError):  # it went first, and that is all we wanted
        process.stdin.close()
    complaint = process.stderr.read().decode(errors="replace")
    process.wait()
    process.stdout.close()
    process.stderr.close()
    return " ".join(complaint.split())


def why_no_real_volumes() -> str | None:
    """What the kernel says to private mounts here, in a few words; ``None`` if it gives them."""
    namespace = Namespace(Bytes(0))
    namespace.close()
    return namespace.refusal

"""The first process of a sandbox: PID 1 of its own PID namespace, in its own mount namespace.

Invariant: nothing that a sandbox makes exists outside this process's namespaces. When this process ends, for
whatever reason, the kernel kills every broker (they are in its PID namespace) and takes every mount away (they
are in its mount namespace). Cleaning up is therefore nobody's job, and nothing can be left behind.

Where no namespaces are to be had it is a plain process (``PlainSupervisor``), with folders instead of volumes. Then
the kernel still kills every broker when this process ends, and this process removes its folders when it ends. If it
is killed itself they stay until the next start, which removes every folder that nobody holds a lock on.

It ends when its input ends, when the process that made it dies (a pidfd tells, even if a forked child of that
process still holds the pipe open), or when it is killed. One JSON command a line comes in, one JSON answer goes
out. It is run as a plain file by ``unshare``, before anything of Brimline is importable, hence the standard
library only.
"""

import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Answer = dict[str, Any]

PR_SET_PDEATHSIG = 1
BESIDE_THE_VOLUMES = 64 << 20
"""What logs and metadata may take on the file system that has room for the volumes."""


class Supervisor:
    """Runs commands; remembers its processes by name and holds the cluster's ports."""

    def __init__(self) -> None:
        self._processes: dict[str, tuple[int, int]] = {}  # name: (pid in here, pid outside)
        self._exits: dict[int, int] = {}
        self._ports: list[socket.socket] = []

    def obey(self, command: Answer) -> Answer:
        arguments = {key: value for key, value in command.items() if key != "do"}
        verbs: dict[str, Callable[..., Answer]] = {
            "mount": self.mount,
            "rename": self.rename,
            "reserve": self.reserve,
            "spawn": self.spawn,
            "signal": self.signal,
            "status": self.status,
        }
        try:
            return verbs[command["do"]](**arguments)
        except OSError as error:
            return {"error": str(error)}

    def mount(self, path: str, filesystem: str, size: int) -> Answer:
        """A bounded volume: a tmpfs, or an ext4 in a sparse image file beside the mount point."""
        Path(path).mkdir(parents=True)
        if filesystem == "tmpfs":
            return run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "brimline", path])
        image = f"{path}.ext4"
        with Path(image).open("wb") as file:
            file.truncate(size)
        made = run(["mkfs.ext4", "-q", "-F", image])
        return made if "error" in made else run(["mount", "-t", "ext4", "-o", "loop", image, path])

    def rename(self, base: str, name: str) -> Answer:
        """From now on ``base`` is called ``name``, in a root of our own that has all that is in the present one."""
        root = Path(base, "root")
        root.mkdir()
        for entry in Path("/").iterdir():
            place = root / entry.name
            if entry.is_symlink():
                place.symlink_to(entry.readlink())
            elif entry.is_dir():
                place.mkdir()
                bound = run(["mount", "--rbind", str(entry), str(place)])
                if "error" in bound:
                    return bound
        place = root / name.lstrip("/")
        place.mkdir()
        bound = run(["mount", "--bind", base, str(place)])
        if "error" not in bound:
            os.chroot(root)
            os.chdir("/")
        return bound

    def reserve(self, count: int) -> Answer:
        """Free loopback ports, ours for as long as the sandbox lives.

        A bound socket that does not listen keeps everybody else away from its port, whereas a broker may bind it:
        both allow reuse of the address, as Java's server sockets do. Allowing it before the bind would let the
        kernel give us a port that someone else holds in the same way.
        """
        held = []
        for _ in range(count):
            holder = socket.socket()
            holder.bind(("127.0.0.1", 0))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.append(holder)
        self._ports += held
        return {"ports": [holder.getsockname()[1] for holder in held]}

    def spawn(self, name: str, argv: list[str], directory: str, output: str) -> Answer:
        """Start a process in its own session, with its output in a file; answers its pid as seen outside."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            run_child(self.settle_child, argv, directory, output, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            outer_pid, _, failure = pipe.read().decode().partition(" ")
        if failure:
            return {"error": failure}
        self._processes[name] = (pid, int(outer_pid))
        return {"pid": int(outer_pid)}

    def settle_child(self) -> int:
        """In the forked child: its pid as outsiders see it. /proc still belongs to the PID namespace outside."""
        return int(str(Path("/proc/self").readlink()))

    def signal(self, name: str, number: int) -> Answer:
        pid, _ = self._processes[name]
        self.reap()
        if pid not in self._exits:
            os.kill(pid, number)
        return {}

    def status(self, name: str) -> Answer:
        self.reap()
        pid, outer_pid = self._processes[name]
        return {"pid": outer_pid, "exit": self._exits.get(pid)}

    def reap(self) -> None:
        """As PID 1 we inherit every orphan: nobody else will ever wait for them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._exits[pid] = os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        """Kill what runs, each with what it has started; what is waited for counts as our processor time."""
        self.reap()
        running = [pid for pid, _ in self._processes.values() if pid not in self._exits]
        for pid in running:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        for pid in running:
            os.waitpid(pid, 0)


class PlainSupervisor(Supervisor):
    """Without namespaces: folders instead of volumes, and children that the kernel kills when this process ends."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._libc = ctypes.CDLL(None, use_errno=True)

    def mount(self, path: str, filesystem: str, size: int) -> Answer:
        """A folder, as large as the file system that it is on."""
        Path(path).mkdir(parents=True)
        return {}

    def settle_child(self) -> int:
        """In the forked child: die with the parent, and be sure that it has not died already."""
        if self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != self._pid:
            os._exit(127)
        return os.getpid()


def run_child(settle: Callable[[], int], argv: list[str], directory: str, output: str, writer: int) -> None:
    """The forked child: tell the outer pid, then become the program. The pipe closes by itself on success."""
    try:
        os.write(writer, str(settle()).encode())
        os.setsid()
        os.chdir(directory)
        log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(writer, f" {error}".encode())
    finally:
        os._exit(127)


def run(argv: list[str]) -> Answer:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return {}
    return {"error": " ".join(done.stderr.split()) or f"{argv[0]} failed with exit code {done.returncode}"}


def serve(supervisor: Supervisor, parent: int) -> None:
    """Answer commands until the input ends or the parent is gone."""
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    os.set_blocking(wake_reader, False)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pending = b""
    with selectors.DefaultSelector() as selector:
        for descriptor in (0, parent, wake_reader):
            selector.register(descriptor, selectors.EVENT_READ)
        while parent not in (ready := {key.fd for key, _ in selector.select()}):
            if wake_reader in ready:
                os.read(wake_reader, 4096)
                supervisor.reap()
            if 0 in ready:
                received = os.read(0, 65536)
                if not received:
                    return
                *lines, pending = (pending + received).split(b"\n")
                for line in lines:
                    say(supervisor.obey(read_line(line)))


def read_line(line: str | bytes) -> dict[str, Any]:
    """A command, an answer, or what another process of a sandbox tells in a line: who hears it reads with this too."""
    document: dict[str, Any] = json.loads(line)
    return document


def say(answer: Answer) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def own(prefix: str) -> str:
    """A new folder of this name and a few letters, with a lock on it for as long as this process lives."""
    while True:
        folder = tempfile.mkdtemp(prefix=Path(prefix).name, dir=Path(prefix).parent)
        # Between the two somebody may have taken it for a folder that nobody owns.
        if lock(folder) is not None and Path(folder).is_dir():
            return folder


def lock(folder: str | Path) -> int | None:
    """A descriptor that holds the folder's lock; ``None`` if another process holds it, or if the folder is not ours."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except BlockingIOError:
        pass  # its owner lives
    os.close(descriptor)
    return None


def sweep(prefix: str) -> None:
    """Remove the folders of supervisors that were killed."""
    for folder in Path(prefix).parent.glob(f"{Path(prefix).name}*"):
        descriptor = lock(folder)
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def has_room(directory: Path, size: int) -> bool:
    """Whether it may be written and could take so much."""
    if not os.access(directory, os.W_OK | os.X_OK):
        return False
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize >= size


def serve_private(base: str, parent: int) -> None:
    """Hide ``base``, an empty directory, under a file system of our own, then serve."""
    mounted = run(["mount", "-t", "tmpfs", "-o", "mode=0755", "brimline", base])
    if "error" in mounted:
        say(mounted)
        return
    say({"pid": int(str(Path("/proc/self").readlink())), "base": base, "volumes": base})
    supervisor = Supervisor()
    serve(supervisor, parent)
    supervisor.end()


def serve_plain(home: str, memory: str, size: int, parent: int) -> None:
    """Serve in a new folder named after ``home``, with the volumes in one named after ``memory`` if they fit there."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    supervisor = PlainSupervisor()
    folders: list[str] = []
    try:
        for prefix in (home, memory):
            sweep(prefix)
        folders.append(own(home))
        if has_room(Path(memory).parent, size + BESIDE_THE_VOLUMES):
            folders.append(own(memory))
        say({"pid": os.getpid(), "base": folders[0], "volumes": folders[-1]})
        serve(supervisor, parent)
    except OSError as error:
        with suppress(BrokenPipeError):
            say({"error": str(error)})
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        supervisor.end()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def main(parent: str, base: str, memory: str = "", size: str = "") -> None:
    """With ``memory``, a place in main memory, no namespaces are to be had."""
    os.set_inheritable(int(parent), False)  # noqa: FBT003
    if memory:
        serve_plain(base, memory, int(size), int(parent))
    else:
        serve_private(base, int(parent))


if __name__ == "__main__":
    main(*sys.argv[1:])

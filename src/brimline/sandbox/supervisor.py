"""The first process of a sandbox: PID 1 of its own PID namespace, in its own mount namespace.

Invariant: nothing that a sandbox makes exists outside this process's namespaces. When this process ends, for
whatever reason, the kernel kills every broker (they are in its PID namespace) and takes every mount away (they
are in its mount namespace). Cleaning up is therefore nobody's job, and nothing can be left behind.

It ends when its input ends, when the process that made it dies (a pidfd tells, even if a forked child of that
process still holds the pipe open), or when it is killed. One JSON command a line comes in, one JSON answer goes
out. It is run as a plain file by ``unshare``, before anything of Brimline is importable, hence the standard
library only.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]


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
            run_child(argv, directory, output, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            outer_pid, _, failure = pipe.read().decode().partition(" ")
        if failure:
            return {"error": failure}
        self._processes[name] = (pid, int(outer_pid))
        return {"pid": int(outer_pid)}

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


def run_child(argv: list[str], directory: str, output: str, writer: int) -> None:
    """The forked child: tell the outer pid, then become the program. The pipe closes by itself on success.

    /proc still belongs to the PID namespace outside, so our own link in it names the pid that outsiders see.
    """
    os.write(writer, str(Path("/proc/self").readlink()).encode())
    try:
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
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if parent in ready:
                return
            if wake_reader in ready:
                os.read(wake_reader, 4096)
                supervisor.reap()
            if 0 in ready:
                received = os.read(0, 65536)
                if not received:
                    return
                *lines, pending = (pending + received).split(b"\n")
                for line in lines:
                    say(supervisor.obey(json.loads(line)))


def say(answer: Answer) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def main(base: str, parent: str) -> None:
    """Hide ``base``, an empty directory, under a file system of our own, then serve."""
    os.set_inheritable(int(parent), False)  # noqa: FBT003
    mounted = run(["mount", "-t", "tmpfs", "-o", "mode=0755", "brimline", base])
    if "error" in mounted:
        say(mounted)
        return
    say({"pid": int(str(Path("/proc/self").readlink()))})
    serve(Supervisor(), int(parent))


if __name__ == "__main__":
    main(*sys.argv[1:])

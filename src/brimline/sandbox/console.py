"""What a person may tell a running sandbox, one line at a time."""

import os
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path

from brimline.model import Bytes, human_bytes, human_percent, parse_bytes, used_percent
from brimline.sandbox.cluster import Sandbox
from brimline.sandbox.errors import BadSpec

HELP = """\
fill BROKER LOG_DIR 90%    a foreign file fills the volume under that log dir (counted from 0) to 90 %
fill BROKER LOG_DIR 10MB   … until 10 MB are left
unfill                     remove the foreign files
stop BROKER                a clean shutdown
kill BROKER                kill -9
start BROKER               start it again and wait until it answers
status                     brokers and volumes
quit                       end and remove the sandbox"""


class Console:
    """Obeys one line at a time and says what came of it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._foreign_files: list[Path] = []

    def obey(self, line: str) -> str:
        """The answer to a command; what cannot be done raises a ``SandboxError`` that says why."""
        verb, *words = line.split()
        verbs: dict[str, Callable[..., str]] = {
            "fill": self.fill,
            "unfill": self.unfill,
            "stop": self.stop,
            "kill": self.kill,
            "start": self.start,
            "status": self.status,
            "help": lambda: HELP,
        }
        if verb not in verbs:
            raise BadSpec(f"no command {verb}: try help")
        if len(words) != len(signature(verbs[verb]).parameters):
            raise BadSpec(f"{verb} takes other arguments: try help")
        return verbs[verb](*words)

    def fill(self, broker_id: str, log_dir: str, target: str) -> str:
        broker = self._sandbox.broker(_number(broker_id))
        if _number(log_dir) >= len(broker.log_dirs):
            raise BadSpec(f"broker {broker_id} has {len(broker.log_dirs)} log dirs, counted from 0")
        path = broker.log_dirs[_number(log_dir)]
        total, _ = self._space(path)
        self._foreign_files.append(self._sandbox.fill(path, leave_free=leave_free(target, total)))
        return self._volume_line(path)

    def unfill(self) -> str:
        count = len(self._foreign_files)
        while self._foreign_files:
            self._sandbox.unfill(self._foreign_files.pop())
        return f"{count} foreign files removed"

    def stop(self, broker_id: str) -> str:
        self._sandbox.broker(_number(broker_id)).stop()
        return f"broker {broker_id} is stopped"

    def kill(self, broker_id: str) -> str:
        self._sandbox.broker(_number(broker_id)).kill()
        return f"broker {broker_id} is killed"

    def start(self, broker_id: str) -> str:
        self._sandbox.broker(_number(broker_id)).start()
        return f"broker {broker_id} is up"

    def status(self) -> str:
        return "\n".join(self._status_lines())

    def _status_lines(self) -> Iterator[str]:
        for broker in self._sandbox.brokers:
            state = f"up, pid {broker.pid}" if broker.is_running else f"down, exit code {broker.exit_code}"
            yield f"broker {broker.broker_id} ({broker.address}): {state}"
            for path in broker.log_dirs:
                yield f"  {self._volume_line(path)}"

    def _volume_line(self, log_dir: Path) -> str:
        total, usable = self._space(log_dir)
        used = human_percent(used_percent(total, usable))
        return f"{self._sandbox.outside(log_dir)}  {human_bytes(usable)} of {human_bytes(total)} usable, {used} used"

    def _space(self, log_dir: Path) -> tuple[Bytes, Bytes]:
        status = os.statvfs(self._sandbox.outside(log_dir))
        return Bytes(status.f_blocks * status.f_frsize), Bytes(status.f_bavail * status.f_frsize)


def leave_free(target: str, total: Bytes) -> Bytes:
    """``90%`` means full to 90 %, a size means that much is left."""
    try:
        if target.endswith("%"):
            return Bytes(max(0, int(total * (100 - float(target[:-1])) / 100)))
        return parse_bytes(target)
    except ValueError:
        raise BadSpec(f"{target} is neither a percentage such as 90% nor a size such as 10MB") from None


def _number(text: str) -> int:
    if not text.isdecimal():
        raise BadSpec(f"{text} is not a number")
    return int(text)

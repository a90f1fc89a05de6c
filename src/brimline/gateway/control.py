"""The gateway's control socket: one JSON object a line each way, on a Unix socket that only its owner may open.

What is said there is in ``documents.orders``. An order of another version is refused.

It has threads of its own, because some commands wait for a disk (a fence by hand is on record before it is in force)
and the frames of clients must not. A decision of the guard is in force when its answer is written.
"""

import json
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from brimline import __version__
from brimline.documents.codec import read_json
from brimline.documents.orders import VERSION
from brimline.model import BadInput, BrimlineError

Command = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From the request to what the answer has besides ``ok``; a ``BrimlineError`` is the answer's error."""

LONGEST_LINE = 16 << 20
"""Fifty thousand partitions with the longest names. Only its owner may speak here."""
MOST_CLIENTS = 32
_SILENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
_ENCODER = json.JSONEncoder()


class ControlServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_CLIENTS

    def __init__(self, path: Path, commands: Mapping[str, Command]) -> None:
        """Whoever makes it holds the lock on the state dir: a socket that stands there is of a dead gateway."""
        self._path = path
        self._commands = commands
        self._seats = threading.BoundedSemaphore(MOST_CLIENTS)
        path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            super().__init__(str(path), _Client)
        finally:
            os.umask(mask)
        self._thread = threading.Thread(target=self.serve_forever, name="control", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        with suppress(OSError):  # a state dir that is read-only meanwhile: the next start removes it
            self._path.unlink(missing_ok=True)

    def get_request(self) -> tuple[socket.socket, str]:
        try:
            return super().get_request()
        except OSError:
            # No descriptor is left, and the client still waits: asking again at once would take the forwarder's time.
            time.sleep(_PAUSE_SECONDS)
            raise

    def verify_request(self, request: object, client_address: object) -> bool:
        """Nobody needs so many connections: one more is closed."""
        return self._seats.acquire(blocking=False)

    def leave(self) -> None:
        self._seats.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error: this is a bug, and for whoever hears of those of other threads."""
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def answer(self, line: bytes) -> bytes:
        """Never fails: what cannot be understood is answered so."""
        try:
            document = {"v": VERSION, "ok": True, **self._obeyed(line)}
        except BrimlineError as problem:
            document = {"v": VERSION, "ok": False, "error": str(problem)}
        # In many small steps: json.dumps is a single one, and the forwarder could not go on before its end.
        return "".join(_ENCODER.iterencode(document)).encode() + b"\n"

    def _obeyed(self, line: bytes) -> Mapping[str, Any]:
        try:
            request = read_json(dict[str, Any], line)
        except ValueError:
            raise BadInput("not one JSON object per line") from None
        version = request.get("v", VERSION)
        if version != VERSION:
            raise BadInput(
                f"an order of version {version}, and this gateway (brimline {__version__}) understands version "
                f"{VERSION}: start it again with the newer brimline"
            )
        operation = request.get("op")
        if not isinstance(operation, str) or operation not in self._commands:
            raise BadInput(f"no such operation; known: {', '.join(self._commands)}")
        return self._commands[operation](request)


class _Client(socketserver.StreamRequestHandler):
    server: ControlServer
    timeout = _SILENCE_SECONDS

    def handle(self) -> None:
        with suppress(OSError):  # the client has gone, or says nothing and takes nothing
            while line := self.rfile.readline(LONGEST_LINE):
                if not line.endswith(b"\n"):
                    return
                self.wfile.write(self.server.answer(line))

    def finish(self) -> None:
        self.server.leave()
        with suppress(OSError):
            super().finish()

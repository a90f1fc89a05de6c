"""A process that ends between the two steps of a look is gone; a port that was given out is nobody else's."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import children, command_line, free_port, is_alive
from tests.waiting import eventually


@pytest.mark.parametrize(("look", "gone"), [(is_alive, False), (command_line, ""), (children, [])])
def test_a_process_that_ends_once_its_file_is_open_is_gone(
    look: Callable[[int], object], gone: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = subprocess.Popen(["sleep", "3600"])
    opens, opened = Path.open, []

    def ends_then(path: Path, *arguments: object, **named: object) -> object:
        stream = opens(path, *arguments, **named)  # type: ignore[call-overload]
        process.kill()
        process.wait()
        opened.append(path)
        return stream

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", ends_then)
        assert look(process.pid) == gone

    assert len(opened) == 1
    assert look(process.pid) == gone


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen(["sleep", "3600"]) as process:
        assert is_alive(process.pid)
        process.kill()
        eventually(lambda: not is_alive(process.pid))
        assert Path(f"/proc/{process.pid}").exists()


def test_a_port_is_kept_from_others_and_open_to_a_server_of_java() -> None:
    port = free_port()

    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))
    with socket.socket() as java:
        java.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        java.bind(("127.0.0.1", port))
        java.listen()

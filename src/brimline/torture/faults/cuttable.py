"""A plain forwarder between two ports that a test can cut: for networks that lose one way and keep the others."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Cuttable:
    """From when it is made until ``close``. While it is cut, what arrives is closed at once."""

    def __init__(self, port: int, upstream: int) -> None:
        self._upstream = upstream
        self._is_cut = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", port))
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        # Wakes the thread that waits in it, which a close alone does not; and a thread that had not noticed the close
        # could accept the clients of whoever gets the number next.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._forward(client)

    def _forward(self, client: socket.socket) -> None:
        with self._lock:
            if self._is_cut:
                client.close()
                return
            try:
                upstream = socket.create_connection(("127.0.0.1", self._upstream))
            except OSError:  # nobody is there just now: so it is for who came
                client.close()
                return
            self._open |= {client, upstream}
        for source, sink in ((client, upstream), (upstream, client)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while received := source.recv(1 << 16):
                sink.sendall(received)
        with self._lock:
            for each in (source, sink):
                self._open.discard(each)
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


@contextmanager
def cuttable(port: int, upstream: int) -> Iterator[Cuttable]:
    forwarder = Cuttable(port, upstream)
    try:
        yield forwarder
    finally:
        forwarder.close()

"""A real S3 server (moto's) in a process of its own, asked over HTTP, that may fail one request in ten.

In a process of its own because delta-rs holds the interpreter while it waits for an answer.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from urllib.request import Request, urlopen

KEY, SECRET = "key-of-the-tests", "secret-of-the-tests"
BUCKET = "fleet"
FAILED = "/failed"
"""Asked for, it says how many requests there were, and how many failed."""
SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Failing:
    """Every n-th request is answered with 503: by turns before it was carried out, and after. 0: none is.

    Below 0 each commit of a table is, once, after it was carried out.
    """

    def __init__(self, app: App, one_in: int) -> None:
        self._app, self._one_in, self._numbers = app, one_in, count(1)
        self._asked = self._failed = 0
        self._lost: set[str] = set()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == FAILED:
            start("200 OK", [])
            return [f"{self._asked} {self._failed}".encode()]
        self._asked = next(self._numbers)
        if not self._is_failed(environ):
            return self._app(environ, start)
        self._failed += 1
        if self._failed % 2 or self._one_in < 0:
            list(self._app(environ, lambda *_: lambda _: None))
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(SLOW_DOWN)))])
        return [SLOW_DOWN]

    def _is_failed(self, environ: dict[str, Any]) -> bool:
        if self._one_in >= 0:
            return bool(self._one_in) and not self._asked % self._one_in
        path = environ["PATH_INFO"]
        is_failed = environ["REQUEST_METHOD"] == "PUT" and "/_delta_log/" in path and path not in self._lost
        self._lost.add(path)
        return is_failed


def serve(one_in: int) -> None:
    """Until its input ends."""
    import threading

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: object, **__: object) -> None:
            """Nobody reads it."""

    app = Failing(DomainDispatcherApplication(create_backend_app), one_in)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()


@contextmanager
def s3_server(one_in: int = 0) -> Iterator[dict[str, str]]:
    """The environment that leads to it. It has an empty bucket."""
    command = [sys.executable, "-m", "tests.fleet.s3", str(one_in)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = f"http://127.0.0.1:{int(server.stdout.readline())}"
            urlopen(Request(f"{address}/{BUCKET}", method="PUT")).close()
            yield {
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": address,
                "AWS_ALLOW_HTTP": "true",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
        finally:
            server.kill()


def failed_of(environment: dict[str, str]) -> tuple[int, int]:
    """Requests, and how many of them failed."""
    with urlopen(f"{environment['AWS_ENDPOINT_URL']}{FAILED}") as answer:
        asked, failed = answer.read().decode().split()
    return int(asked), int(failed)


if __name__ == "__main__":
    serve(int(sys.argv[1]))

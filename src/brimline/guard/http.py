"""The guard's HTTP server, for scrapers and people: GET and HEAD, one answer per connection.

**Invariant.** No client can harm the guard, or keep others from learning that it lives. Headers, time and number of
connections are bounded, and everything runs in threads of its own. Whoever connects and asks nothing gives way to the
next one, the oldest first. A client that reads slowly holds one answer for at most the write timeout; when there are
many of those, large pages are refused, and small ones, which nobody has to wait for, are not. Rendering happens outside
the event loop, in two threads at most, one for small pages, and one for those that look at a disk.

The pages are ``/`` and ``/disk`` for people, ``/metrics``, ``/healthz``, ``/readyz``, ``/v1/state`` and
``/v1/history``; nothing here writes.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus

from brimline.documents.guard_state import GuardState
from brimline.documents.history import Timeline, history_text
from brimline.guard.state_document import state_document
from brimline.metrics.board import MetricBoard
from brimline.metrics.exposition import expose
from brimline.metrics.prometheus import PrometheusRenderer
from brimline.model import BadInput
from brimline.pages import html
from brimline.pages.disk_page import DiskQuery, DiskSeen, disk_answer
from brimline.pages.guard_page import guard_page
from brimline.pages.parts import problem_page

MAX_HEADER_BYTES = 8192
MAX_ANSWERS = 32
MAX_UNFINISHED = 256
"""Requests that have not come yet, or not whole."""
READ_TIMEOUT = 10.0
WRITE_TIMEOUT = 30.0
LINGER = 1.0
_CHUNK = 1 << 16
_LINGER_READS = 16
_RENDERING_THREADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """``headers`` have lower-case names."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[HttpRequest], HttpResponse]


class HttpServer:
    """``start`` returns when the port is bound; ``respond`` is called from threads."""

    def __init__(
        self,
        host: str,
        port: int,
        respond: Respond,
        small: Collection[str] = (),
        slow: Collection[str] = (),
        *,
        asked_for: str = "",
    ) -> None:
        """``small``: paths whose answers are a line or two. ``slow``: those that wait for a disk or a broker, one after
        the other. ``asked_for``: how the address was given, for errors."""
        self._asked_for = asked_for or f"brimline.metrics.host={host}, brimline.metrics.port={port}"
        self._host = host
        self._port = port
        self._respond = respond
        self._small = frozenset(small)
        self._slow = frozenset(slow)
        self._answers = 0
        self._unfinished: dict[asyncio.StreamWriter, None] = {}
        self._loop = asyncio.new_event_loop()
        self._renderers = ThreadPoolExecutor(_RENDERING_THREADS, thread_name_prefix="render")
        self._small_renderer = ThreadPoolExecutor(1, thread_name_prefix="render-small")
        self._slow_renderer = ThreadPoolExecutor(1, thread_name_prefix="render-slow")
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)
        self._server: asyncio.Server | None = None

    def start(self) -> int:
        """The port that is served; ``BadInput`` when it cannot be."""
        self._thread.start()
        try:
            self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        except (OSError, UnicodeError) as failure:
            self.stop()
            why = "not a host name" if isinstance(failure, UnicodeError) else failure.strerror or failure
            raise BadInput(f"{self._asked_for}: cannot listen: {why}") from failure
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for renderer in (self._renderers, self._small_renderer, self._slow_renderer):
            renderer.shutdown(wait=False, cancel_futures=True)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, self._host, self._port, limit=MAX_HEADER_BYTES)

    async def _shut_down(self) -> None:
        if self._server is not None:
            self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._read(reader, writer)
            if isinstance(request, HttpRequest) and request.path in self._small:
                await self._answer(request, writer, self._small_renderer)
            else:
                await self._answer_in_turn(request, reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()  # the client went away, is too slow, or had to give way: it will ask again
        finally:
            writer.close()

    async def _answer_in_turn(
        self, request: HttpRequest | HttpResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._answers += 1
        try:
            if self._answers > 2 * MAX_ANSWERS:
                writer.transport.abort()
            elif isinstance(request, HttpResponse):
                await _refuse(reader, writer, request)
            elif self._answers > MAX_ANSWERS:
                await _refuse(reader, writer, _plain(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"))
            else:
                is_slow = request.path in self._slow
                await self._answer(request, writer, self._slow_renderer if is_slow else self._renderers)
        finally:
            self._answers -= 1

    async def _answer(self, request: HttpRequest, writer: asyncio.StreamWriter, renderer: ThreadPoolExecutor) -> None:
        response = await self._loop.run_in_executor(renderer, self._respond, request)
        async with asyncio.timeout(WRITE_TIMEOUT):
            await _write(writer, response, with_body=request.method != "HEAD")

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest | HttpResponse:
        if len(self._unfinished) >= MAX_UNFINISHED:
            oldest = next(iter(self._unfinished))
            del self._unfinished[oldest]
            oldest.transport.abort()
        self._unfinished[writer] = None
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {MAX_HEADER_BYTES} bytes of headers")
        finally:
            self._unfinished.pop(writer, None)
        return parse_request(head)


def parse_request(head: bytes) -> HttpRequest | HttpResponse:
    """The request, or the refusal that it gets."""
    first, *lines = head.decode("iso-8859-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
        return _plain(HTTPStatus.BAD_REQUEST, "not an HTTP/1.1 request")
    if parts[0] not in ("GET", "HEAD"):
        return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "this server is read-only", {"Allow": "GET, HEAD"})
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    path, _, query = parts[1].partition("?")
    return HttpRequest(method=parts[0], path=path, query=query, headers=headers)


def _plain(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(status=status, body=f"{text}\n".encode(), headers=headers or {})


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, response: HttpResponse) -> None:
    """Say it, then read a little of what is still coming: closing at once would reset what was just said."""
    async with asyncio.timeout(LINGER):
        await _write(writer, response, with_body=True)
        writer.write_eof()
        for _ in range(_LINGER_READS):
            if not await reader.read(_CHUNK):
                break


async def _write(writer: asyncio.StreamWriter, response: HttpResponse, *, with_body: bool) -> None:
    headers = {
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **response.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n{lines}\r\n".encode("iso-8859-1"))
    body = memoryview(response.body if with_body else b"")
    for start in range(0, len(body), _CHUNK):
        writer.write(body[start : start + _CHUNK])
        await writer.drain()
    await writer.drain()


SMALL_PAGES = ("/healthz", "/readyz")
_OPEN_PAGES = (*SMALL_PAGES, "/metrics")
"""Under any name: no scraper and no probe stops."""
SLOW_PAGES = ("/disk",)
_INDEX = b"""Brimline guard: / (for people), /metrics (Prometheus), /v1/state and /v1/history (JSON), /healthz, /readyz
"""
_OTHER_HOST = "not served under this name: use an address, the host's own name, or add the name to brimline.http.hosts"


class Pages:
    """``refresh`` is called before metrics are rendered: ages are worked out when somebody asks."""

    def __init__(
        self,
        board: MetricBoard,
        state: Callable[[], GuardState],
        refresh: Callable[[], None],
        unhealthy: Callable[[], str | None],
        unready: Callable[[], str | None],
        history: Callable[[], Timeline],
        disk: Callable[[DiskQuery], DiskSeen],
        takes_host: Callable[[str], bool],
    ) -> None:
        self._board = board
        self._renderer = PrometheusRenderer()
        self._state = state
        self._refresh = refresh
        self._unhealthy = unhealthy
        self._unready = unready
        self._history = history
        self._disk = disk
        self._takes_host = takes_host

    def respond(self, request: HttpRequest) -> HttpResponse:
        if request.path not in _OPEN_PAGES and not self._takes_host(request.headers.get("host", "")):
            return _plain(HTTPStatus.FORBIDDEN, _OTHER_HOST)
        match request.path:
            case "/metrics":
                return self._metrics(request)
            case "/v1/state":
                return HttpResponse(body=state_document(self._state()), content_type="application/json")
            case "/v1/history":
                return HttpResponse(body=history_text(self._history()).encode(), content_type="application/json")
            case "/healthz":
                return _verdict(self._unhealthy())
            case "/readyz":
                return _verdict(self._unready())
            case "/":
                return html_response(guard_page(self._state(), self._history()))
            case "/disk":
                return disk_response(request.query, self._disk)
            case html.SCRIPT_PATH:
                return SCRIPT_RESPONSE
        return HttpResponse(status=HTTPStatus.NOT_FOUND, body=b"there is no such page\n" + _INDEX)

    def _metrics(self, request: HttpRequest) -> HttpResponse:
        self._refresh()
        exposition = expose(
            self._renderer,
            self._board.families(),
            accept=request.headers.get("accept"),
            accept_encoding=request.headers.get("accept-encoding"),
        )
        encoding = {"Content-Encoding": exposition.content_encoding} if exposition.content_encoding else {}
        return HttpResponse(
            body=exposition.body,
            content_type=exposition.content_type,
            headers={"Vary": "Accept, Accept-Encoding", **encoding},
        )


def html_response(body: bytes, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(status=status, body=body, content_type=html.CONTENT_TYPE, headers=html.HEADERS)


SCRIPT_RESPONSE = HttpResponse(body=html.SCRIPT, content_type=html.SCRIPT_TYPE)


def disk_response(query: str, seen: Callable[[DiskQuery], DiskSeen]) -> HttpResponse:
    """``seen`` may raise ``ValueError`` for what is not there."""
    try:
        wanted = DiskQuery.of(query)
        return html_response(disk_answer(seen(wanted), wanted))
    except ValueError as error:
        return html_response(problem_page(f"Cannot show this: {error}."), HTTPStatus.BAD_REQUEST)


def _verdict(complaint: str | None) -> HttpResponse:
    if complaint is None:
        return HttpResponse(body=b"ok\n")
    return HttpResponse(status=HTTPStatus.SERVICE_UNAVAILABLE, body=f"{complaint}\n".encode())

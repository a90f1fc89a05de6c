"""What the HTTP server answers: ``/metrics``, ``/healthz``, ``/readyz``, ``/v1/state``; nothing here writes."""

from collections.abc import Callable
from http import HTTPStatus

from brimline.guard.http import Request, Response
from brimline.guard.state_document import GuardState, state_document
from brimline.metrics.board import MetricBoard
from brimline.metrics.exposition import expose
from brimline.metrics.prometheus import PrometheusRenderer

SMALL_PAGES = ("/healthz", "/readyz")
_INDEX = b"""Brimline guard: /metrics (Prometheus), /v1/state (JSON), /healthz, /readyz
"""


class Pages:
    """``refresh`` is called before metrics are rendered: ages are worked out when somebody asks."""

    def __init__(
        self,
        board: MetricBoard,
        state: Callable[[], GuardState],
        refresh: Callable[[], None],
        unhealthy: Callable[[], str | None],
        unready: Callable[[], str | None],
    ) -> None:
        self._board = board
        self._renderer = PrometheusRenderer()
        self._state = state
        self._refresh = refresh
        self._unhealthy = unhealthy
        self._unready = unready

    def respond(self, request: Request) -> Response:
        match request.path:
            case "/metrics":
                return self._metrics(request)
            case "/v1/state":
                return Response(body=state_document(self._state()), content_type="application/json")
            case "/healthz":
                return _verdict(self._unhealthy())
            case "/readyz":
                return _verdict(self._unready())
            case "/":
                return Response(body=_INDEX)
        return Response(status=HTTPStatus.NOT_FOUND, body=b"there is no such page\n" + _INDEX)

    def _metrics(self, request: Request) -> Response:
        self._refresh()
        exposition = expose(
            self._renderer,
            self._board.families(),
            accept=request.headers.get("accept"),
            accept_encoding=request.headers.get("accept-encoding"),
        )
        encoding = {"Content-Encoding": exposition.content_encoding} if exposition.content_encoding else {}
        return Response(
            body=exposition.body,
            content_type=exposition.content_type,
            headers={"Vary": "Accept, Accept-Encoding", **encoding},
        )


def _verdict(complaint: str | None) -> Response:
    if complaint is None:
        return Response(body=b"ok\n")
    return Response(status=HTTPStatus.SERVICE_UNAVAILABLE, body=f"{complaint}\n".encode())

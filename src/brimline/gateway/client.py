"""The control socket of a gateway, seen from outside: one JSON object a line each way.

**Invariant.** Nobody waits for a gateway for longer than the timeout, and every failure is a sentence: nobody listens,
no permission, no answer in time, or an answer that is not a gateway's (``ObservationFailed``); a request that the
gateway refuses is ``BadInput`` with the gateway's own words. A socket that is not there at all is ``GONE``: where no
gateway is wanted that is as it should be.

The connection is kept between requests. A gateway that was started again in the meantime has closed it: the request is
then made once more on a new one, which is harmless, since every request says what should be and not what to add.
"""

import errno
import json
import socket
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

from brimline.documents.codec import from_json, read_json
from brimline.documents.gateway_state import GatewayState
from brimline.documents.orders import (
    VERSION,
    AddressLimitsOrder,
    FenceOrder,
    FollowerFencesOrder,
    GatewayAnswer,
    GatewayOrder,
    InterceptedWanted,
    Lease,
    SkipsOrder,
    StateWanted,
    UnfenceOrder,
)
from brimline.model import BadInput, Failure, FailureKind, ObservationFailed
from brimline.settings import keys
from brimline.settings.config import GuardConfig

TIMEOUT = 2.0
LARGEST_ANSWER = 1 << 24
"""A state with all the rows that it may have, and the longest topic names, is about a megabyte."""
_CHUNK = 1 << 16


def control_socket(config: GuardConfig) -> Path:
    """Where the gateway of this broker is spoken to."""
    return Path(config.text(keys.STATE_DIR)) / f"gateway-{config.node_id}.sock"


class _ClosedByGateway(Exception):
    """The connection ended before the answer did."""


class GatewayClient:
    """For one thread. Connects when it is first needed, and again when it has to."""

    def __init__(self, path: Path | str, timeout: float = TIMEOUT) -> None:
        self.path = Path(path)
        self.timeout = timeout
        self.passed_unread = 0
        """Fetches that the gateway had to pass unread although something is skipped, by its last answer."""
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def state(self) -> GatewayState:
        try:
            return from_json(GatewayState, self.document())
        except ValueError as problem:
            self._not_a_gateway(problem)

    def document(self) -> dict[str, Any]:
        """The state as it came."""
        document = self._ask(StateWanted()).state
        return document if isinstance(document, dict) else self._not_a_gateway(None)

    def lease(self, full: Mapping[str, str], seconds: float, offline: Collection[str] = ()) -> frozenset[str] | None:
        """The guard's decision, which holds for so many seconds; returns the log dirs that the gateway itself sees
        full. ``None``: one of an older version does not tell."""
        answer = self._ask(Lease(seconds=seconds, full=full, offline=tuple(sorted(offline))))
        return frozenset(map(str, answer.full)) if isinstance(answer.full, list) else None

    def hold_back(self, order: SkipsOrder | FollowerFencesOrder) -> bool:
        """What is done for followers that have no room; whether it is in force now."""
        answer = self._ask(order)
        self.passed_unread = answer.passed_unread if isinstance(answer.passed_unread, int) else 0
        return answer.in_force is True

    def limit_addresses(self, order: AddressLimitsOrder) -> None:
        self._ask(order)

    def intercepted(self, *, let_go: bool = False, begins: bool = False) -> tuple[Mapping[int, int], int | None]:
        """The broker's ports, each with the gateway's own for it; and its own for the broker's fetches, if any."""
        answer = self._ask(InterceptedWanted(let_go=let_go, begins=begins))
        if not isinstance(answer.ports, dict):
            self._not_a_gateway(None)
        for_fetches = answer.for_fetches if isinstance(answer.for_fetches, int) else None
        return {int(port): int(own) for port, own in answer.ports.items()}, for_fetches

    def fence(self, *, log_dir: str | None = None, topic: str | None = None, reason: str, by: str) -> None:
        self._ask(FenceOrder(log_dir=log_dir, topic=topic, reason=reason, by=by))

    def unfence(self, *, log_dir: str | None = None, topic: str | None = None, reason: str, by: str) -> None:
        self._ask(UnfenceOrder(log_dir=log_dir, topic=topic, reason=reason, by=by))

    def _ask(self, order: GatewayOrder) -> GatewayAnswer:
        line = json.dumps(order.to_json()).encode() + b"\n"
        was_connected = self._socket is not None
        try:
            try:
                answer = self._exchange(line)
            except _ClosedByGateway:
                if not was_connected:
                    raise
                answer = self._exchange(line)
        except _ClosedByGateway as ended:
            self._fail(FailureKind.UNREACHABLE, f"the gateway at {self.path} closed the connection", ended)
        except OSError as problem:
            self._explain(problem)
        return self._read(answer)

    def _exchange(self, line: bytes) -> bytes:
        """One line each way. After a failure of any kind the connection is gone: half an answer may be under way."""
        give_up_at = time.monotonic() + self.timeout
        try:
            connected = self._connected()
            connected.settimeout(self.timeout)
            connected.sendall(line)
            return _read_line(connected, give_up_at)
        except (BrokenPipeError, ConnectionResetError) as ended:
            self.close()
            raise _ClosedByGateway from ended
        except (OSError, _ClosedByGateway):
            self.close()
            raise

    def _connected(self) -> socket.socket:
        if self._socket is None:
            fresh = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            fresh.settimeout(self.timeout)
            try:
                fresh.connect(str(self.path))
            except OSError:
                fresh.close()
                raise
            self._socket = fresh
        return self._socket

    def _read(self, answer: bytes) -> GatewayAnswer:
        try:
            said = read_json(GatewayAnswer, answer)
        except ValueError as problem:
            self._not_a_gateway(problem)
        if said.v != VERSION:
            self.close()
            sentence = f"the gateway at {self.path} answers in version {said.v}, which needs a later brimline"
            self._fail(FailureKind.UNSUPPORTED, sentence, None)
        if not said.ok:
            raise BadInput(str(said.error))
        return said

    def _explain(self, problem: OSError) -> NoReturn:
        if isinstance(problem, FileNotFoundError | NotADirectoryError):
            self._fail(FailureKind.GONE, f"no gateway is running: {self.path} does not exist", problem)
        if isinstance(problem, ConnectionRefusedError):
            self._fail(FailureKind.UNREACHABLE, f"no gateway is running: nothing listens on {self.path}", problem)
        if isinstance(problem, PermissionError):
            self._fail(
                FailureKind.NOT_AUTHORIZED,
                f"no permission for the gateway at {self.path}: run this as its user or root",
                problem,
            )
        if isinstance(problem, TimeoutError) or problem.errno == errno.EAGAIN:  # EAGAIN: too many wait to be accepted
            self._fail(
                FailureKind.TIMED_OUT, f"the gateway at {self.path} did not answer within {self.timeout:g} s", problem
            )
        self._fail(
            FailureKind.UNREACHABLE, f"cannot reach a gateway at {self.path}: {problem.strerror or problem}", problem
        )

    def _not_a_gateway(self, problem: Exception | None) -> NoReturn:
        self.close()
        self._fail(FailureKind.UNSUPPORTED, f"{self.path} answers, but not like a gateway of this version", problem)

    def _fail(self, kind: FailureKind, message: str, cause: Exception | None) -> NoReturn:
        raise ObservationFailed(Failure(kind=kind, message=message)) from cause


def _read_line(connected: socket.socket, give_up_at: float) -> bytes:
    """Up to the line feed; the gateway says nothing without being asked."""
    read = bytearray()
    while not read.endswith(b"\n"):
        connected.settimeout(max(give_up_at - time.monotonic(), 0.001))
        more = connected.recv(_CHUNK)
        if not more:
            raise _ClosedByGateway
        read += more
        if len(read) > LARGEST_ANSWER:
            raise OSError(errno.EMSGSIZE, f"more than {LARGEST_ANSWER} bytes")
    return bytes(read)

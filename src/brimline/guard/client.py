"""The client of a guard: its ``/v1/state`` and ``/v1/history``, fetched and read."""

import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TypeVar

from brimline.documents import guard_state, history
from brimline.documents.codec import from_json, read_json
from brimline.documents.guard_state import GuardState
from brimline.documents.history import Timeline
from brimline.model.failures import BrimlineError

_Document = TypeVar("_Document", GuardState, Timeline)


def fetch_state(url: str, timeout: float) -> tuple[GuardState, str]:
    """The state, and the document it was read from."""
    text, address = _fetch(url, "/v1/state", timeout)
    return read_state(text, address), text


def fetch_history(url: str, timeout: float) -> Timeline:
    text, address = _fetch(url, "/v1/history", timeout)
    return _read(Timeline, text, address, history.FORMAT, history.VERSION)


def read_state(text: str, address: str) -> GuardState:
    return _read(GuardState, text, address, guard_state.FORMAT, guard_state.VERSION)


def _fetch(url: str, page: str, timeout: float) -> tuple[str, str]:
    address = url.rstrip("/") + page
    if not address.startswith(("http://", "https://")):
        raise BrimlineError(f"{url!r} is not the address of a guard: write http://host:port")
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:
            return answer.read().decode("utf-8"), address
    except (OSError, ValueError) as failure:
        if isinstance(failure, urllib.error.HTTPError) and failure.code == HTTPStatus.FORBIDDEN:
            raise BrimlineError(
                f"the guard at {address} is not served under this name: use its address, or add the name to "
                "brimline.http.hosts there"
            ) from failure
        reason = getattr(failure, "reason", failure)
        why = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        any_port = " (port 0 is any free port: the guard's log names it, use --url)" if ":0/" in address else ""
        start = "" if any_port else "; start it: brimline guard --config FILE"
        raise BrimlineError(f"no guard answers at {address}{any_port}: {why}{start}") from failure


def _read(kind: type[_Document], text: str, address: str, name: str, version: int) -> _Document:
    try:
        document = read_json(object, text)
        if not isinstance(document, dict) or document.get("format") != name or "version" not in document:
            raise ValueError("not a guard's document")
        if document["version"] != version:
            raise BrimlineError(
                f"{address} answers in version {document['version']}, this brimline reads version {version}: use "
                "the guard's version"
            )
        return from_json(kind, document)
    except ValueError as failure:
        raise BrimlineError(f"{address} answers, but not like a guard of this version") from failure

"""Who may see the pages: whoever is on this machine, or whoever has the token.

Without a token the pages are served on loopback only, and only under a name of this machine: a page of somebody else
that has its name lead here learns nothing.
"""

import base64
import binascii
import hmac
import ipaddress
from dataclasses import dataclass
from http import HTTPStatus

from brimline.guard.hosts import named
from brimline.guard.http import HttpRequest, HttpResponse
from brimline.model import BadInput

_LEAST = 16
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class Access:
    token: str | None

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """``None``: it may be answered."""
        if self.token is None:
            if is_loopback(named(request.headers.get("host", ""))):
                return None
            return HttpResponse(
                status=HTTPStatus.FORBIDDEN,
                body=b"without a token these pages are for http://localhost and http://127.0.0.1 only\n",
            )
        if hmac.compare_digest(_given(request.headers.get("authorization", "")), self.token.encode()):
            return None
        return HttpResponse(
            status=HTTPStatus.UNAUTHORIZED,
            body=b"a token is needed: as the password of any user, or as Authorization: Bearer\n",
            headers={"WWW-Authenticate": 'Basic realm="brimline", charset="UTF-8"'},
        )


def access_for(host: str, token: str | None) -> Access:
    """Raises ``BadInput`` for what would be open to everybody."""
    if token is not None and len(token) < _LEAST:
        raise BadInput(f"the token is too short: write at least {_LEAST} characters into its file")
    if token is None and not is_loopback(host):
        raise BadInput(f"--host {host} is not loopback: add --token-file, or use a reverse proxy")
    return Access(token)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _given(authorization: str) -> bytes:
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip().encode()
    if kind.lower() != "basic":
        return b""
    try:
        return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""

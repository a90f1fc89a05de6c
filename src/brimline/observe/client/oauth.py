"""OAUTHBEARER: where a client's token comes from, and getting it.

As in Java: ``sasl.oauthbearer.token.endpoint.url`` is a file that somebody else keeps fresh (``file:…``), or an
endpoint that is asked for a token with the client's own id and secret (``client_credentials``). A token is kept until
shortly before it expires; a file is read each time. The endpoint's certificate is checked against the system's
authorities.
"""

import base64
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

_SHARE_OF_LIFE = 0.8
"""Java's sasl.login.refresh.window.factor."""
_LARGEST_ANSWER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSource:
    """``file:`` needs no client."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str | None = None
    timeout: timedelta = timedelta(seconds=10)


class TokenError(SaslAuthenticationFailedError):  # type: ignore[misc]  # kafka-python has no types
    """The token could not be had; no broker was asked."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Safe to use from several threads: a client has several connections."""

    def __init__(self, source: TokenSource, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._source = source
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._fresh_until = 0.0

    def token(self) -> str:
        """Raises ``TokenError``."""
        url = self._source.url
        if url.lower().startswith("file:"):
            return _checked(_from_file(url), url)
        with self._lock:
            if self._clock() >= self._fresh_until:
                asked_at = self._clock()
                self._token, seconds = _from_endpoint(self._source)
                self._fresh_until = asked_at + seconds * _SHARE_OF_LIFE
            return self._token


def _from_file(url: str) -> str:
    path = Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path))
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else "not a token"
        raise TokenError(f"no token: {path} cannot be read: {why}") from failure


def _from_endpoint(source: TokenSource) -> tuple[str, float]:
    """The token, and for how many seconds it is good."""
    form = {"grant_type": "client_credentials", **({"scope": source.scope} if source.scope else {})}
    login = base64.b64encode(f"{source.client_id}:{source.client_secret}".encode()).decode()
    request = urllib.request.Request(
        source.url,
        urllib.parse.urlencode(form).encode(),
        {"Authorization": f"Basic {login}", "Accept": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=source.timeout / timedelta(seconds=1)) as answer:
            document = json.loads(answer.read(_LARGEST_ANSWER))
        token, seconds = str(document["access_token"]), float(document.get("expires_in", 0))
    except urllib.error.HTTPError as refusal:
        raise TokenError(f"no token: {source.url} answered {refusal.code} {refusal.reason}") from None
    except OSError as failure:
        reason = getattr(failure, "reason", failure)
        raise TokenError(f"no token: {source.url} cannot be asked: {reason}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TokenError(f"no token: {source.url} did not answer with a token") from None
    return _checked(token, source.url), seconds


def _checked(token: str, url: str) -> str:
    """It goes into a line of its own: what cannot stand there would be read as something else."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError(f"no token: {url} holds none")
    return token

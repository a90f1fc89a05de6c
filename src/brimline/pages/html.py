"""HTML that is safe to put together: whatever is not made here is escaped, and nothing is loaded from anywhere.

**Invariant.** A name from outside (topic, client, log dir) is text on every page. The one way to markup is ``tag``,
which escapes what it is given. The policy that goes with every page allows no frame, no inline script and no request
but to the server itself; its one style sheet is within the page, and allowed by its hash. The one script is a file of
this package: it moves the ceiling slider, and every page works without it.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import TypeAlias

SCRIPT_PATH = "/brimline.js"
SCRIPT = files("brimline.pages").joinpath("brimline.js").read_bytes()
SCRIPT_TYPE = "text/javascript; charset=utf-8"
STYLE = files("brimline.pages").joinpath("style.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'self'; connect-src 'self'; "
    f"style-src 'sha256-{_STYLE_HASH}'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
CONTENT_TYPE = "text/html; charset=utf-8"
_VOID = frozenset(("input", "link", "meta"))
"""Of HTML alone: within an SVG an element that is not closed would hold the ones behind it."""


class Html(str):
    """Markup as it is to be sent. Only this module makes one."""

    __slots__ = ()


STYLE_TAG = Html(f"<style>{STYLE}</style>")
Child: TypeAlias = "str | int | float | Iterable[Child] | None"


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """``class_`` and ``for_`` lose their underscore, other underscores become hyphens. ``None`` and ``False``: none."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_safe(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inner = "".join(map(_markup, children))
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{inner}</{name}>")


def page(title: str, *body: Child) -> bytes:
    """A whole document; its first heading is the caller's."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        STYLE_TAG,
        # Relative, as all links are: a reverse proxy may serve the pages below a path of its own
        tag("script", src=SCRIPT_PATH[1:], defer=True),
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    whole = tag("html", head, tag("body", skip, body), lang="en")
    return f"<!doctype html>\n{whole}\n".encode("utf-8", "replace")


def fragment(*parts: Child) -> bytes:
    """What a script puts into a page that is there already."""
    return "".join(map(_markup, parts)).encode("utf-8", "replace")


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int | float):
        return _safe(str(child))
    return "".join(map(_markup, child))


def _safe(text: str) -> str:
    """No character turns the direction of others, or ends a line where it should not."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return escape(text)

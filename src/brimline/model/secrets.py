"""What people may see of a configuration value: in log lines, in errors, in ``/v1/state``, on the terminal.

Two things are secrets: a value whose key says so, and a login within a URI, wherever the URI stands. Errors and log
lines hide logins by themselves; whoever shows a value together with its key asks ``shown``.
"""

import re

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_uri(place: str) -> bool:
    """Otherwise it is a path."""
    return _URI.match(place) is not None


HIDDEN = "…"
_SECRET_KEY = re.compile(r"passw|secret|token|credential|jaas|private|\.keystore\.key$", re.IGNORECASE)
# Secrets of object stores have slashes, and whoever pastes one does not think of encoding it.
_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:[^/@\s,]*|[^@\s,]*:[^@\s,]*)@")
_SECRET_OPTION = re.compile(
    r"([?&;][^=&;\s]*(?:key|secret|token|passw|sig|credential)[^=&;\s]*=)[^&;\s,]*", re.IGNORECASE
)


def shown(key: str, value: str) -> str:
    """The value of a configuration key, as far as it is nobody's secret."""
    return HIDDEN if value and _SECRET_KEY.search(key) else without_login(value)


def without_login(text: str) -> str:
    """Object stores may take keys before the ``@`` or as options; nobody else needs to read them."""
    if "://" not in text:
        return text
    return _SECRET_OPTION.sub(rf"\1{HIDDEN}", _LOGIN.sub(rf"\1{HIDDEN}@", text))

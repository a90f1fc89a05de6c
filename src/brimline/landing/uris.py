"""A URI as people may see it: in log lines, in ``/v1/state``, in failures."""

import re

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# Secrets of object stores have slashes, and whoever pastes one does not think of encoding it.
_LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:[^/@\s,]*|[^@\s,]*:[^@\s,]*)@")
_SECRET_OPTION = re.compile(r"([?&][^=&]*(?:key|secret|token|password|sig)[^=&]*=)[^&\s]*", re.IGNORECASE)


def is_uri(place: str) -> bool:
    """Otherwise it is a path."""
    return _URI.match(place) is not None


def without_login(uri: str) -> str:
    """Object stores may take keys before the ``@`` or as options; nobody else needs to read them."""
    return _SECRET_OPTION.sub(r"\1…", _LOGIN.sub(r"\1…@", uri))

"""A landing place's URI as people may see it: in log lines, in ``/v1/state``, in failures."""

import re

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_LOGIN = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/@]*@")


def is_uri(place: str) -> bool:
    """Otherwise it is a path."""
    return _URI.match(place) is not None


def without_login(uri: str) -> str:
    """Object stores may take keys before the ``@``; nobody else needs to read them."""
    return _LOGIN.sub(r"\1…@", uri)

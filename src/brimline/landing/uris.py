"""What is a URI, and what a path."""

import re

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_uri(place: str) -> bool:
    """Otherwise it is a path."""
    return _URI.match(place) is not None

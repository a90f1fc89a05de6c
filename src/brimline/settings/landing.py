"""Values with a form of their own, found wrong before the guard starts: landing places and patterns of topics."""

import re
from collections.abc import Callable
from importlib.util import find_spec

from brimline.model.reclaim import split_patterns
from brimline.model.secrets import is_uri
from brimline.observe.properties.java_properties import PropertyReader
from brimline.settings.keys import LANDING_URI

_NEEDED = "pyarrow"


def refuse_landing(
    reader: PropertyReader, uri: str, is_installed: Callable[[str], bool] = lambda name: find_spec(name) is not None
) -> None:
    """``BadInput`` for a place that no snapshot can be put to."""
    if not uri:
        return
    if not uri.startswith("/") and not is_uri(uri):
        raise reader.refusal(LANDING_URI.name, "allowed: an absolute path, or a URI such as s3://bucket/folder")
    if not is_installed(_NEEDED):
        raise reader.refusal(
            LANDING_URI.name, f"it needs {_NEEDED}, which is not installed: pip install 'brimline[fleet]'"
        )


def protected_patterns(text: str) -> tuple[str, ...]:
    """``ValueError`` with the words for what is wrong."""
    patterns = split_patterns(text)
    for pattern in patterns:
        if pattern.count("{") != pattern.count("}"):
            raise ValueError(f"{pattern} has a brace too few or too many")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern} is not a regular expression: {error}") from error
    return patterns

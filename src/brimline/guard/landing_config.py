"""What must be right about the landing keys before the guard starts: found out now, not after the first interval."""

from collections.abc import Callable
from importlib.util import find_spec

from brimline.guard.keys import LANDING_URI
from brimline.landing.uris import is_uri
from brimline.observe.property_reader import PropertyReader

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

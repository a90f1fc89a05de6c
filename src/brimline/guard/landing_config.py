"""What must be right about the landing keys before the guard starts: found out now, not after the first interval."""

from collections.abc import Callable
from importlib.util import find_spec

from brimline.guard.keys import LANDING_URI
from brimline.landing.uris import is_uri, without_login
from brimline.model import BadInput
from brimline.observe.property_reader import PropertyReader

_NEEDED = "pyarrow"


def refuse_landing(
    reader: PropertyReader, uri: str, is_installed: Callable[[str], bool] = lambda name: find_spec(name) is not None
) -> None:
    """``BadInput`` for a place that no snapshot can be put to."""
    if not uri:
        return
    if not uri.startswith("/") and not is_uri(uri):
        raise _refusal(reader, uri, "allowed: an absolute path, or a URI such as s3://bucket/folder")
    if not is_installed(_NEEDED):
        raise _refusal(reader, uri, f"it needs {_NEEDED}, which is not installed: pip install 'brimline[fleet]'")


def _refusal(reader: PropertyReader, uri: str, why: str) -> BadInput:
    """Not the reader's own: a URI may carry keys."""
    where = reader.properties.entry(LANDING_URI.name).where
    return BadInput(f"{where}: {LANDING_URI.name}={without_login(uri)}: {why}")

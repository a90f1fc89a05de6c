"""Places by their names: as pyarrow, Spark and delta-rs take them.

A local path is taken as it is. pyarrow undoes escapes in URIs; a cluster's id may hold any character, and the writer
escapes it with ``%`` in the file's name: below a URI that must be escaped once more.
"""

import re
from pathlib import Path
from urllib.parse import quote

from brimline.fleet.session.errors import FleetError
from brimline.model.secrets import is_uri

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# One store, two names
_FOR_SPARK = {"s3": "s3a", "gcs": "gs"}


def for_spark(place: str) -> str:
    """A folder, or a URI as pyarrow takes it, as Spark takes it."""
    found = _SCHEME.match(place)
    if found is None:
        return f"file://{Path(place).absolute()}"
    return _FOR_SPARK.get(found[1], found[1]) + place[found.end(1) :]


def for_delta(place: str) -> str:
    """As delta-rs takes it. Raises ``FleetError``."""
    if not is_uri(place):
        return str(Path(place).absolute())
    if "?" in place:
        raise FleetError(f"{place}: a warehouse takes no options; set AWS_REGION and AWS_ENDPOINT_URL instead")
    return place.rstrip("/")


def below(landing: str, root: str, path: str) -> str:
    """A file of a landing place as ``pyarrow.fs`` opens it: a local path, or a URI with its escapes escaped.

    ``path`` and ``root`` as the place's own file system writes them.
    """
    if not is_uri(landing) or landing.startswith("file:"):
        return path
    place, mark, options = landing.partition("?")
    return f"{place.rstrip('/')}/{quote(path.removeprefix(root).lstrip('/'))}{mark}{options}"

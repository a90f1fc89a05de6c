"""Places by their names: as pyarrow, Spark and delta-rs take them.

A local path is taken as it is. pyarrow undoes escapes in URIs; a cluster's id may hold any character, and the writer
escapes it with ``%`` in the file's name: below a URI that must be escaped once more.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pyarrow import fs

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# One store, two names
_FOR_SPARK = {"s3": "s3a", "gcs": "gs"}


def is_uri(place: str) -> bool:
    return _SCHEME.match(place) is not None


def for_spark(place: str) -> str:
    """A folder, or a URI as pyarrow takes it, as Spark takes it."""
    found = _SCHEME.match(place)
    if found is None:
        return f"file://{Path(place).absolute()}"
    return _FOR_SPARK.get(found[1], found[1]) + place[found.end(1) :]


def file_system(place: str) -> "tuple[fs.FileSystem, str]":
    """Of a folder or a URI, and the path in it."""
    from pyarrow import fs  # ``fleet show`` needs the other names at once, and no pyarrow

    if is_uri(place):
        files, path = fs.FileSystem.from_uri(place)
        return files, path
    return fs.LocalFileSystem(), str(Path(place).absolute())


def for_delta(place: str) -> str:
    """As delta-rs takes it."""
    return place.rstrip("/") if is_uri(place) else str(Path(place).absolute())


def below(landing: str, root: str, path: str) -> str:
    """A file of a landing place as ``pyarrow.fs`` opens it: a local path, or a URI with its escapes escaped.

    ``path`` and ``root`` as the place's own file system writes them.
    """
    if not is_uri(landing) or landing.startswith("file:"):
        return path
    place, mark, options = landing.partition("?")
    return f"{place.rstrip('/')}/{quote(path.removeprefix(root).lstrip('/'))}{mark}{options}"

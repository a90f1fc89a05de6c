"""The same file by two names: as Spark lists it, and as pyarrow opens it.

Spark writes ``file:/landing/…`` and escapes nothing; pyarrow undoes escapes in URIs and takes local paths as they are.
A cluster's id may hold any character, and the writer escapes it with ``%`` in the file's name, so the two must be
translated, not just passed on.
"""

import re
from pathlib import Path
from urllib.parse import quote

from brimline.landing.header import ROOT

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# One store, two names
_FOR_SPARK = {"s3": "s3a", "gcs": "gs"}
_FOR_PYARROW = {spark: pyarrow for pyarrow, spark in _FOR_SPARK.items()}


def is_uri(place: str) -> bool:
    return _SCHEME.match(place) is not None


def for_spark(place: str) -> str:
    """A folder, or a URI as pyarrow takes it, as Spark takes it."""
    found = _SCHEME.match(place)
    if found is None:
        return f"file://{Path(place).absolute()}"
    return _FOR_SPARK.get(found[1], found[1]) + place[found.end(1) :]


def listed(landing: str) -> str:
    """What Spark lists: all that is below the snapshots' root."""
    return f"{for_spark(landing).rstrip('/')}/{ROOT}"


def for_pyarrow(path: str) -> str:
    """A file as Spark lists it, as ``pyarrow.fs`` opens it: a local path, or a URI with its escapes escaped."""
    found = _SCHEME.match(path)
    if found is None:
        return path
    scheme, rest = _FOR_PYARROW.get(found[1], found[1]), path[found.end(1) + 1 :]
    if scheme == "file":
        return "/" + rest.lstrip("/")
    return f"{scheme}:{quote(rest)}"

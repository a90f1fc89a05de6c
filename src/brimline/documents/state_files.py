"""Small JSON files in the state dir: typed, of a version, and replaced whole."""

import json
from dataclasses import dataclass
from pathlib import Path

from brimline.documents.codec import Document, read_json, to_json
from brimline.service.durable_files import NotRecorded, put_on_record, read_state


class LaterVersion(ValueError):
    """Of a format that was made after this code: it is whole, and what it means is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versioned:
    version: object = None


def read_state_file(kind: type[Document], path: Path, version: int) -> Document:
    """Raises ``LaterVersion``, another ``ValueError`` for what is no such document, or ``OSError``."""
    return read_versioned(kind, read_state(path), version)


def read_versioned(kind: type[Document], content: str | bytes, version: int) -> Document:
    """Raises ``LaterVersion``, or another ``ValueError``."""
    found = read_json(_Versioned, content).version
    if isinstance(found, int) and found > version:
        raise LaterVersion(f"of version {found}, written by a later brimline")
    if found != version:
        raise ValueError(f"of no version, {found!r}")
    return read_json(kind, content)


def write_state_file(path: Path, document: object) -> None:
    """Raises ``NotRecorded``."""
    put_on_record(path, (json.dumps(to_json(document)) + "\n").encode())


def remove_state_file(path: Path, or_else: str = "") -> None:
    """Raises ``NotRecorded``, which begins with ``or_else``."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise NotRecorded(f"{or_else}{path} cannot be removed: {error.strerror}") from error

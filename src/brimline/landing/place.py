"""Where snapshots land: a folder, or whatever pyarrow's file systems open by URI.

**Invariant.** A name that ``names`` lists is a whole file. In file systems with names that can be changed (local,
HDFS) a file is written under a name that begins with a dot, and renamed when it is whole and on the disk; an object
store shows an object when its one upload is complete.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from brimline.landing.file_systems import OBJECT_STORES, file_system
from brimline.landing.header import NAME, ROOT
from brimline.model import BrimlineError
from brimline.model.secrets import without_login
from brimline.service.durable_files import put_whole

_AT_END = re.compile(rf"(?:^|/)({NAME.pattern})$")
"""File systems differ in what they write before it."""
_UNFINISHED = ".unfinished"
_ABANDONED_SECONDS = 3600
"""No writer is given this long."""


class PlaceFailed(BrimlineError):
    """The landing place did not do what was asked. The text says what and where, in one line."""


class LandingPlace:
    """Raises ``PlaceFailed`` and nothing else, from here on."""

    def __init__(self, uri: str) -> None:
        self._shown = without_login(uri)
        with _failing(self._shown, uri):
            self._files, self._root = file_system(uri)

    def put(self, name: str, data: bytes) -> None:
        """Whole or not at all; a file that is there already under this name is replaced."""
        with _failing(f"{self._shown}: {name}"):
            if isinstance(self._files, fs.LocalFileSystem):
                _put_local(Path(self._path(name)), data)
            elif self._files.type_name in OBJECT_STORES:
                self._write(self._path(name), data)
            else:
                self._put_by_rename(name, data)

    def names(self) -> list[str]:
        """Of all snapshots, sorted: by cluster, broker (as text) and time. A place without any may not exist yet."""
        with _failing(self._shown):
            found = self._files.get_file_info(fs.FileSelector(self._path(ROOT), allow_not_found=True, recursive=True))
            ends = (_AT_END.search(info.path) for info in found if info.type == fs.FileType.File)
            return sorted(end[1] for end in ends if end is not None)

    def open(self, name: str) -> pa.NativeFile:
        with _failing(f"{self._shown}: {name}"):
            return self._files.open_input_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _put_by_rename(self, name: str, data: bytes) -> None:
        path = PurePosixPath(self._path(name))
        self._files.create_dir(str(path.parent), recursive=True)
        unfinished = str(path.with_name(_unfinished(path.name)))
        self._write(unfinished, data)
        if self._files.get_file_info(str(path)).type != fs.FileType.NotFound:
            self._files.delete_file(str(path))  # sent before, with these bytes: HDFS renames over nothing
        self._files.move(unfinished, str(path))

    def _write(self, path: str, data: bytes) -> None:
        with self._files.open_output_stream(path) as stream:
            stream.write(data)
        size = self._files.get_file_info(path).size
        if size is not None and size != len(data):
            raise PlaceFailed(f"{path}: {size} bytes arrived of {len(data)}")


def _put_local(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    unfinished = path.with_name(_unfinished(path.name))
    put_whole(path, unfinished, data)


def _unfinished(name: str) -> str:
    return f".{name}.{uuid4().hex}{_UNFINISHED}"


def _sweep(folder: Path) -> None:
    """A writer that was killed leaves its file. Nobody reads it, and nobody else would remove it."""
    with suppress(OSError):  # whoever may not remove it can still add to the folder
        for path in folder.glob(f".*{_UNFINISHED}"):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)


@contextmanager
def _failing(what: str, secret: str = "") -> Iterator[None]:
    """``secret``: what pyarrow may repeat and nobody may read."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError) as error:
        text = " ".join(str(error).split())
        raise PlaceFailed(f"{what}: {text.replace(secret, '…') if secret else text}") from None

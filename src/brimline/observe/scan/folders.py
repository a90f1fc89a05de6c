"""Reads the folders of a log dir while a broker writes, renames and deletes in them.

A name that is gone when it is asked about was most likely renamed (to ``.deleted``), so its folder is looked at
again, up to ``ROUNDS`` times: what was renamed is then found under its new name. A folder that is gone is the
caller's business, who lists the log dir again. None of this is an error.

Folders that are not Kafka's: walked to the bottom by every scan, since nothing is known of who writes there how.

Symbolic links are not followed and other file systems are entered, as ``du`` does it.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from brimline.model.scan import FileKind, FolderState
from brimline.observe.scan.batch import Folder, FolderBatch
from brimline.observe.scan.files import FileTable, empty_table
from brimline.observe.scan.stat import StatBuffer, StatColumns

ROUNDS = 4
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IS_UTF8 = sys.getfilesystemencoding() == "utf-8"
_BATCH_FILES = 8192  # two megabytes of status


@dataclass(slots=True, kw_only=True)
class FolderReadings:
    """``table.folder`` holds positions in ``folders``."""

    folders: list[Folder]
    table: FileTable
    gone: int
    """Folders that were listed and then not there."""
    vanished: int
    """Files that were listed and then not there, in every round."""

    def add_unread(self, folder: Folder, state: FolderState) -> None:
        self.folders.append(replace(folder, state=state, identity=None))


class FolderReader:
    def __init__(self, root_fd: int, buffer: StatBuffer, now_ns: int) -> None:
        self._root_fd = root_fd
        self._buffer = buffer
        self._now_ns = now_ns

    def read(self, wanted: Iterable[Folder]) -> FolderReadings:
        """Reads folders that were seen in the log dir: name, meaning, identity and own blocks are known."""
        readings = FolderReadings(folders=[], table=empty_table(), gone=0, vanished=0)
        tables = [readings.table]
        batch = FolderBatch()
        for folder in wanted:
            self._look(folder, batch, readings)
            if len(self._buffer) >= _BATCH_FILES:
                tables.append(self._flush(batch, readings))
                batch = FolderBatch()
        tables.append(self._flush(batch, readings))
        readings.table = FileTable.together(tables)
        return readings

    def _look(self, folder: Folder, batch: FolderBatch, readings: "FolderReadings") -> None:
        """Lists one folder and asks for the status of its files; the answers are read with the batch."""
        try:
            fd = os.open(folder.name, FOLDER_FLAGS, dir_fd=self._root_fd)
        except FileNotFoundError:
            readings.gone += 1
            return
        except OSError as error:
            readings.add_unread(folder, state_of(error))
            return
        try:
            names = encode(list_open(fd))
            self._buffer.add(fd, names)
        except OSError as error:
            readings.add_unread(folder, state_of(error))
            return
        finally:
            os.close(fd)
        batch.add(len(readings.folders), names)
        readings.folders.append(folder)

    def _flush(self, batch: FolderBatch, readings: FolderReadings) -> FileTable:
        status = self._buffer.take()
        if status.is_there.all() and not status.is_folder.any():
            return batch.table(status, readings.folders, self._now_ns)
        # Names that were gone, or folders within folders: rare, so one folder at a time.
        tables, begin = [empty_table()], 0
        for row, names in batch.each():
            end = begin + len(names)
            tables.append(self._settle(row, names, status.rows(slice(begin, end)), readings))
            begin = end
        return FileTable.together(tables)

    def _settle(self, row: int, names: list[bytes], status: StatColumns, readings: FolderReadings) -> FileTable:
        """One folder, looked at again for as long as names go away under the look."""
        folder = readings.folders[row]
        for _ in range(ROUNDS):
            if status.is_there.all():
                break
            lost = os.fsdecode(names[int(np.argmin(status.is_there))])
            refused = refusal(self._root_fd, f"{folder.name}/{lost}")
            if refused is not None:
                readings.folders[row] = replace(folder, state=refused, identity=None)
                return empty_table()
            again = FolderReadings(folders=[], table=empty_table(), gone=0, vanished=0)
            second_look = FolderBatch()
            self._look(folder, second_look, again)
            status = self._buffer.take()
            if not again.folders or again.folders[0].state is not FolderState.READ:
                # Renamed or closed to us in the meantime: under its new name it will be found by the next listing.
                readings.gone += again.gone
                state = again.folders[0].state if again.folders else FolderState.ABSENT
                readings.folders[row] = replace(folder, state=state, identity=None)
                return empty_table()
            names = second_look.names
        readings.vanished += int((~status.is_there).sum())
        nested = tuple(os.fsdecode(names[at]) for at in np.flatnonzero(status.is_folder).tolist())
        identity = folder.identity if status.is_there.all() else None
        readings.folders[row] = replace(folder, nested=nested, identity=identity)
        kept = np.flatnonzero(status.is_there & ~status.is_folder)
        batch = FolderBatch()
        batch.add(row, [names[at] for at in kept.tolist()])
        return batch.table(status.rows(kept), readings.folders, self._now_ns)


def list_open(folder_fd: int) -> list[str]:
    """By descriptor, so that it is the same folder whatever its name has become."""
    return os.listdir(folder_fd)


def encode(names: Iterable[str]) -> list[bytes]:
    if not _IS_UTF8:
        return [*map(os.fsencode, names)]
    try:
        return [*map(str.encode, names)]
    except UnicodeEncodeError:  # names that are no UTF-8 take the longer way
        return [*map(os.fsencode, names)]


def refusal(root_fd: int, path: str) -> FolderState | None:
    """Why a listed name gave no status. A name that is gone is no refusal.

    A folder that may be listed but not entered refuses every name in it.
    """
    try:
        os.stat(path, dir_fd=root_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        return state_of(error)
    return None


def state_of(error: OSError) -> FolderState:
    return FolderState.PERMISSION_DENIED if isinstance(error, PermissionError) else FolderState.UNREADABLE


def walk_foreign(
    root_fd: int, path: str, row: int, buffer: StatBuffer, *, include_itself: bool = False
) -> tuple[FileTable, FolderState]:
    """Everything below ``path``, folders' own blocks included, as rows of folder ``row``.

    The state is that of the worst folder: where one could not be read, there is more than the rows tell.
    """
    tables, state, left = [empty_table()], FolderState.READ, [path]
    if include_itself:
        buffer.add(root_fd, [os.fsencode(path)])
        itself = buffer.take()
        tables.append(FileTable.of(row, FileKind.FOREIGN, itself.rows(np.flatnonzero(itself.is_there))))
    while left:
        folder = left.pop()
        try:
            fd = os.open(folder, FOLDER_FLAGS, dir_fd=root_fd)
        except FileNotFoundError:
            continue
        except OSError as error:
            state = max(state, state_of(error))
            continue
        try:
            names = list_open(fd)
            buffer.add(fd, encode(names))
        except OSError as error:
            state = max(state, state_of(error))
        finally:
            os.close(fd)
        status = buffer.take()
        if not status.is_there.all():
            lost = names[int(np.argmin(status.is_there))]
            state = max(state, refusal(root_fd, f"{folder}/{lost}") or FolderState.READ)
        there = status.rows(np.flatnonzero(status.is_there))
        tables.append(FileTable.of(row, FileKind.FOREIGN, there))
        left += [f"{folder}/{names[at]}" for at in np.flatnonzero(status.is_folder).tolist()]
    return FileTable.together(tables), state

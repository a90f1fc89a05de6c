"""Folders that are not Kafka's: walked to the bottom by every scan, since nothing is known of who writes there how.

Symbolic links are not followed and other file systems are entered, as ``du`` does it.
"""

import os

import numpy as np

from brimline.model.scan import FileKind, FolderState
from brimline.observe.scan_files import FileTable, empty_table
from brimline.observe.scan_folders import FOLDER_FLAGS, encode, list_open, refusal, state_of
from brimline.observe.scan_stat import StatBuffer


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

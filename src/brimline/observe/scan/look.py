"""One look at a log dir: list it, keep what the memory still holds true, read the rest, put both together.

A folder that is gone when it is opened was most likely renamed, by a topic's deletion or a finished move. So the log
dir is listed again, up to ``ROUNDS`` times, and what was not there before is read.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from brimline.model.scan import FileKind, FolderKind, FolderState, TimestampSource
from brimline.observe.scan.batch import Folder
from brimline.observe.scan.files import FileTable, empty_table
from brimline.observe.scan.folders import ROUNDS, FolderReader, encode, list_open, walk_foreign
from brimline.observe.scan.names import FolderName, file_kind, read_folder_name
from brimline.observe.scan.stat import StatBuffer

LOG_DIR = FolderName(kind=FolderKind.LOG_DIR)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """What one scan leaves to the next. ``table.folder`` holds rows of ``folders``; the first is the log dir itself."""

    folders: Sequence[Folder]
    table: FileTable
    links: frozenset[int]


NOTHING = Memory(folders=(), table=empty_table(), links=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look:
    memory: Memory
    passing: FileTable
    """Rows that every look makes anew: files at the root, and what is not Kafka's."""
    folders_read: int
    vanished: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Listing:
    allocated: int
    folders: dict[str, Folder]
    files: FileTable
    vanished: int


def look_at(root_fd: int, memory: Memory, buffer: StatBuffer, now_ns: int) -> Look:
    listing = _list(root_fd, memory, buffer, now_ns)
    # Where each folder's rows are: in which source, at which row of it.
    sources: list[tuple[Sequence[Folder], FileTable]] = [(memory.folders, memory.table)]
    found = _still_true(root_fd, memory, listing, buffer)
    reader = FolderReader(root_fd, buffer, now_ns)
    folders_read = vanished = 0
    for _ in range(ROUNDS):
        readings = reader.read(
            folder for folder in listing.folders.values() if folder.name not in found and _is_kafkas(folder)
        )
        found |= {
            folder.name: (len(sources), row)
            for row, folder in enumerate(readings.folders)
            if folder.state is not FolderState.ABSENT
        }
        sources.append((readings.folders, readings.table))
        folders_read += len(readings.folders)
        vanished += readings.vanished
        if not readings.gone and not listing.vanished:
            break
        listing = _list(root_fd, memory, buffer, now_ns)
        found = {name: place for name, place in found.items() if name in listing.folders}
    vanished += readings.gone + listing.vanished
    folders, table = _together(sources, found, listing)
    _recall_timestamps(memory, table, folders)
    folders, passing = _walk(root_fd, folders, listing, buffer)
    if memory.folders:
        still_open = np.flatnonzero(table.has_path)
        table.path[still_open[~table.is_open(now_ns)[still_open]]] = None
    links = frozenset(table.link.tolist() if table.link.any() else ()) | frozenset(passing.link.tolist())
    return Look(
        memory=Memory(folders=folders, table=table, links=links - {0}),
        passing=passing,
        folders_read=folders_read,
        vanished=vanished,
    )


def _is_kafkas(folder: Folder) -> bool:
    return folder.what.kind is not FolderKind.FOREIGN and folder.state is FolderState.READ


def _list(root_fd: int, memory: Memory, buffer: StatBuffer, now_ns: int) -> _Listing:
    """The folders as they are named and identified now, and the files at the root."""
    own = os.fstat(root_fd).st_blocks * 512
    names = sorted(list_open(root_fd))
    buffer.add(root_fd, encode(names))
    identities, status = buffer.identities(), buffer.take()
    meanings = {folder.name: folder.what for folder in memory.folders}
    folders: dict[str, Folder] = {}
    kinds = np.full(len(names), FileKind.FOREIGN, dtype=np.uint8)
    is_folder = status.is_folder.copy()
    columns = zip(names, identities, status.allocated.tolist(), status.is_folder.tolist(), strict=True)
    for at, (name, identity, allocated, is_real) in enumerate(columns):
        if status.is_file[at] or not status.is_there[at]:
            kinds[at] = file_kind(FolderKind.LOG_DIR, name)
            continue
        what = meanings.get(name) or read_folder_name(name)
        if not is_real:
            if what.kind is FolderKind.FOREIGN:
                continue  # a link or a socket that nobody could take for a replica
            is_folder[at] = True
        folders[name] = Folder(
            name=name,
            what=what,
            allocated=allocated,
            identity=identity if identity.is_settled(now_ns) else None,
            state=FolderState.READ if is_real else FolderState.SYMBOLIC_LINK,
        )
    files = np.flatnonzero(status.is_there & ~is_folder)
    return _Listing(
        allocated=own,
        folders=folders,
        files=FileTable.of(0, kinds[files], status.rows(files)),
        vanished=int((~status.is_there).sum()),
    )


def _still_true(root_fd: int, memory: Memory, listing: _Listing, buffer: StatBuffer) -> dict[str, tuple[int, int]]:
    """The remembered folders that are unchanged, after their open files were asked about again."""
    same = {
        folder.name: (0, row)
        for row, folder in enumerate(memory.folders)
        if folder.identity is not None
        and folder.name in listing.folders
        and folder.identity == listing.folders[folder.name].identity
    }
    is_same = np.zeros(len(memory.folders) + 1, dtype=np.bool_)
    is_same[[row for _, row in same.values()]] = True
    table = memory.table
    open_rows = np.flatnonzero(table.has_path & is_same[table.folder])
    buffer.add(root_fd, table.path[open_rows].tolist())
    status = buffer.take()
    # Renamed since the listing: the folder is read after all.
    for row in np.unique(table.folder[open_rows[~status.is_there]]).tolist():
        del same[memory.folders[row].name]
    there = open_rows[status.is_there]
    table.size[there] = status.size[status.is_there]
    table.allocated[there] = status.allocated[status.is_there]
    table.modified_ns[there] = status.modified_ns[status.is_there]
    table.link[there] = status.link[status.is_there]
    return same


def _together(
    sources: Sequence[tuple[Sequence[Folder], FileTable]], found: dict[str, tuple[int, int]], listing: _Listing
) -> tuple[list[Folder], FileTable]:
    """The folders in the order of their names, and the rows of the table that are theirs."""
    folders = [Folder(name="", what=LOG_DIR, allocated=listing.allocated)]
    ranks = [np.full(len(source_folders) + 1, -1, dtype=np.int32) for source_folders, _ in sources]
    for name, listed in listing.folders.items():
        place = found.get(name)
        if place is not None:
            source, row = place
            ranks[source][row] = len(folders)
            folders.append(sources[source][0][row])
        elif not _is_kafkas(listed):
            folders.append(listed)
    tables = []
    for rank, (_, table) in zip(ranks, sources, strict=True):
        ranked = rank[table.folder]
        kept = table if (ranked >= 0).all() else table.rows(np.flatnonzero(ranked >= 0))
        tables.append(replace(kept, folder=ranked[ranked >= 0]))
    return folders, FileTable.together([table for table in tables if len(table)] or [empty_table()]).in_order()


def _recall_timestamps(memory: Memory, table: FileTable, folders: Sequence[Folder]) -> None:
    """A folder that had to be read again has mostly the segments that it had: their timestamps are known."""
    if not memory.table.newest_source.any():
        return
    unknown = np.flatnonzero((table.kind == FileKind.LOG) & (table.newest_source == TimestampSource.NOT_READ))
    names = {folders[row].name for row in np.unique(table.folder[unknown]).tolist()}
    rows_before = [row for row, folder in enumerate(memory.folders) if folder.name in names]
    before = np.flatnonzero(
        (memory.table.newest_source == TimestampSource.TIME_INDEX) & np.isin(memory.table.folder, rows_before)
    )
    known = {
        (memory.folders[memory.table.folder[row]].name, *_version(memory.table, row)): int(memory.table.newest_ms[row])
        for row in before.tolist()
    }
    for row in unknown.tolist():
        newest = known.get((folders[table.folder[row]].name, *_version(table, row)))
        if newest is not None:
            table.newest_ms[row] = newest
            table.newest_source[row] = TimestampSource.TIME_INDEX


def _version(table: FileTable, row: int) -> tuple[int, int, int]:
    return int(table.base_offset[row]), int(table.size[row]), int(table.modified_ns[row])


def _walk(
    root_fd: int, folders: Sequence[Folder], listing: _Listing, buffer: StatBuffer
) -> tuple[list[Folder], FileTable]:
    """Adds what is not Kafka's, at the root and inside Kafka's folders."""
    walked, tables = [], [listing.files]
    for row, folder in enumerate(folders):
        state = folder.state
        if folder.what.kind is FolderKind.FOREIGN and state is FolderState.READ:
            table, state = walk_foreign(root_fd, folder.name, row, buffer)
            tables.append(table)
        for name in folder.nested:
            table, nested_state = walk_foreign(root_fd, f"{folder.name}/{name}", row, buffer, include_itself=True)
            tables.append(table)
            state = max(state, nested_state)
        walked.append(folder if state is folder.state else replace(folder, state=state))
    return walked, FileTable.together(tables)

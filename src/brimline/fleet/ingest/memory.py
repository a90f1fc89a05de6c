"""What the ingest remembers from run to run, in one small file inside the warehouse.

* Its **name** and the **number** of its last batch: every commit of a batch carries both, and a table that has them
  does not take that batch again.
* The **files of a batch that was begun**. They are written down before the first commit, so a run that ended in the
  middle is followed by one that does the same batch again, with the same number and the same files.
* **Marks**: up to which moment the snapshots of each broker were taken in, and when everything was looked through last
  (``look``). They save work and decide nothing: the tables ``snapshots`` and ``quarantine`` say which files are known.

If the file is lost, or older than the tables, these may hold rows of a batch that was never finished: they are taken
out first.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyarrow import fs

from brimline.documents.codec import read_json
from brimline.fleet.ingest.file import SECTION_TABLES
from brimline.fleet.session.errors import FleetError, said_by_store
from brimline.fleet.tables import columns as c
from brimline.fleet.tables.catalogue import Table
from brimline.fleet.tables.manifest import newest_of
from brimline.fleet.tables.warehouse import BatchName, Warehouse, quoted
from brimline.landing.file_systems import file_system
from brimline.landing.place import LandingPlace, PlaceFailed

_FILE = "memory.json"
_FORMAT, _VERSION = "brimline-ingest", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    stream: str
    number: int = 0
    """Of the last batch that was begun; the first is 1."""
    begun: tuple[str, ...] = ()
    """The files of that batch, until it is finished."""
    marks_ms: Mapping[str, int] = field(default_factory=dict)
    """By the broker's folder below the landing place."""
    looked_through_ms: int = 0

    @property
    def batch(self) -> BatchName:
        return BatchName(stream=self.stream, number=self.number)


def remembered(warehouse: Warehouse) -> Memory:
    """Raises ``FleetError``."""
    try:
        found = _read(warehouse)
        if found is not None and not _is_overtaken(warehouse, found):
            return found
        remove_unfinished(warehouse)
        memory = Memory(stream=f"brimline-{uuid4().hex}")
        remember(warehouse, memory)
    except (PlaceFailed, OSError, pa.ArrowException, DeltaError) as error:
        why = said_by_store(warehouse.place, error)
        raise FleetError(f"the warehouse {warehouse.place} cannot be used: {why}") from error
    return memory


def remember(warehouse: Warehouse, memory: Memory) -> None:
    """Whole or not at all. Raises ``PlaceFailed``."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION, **asdict(memory)})
    LandingPlace(warehouse.memory).put(_FILE, text.encode())


def _read(warehouse: Warehouse) -> Memory | None:
    files, path = file_system(f"{warehouse.memory}/{_FILE}")
    if files.get_file_info(path).type != fs.FileType.File:
        return None
    with files.open_input_stream(path) as stream:
        return _from_json(stream.read().decode(), path)


def _is_overtaken(warehouse: Warehouse, memory: Memory) -> bool:
    """Whether a table has a later batch than the last that was begun.

    Then a run that had been stopped, and was taken for gone, wrote the file after the next one had begun a batch.
    """
    found = map(warehouse.opened, SECTION_TABLES)
    return any(each is not None and (each.transaction_version(memory.stream) or 0) > memory.number for each in found)


def _from_json(text: str, path: str) -> Memory:
    try:
        found = read_json(dict[str, Any], text)
        if found.pop("format") != _FORMAT or found.pop("version") > _VERSION:
            raise ValueError(text)
        return Memory(**{**found, "begun": tuple(found["begun"])})
    except (ValueError, KeyError, TypeError):
        raise FleetError(
            f"{path} was not written by this version of brimline. Upgrade if a newer one wrote it; else remove it, "
            "and the next run checks every landed file"
        ) from None


def remove_unfinished(warehouse: Warehouse) -> None:
    """Rows of snapshots that ``snapshots`` does not have: it is written last, so their batch was never finished."""
    finished = set(warehouse.select(Table.SNAPSHOTS, [c.SNAPSHOT_ID]).column(0).to_pylist())
    for table in SECTION_TABLES:
        held = warehouse.select(table, [c.SNAPSHOT_ID]).column(0).to_pylist()
        unfinished = sorted(set(held) - finished)
        found = warehouse.opened(table)
        if unfinished and found is not None:
            found.delete(f"{c.SNAPSHOT_ID} IN ({', '.join(map(quoted, unfinished))})")
    if warehouse.exists(Table.NEWEST):
        warehouse.write(newest_of(warehouse.place), Table.NEWEST, "overwrite")

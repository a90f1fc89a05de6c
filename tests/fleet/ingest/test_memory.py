"""What the ingest remembers: it comes back as it was, and one of a later version is not guessed at."""

import json
from pathlib import Path

import pytest

from brimline.fleet.ingest.memory import Memory, remember, remembered
from brimline.fleet.session.errors import FleetError
from brimline.fleet.tables.warehouse import Warehouse


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path / "ware house"))
    first = remembered(warehouse)
    begun = Memory(
        stream=first.stream, number=1, begun=("/a", "/b"), marks_ms={"snapshots/c/1": 5}, looked_through_ms=7
    )

    remember(warehouse, begun)

    assert (first.number, first.begun) == (0, ())
    assert remembered(warehouse) == begun


@pytest.mark.parametrize("change", [{"version": 2}, {"format": "else"}, {"number_of": 3}])
def test_what_is_not_ours_is_a_sentence(tmp_path: Path, change: dict[str, object]) -> None:
    warehouse = Warehouse(str(tmp_path))
    remembered(warehouse)
    path = Path(warehouse.memory) / "memory.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    with pytest.raises(FleetError, match=r"memory.json was not written by this version of brimline"):
        remembered(warehouse)

"""What is said of a reserve: with its parts where it is in force, and as a warning where a person must confirm it."""

from pathlib import Path

import pytest

from brimline.decide.unfenced_writes import ReservePart
from brimline.disks.reserves import Reserves, VolumeReserve
from brimline.disks.task import DiskReport
from brimline.documents.notices import Weight
from brimline.guard.reserve import reserve_families, reserve_notices
from brimline.metrics import catalogue
from brimline.model import Bytes
from brimline.settings import keys
from tests.disks.test_reserves import LIMITS, volume
from tests.guard.files import config

RESERVE = VolumeReserve(
    log_dirs=("/data/a",),
    bytes=Bytes(1 << 30),
    fewest_files=10_000,
    is_in_force=True,
    are_files_in_force=True,
    parts=(ReservePart(what="cleaner", bytes=Bytes(1 << 30), why="one group"),),
)
PENDING = VolumeReserve(log_dirs=("/data/a",), bytes=Bytes(1 << 30), fewest_files=10_000, is_in_force=True)


@pytest.mark.parametrize(
    ("reserve", "choice", "key", "weight", "in_force"),
    [
        (RESERVE, keys.AUTO, "/data/a", Weight.FINE, (True, True)),
        (PENDING, keys.AUTO, "pending /data/a", Weight.WARNING, (True, False)),
        (PENDING, keys.ON, "/data/a", Weight.FINE, (True, True)),
    ],
    ids=["in force", "a small file system is said and not fenced", "a person has confirmed it"],
)
def test_what_is_said_of_a_reserve(
    tmp_path: Path, reserve: VolumeReserve, choice: str, key: str, weight: Weight, in_force: tuple[bool, bool]
) -> None:
    reserves = Reserves(tmp_path, 7, lambda: choice)
    reserves.volumes = (reserve,)
    settings = config(f"brimline.disk.reserve={choice}\n")

    (notice,) = reserve_notices(DiskReport(volumes=(volume(),), limits=LIMITS), reserves, settings)

    assert (notice.key, notice.weight, notice.headline) == (key, weight, "")
    assert (notice.facts["inForce"], notice.facts["filesInForce"]) == in_force
    assert notice.facts["fewestFiles"] == 10_000


def test_its_metrics_go_when_it_is_switched_off() -> None:
    parts, pending = reserve_families((RESERVE,), keys.AUTO)

    assert (parts.name, pending.name) == (catalogue.RESERVE_PART.name, catalogue.RESERVE_PENDING.name)
    assert (list(parts.label_values), list(parts.values)) == ([("/data/a", "cleaner")], [1 << 30])
    assert list(pending.values) == [0]
    assert [list(each.values) for each in reserve_families((PENDING,), keys.AUTO)] == [[], [1]]
    assert [list(each.values) for each in reserve_families((PENDING,), keys.OFF)] == [[], []]

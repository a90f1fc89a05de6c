"""``fleet plot`` as a command, on tables that no Spark was needed for: a picture that any browser reads."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema

from brimline.cli import main
from brimline.fleet.tables.gold_schemas import FORECAST

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def forecast_row(broker: int, **changed: object) -> dict[str, Any]:
    row = dict.fromkeys(FORECAST.names) | {
        "cluster_id": "c<1>",
        "broker_id": broker,
        "device": "/dev/sdb",
        "log_dirs_of_device": "/data/a, /data/b",
        "outlook": "filling",
        "days_to_full": 10.0,
        "soonest_days": 8.0,
        "latest_days": 12.0,
        "growth_bytes_per_day": 4.0,
        "limit_bytes": 90,
        "total_bytes": 100,
        "back_tests": 0,
        "days_known": 5,
        "limits_from": "guard",
        "as_of": NOON,
    }
    return row | changed


def volumes(broker: int) -> list[dict[str, Any]]:
    """Two log dirs of one device tell the same; one look failed."""
    looks: list[dict[str, Any]] = [
        {"taken_at": NOON - timedelta(days=day), "log_dir": log_dir, "total_bytes": 100, "usable_bytes": 50 + 4 * day}
        for day in range(5)
        for log_dir in ("/data/a", "/data/b")
    ]
    looks.append(
        {"taken_at": NOON - timedelta(hours=1), "log_dir": "/data/a", "total_bytes": None, "usable_bytes": None}
    )
    return [{"cluster_id": "c<1>", "broker_id": broker, "device": "/dev/sdb"} | look for look in looks]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    unsure = {"outlook": "too-short", "days_to_full": None, "soonest_days": None}
    rows = [
        forecast_row(1),
        forecast_row(2, **unsure),
        forecast_row(3, device="/dev/sdc", log_dirs_of_device="/data/c"),
    ]
    schema = to_arrow_schema(FORECAST, timezone="UTC")
    write_deltalake(str(tmp_path / "forecast"), pa.Table.from_pylist(rows, schema=schema))
    write_deltalake(str(tmp_path / "volumes"), pa.Table.from_pylist([*volumes(1), *volumes(2)]))
    return tmp_path


def plot(warehouse: Path, *arguments: str) -> int:
    return main(["fleet", "plot", "forecast", *arguments, "--warehouse", str(warehouse)])


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)


def _points(picture: ET.Element, kind: str) -> list[str]:
    (path,) = [each for each in picture.iter(f"{SVG}path") if each.get("class") == kind]
    return re.findall(r"[\d.]+,[\d.]+", path.get("d") or "")


def test_every_reading_is_drawn_once_and_the_line_ahead_meets_the_limit(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = plot(warehouse, "/data/b", "--broker", "1")

    picture = drawn(capsys.readouterr().out)
    used, ahead = (_points(picture, kind) for kind in ("used", "middle"))
    (limit,) = [each for each in picture.iter(f"{SVG}line") if each.get("class") == "limit"]
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert code == 0
    assert len(used) == 5
    assert ahead[0] == used[-1]
    assert ahead[-1].partition(",")[2] == limit.get("y1")
    assert texts[:2] == ["broker 1 of c<1>: /data/a, /data/b", "filling: full in 10.0 days (8.0 to 12.0)"]


def test_a_volume_without_a_forecast_is_drawn_too(warehouse: Path, tmp_path: Path) -> None:
    out = tmp_path / "volume.svg"

    code = plot(warehouse, "/dev/sdb", "--broker", "2", "--cluster", "c<1>", "--out", str(out))

    assert code == 0
    assert "history too short" in [each.text for each in drawn(out.read_text()).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("volume", "said"),
    [
        ("/nowhere", "no forecast of /nowhere: see brimline fleet show --warehouse "),
        ("/data/a", "2 volumes match /data/a"),
        ("/data/c", "no reading of /data/c is kept"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(
    warehouse: Path, capsys: pytest.CaptureFixture[str], volume: str, said: str
) -> None:
    assert plot(warehouse, volume) == 1
    assert said in capsys.readouterr().err


def test_volumes_that_are_not_named_are_counted(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = to_arrow_schema(FORECAST, timezone="UTC")
    more = pa.Table.from_pylist([forecast_row(4), forecast_row(5)], schema=schema)
    write_deltalake(str(warehouse / "forecast"), more, mode="append")

    assert plot(warehouse, "/data/a") == 1
    assert re.search(r"4 volumes match /data/a \((broker \d of c<1>, ){3}and 1 more\)", capsys.readouterr().err)

"""A fleet from its tables, without Spark: volumes, a disk's past and future, a dry run by the guard's own planner."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from http import HTTPStatus
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import assume, given
from hypothesis import strategies as st

from brimline.cli import main
from brimline.decide.reclaim.dry_run import dry_run
from brimline.decide.reclaim.plan import plan
from brimline.fleet.planner.broker_snapshot import read_broker_at
from brimline.fleet.planner.tasks import SnapshotFile
from brimline.fleet.simulate.what_if import WhatIf
from brimline.guard.http import HttpRequest, HttpResponse
from brimline.model import human_bytes
from brimline.pages.disk_page import _which
from brimline.pages.volumes_page import ShownVolume
from brimline.web import what_if
from brimline.web.access import Access
from brimline.web.pages import WebPages
from brimline.web.warehouse import FleetSource
from brimline.web.what_if import Asked
from tests.decide.reclaim.scenarios import Scenario, all_scenarios
from tests.fleet.snapshots import header_of, sections_of, write_snapshot
from tests.pages.test_html import HOSTILE, Parsed
from tests.waiting import eventually

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
GIB = 1 << 30
UNREADABLE = {"state": "unknown", "used_percent": None, "total_bytes": None, "usable_bytes": None, "failure": "gone"}


def pressure(broker: int, log_dir: str, device: str, **others: object) -> Mapping[str, object]:
    return {
        "cluster_id": "cluster-a",
        "broker_id": broker,
        "log_dir": log_dir,
        "device": device,
        "state": "ok",
        "used_percent": 60.0,
        "total_bytes": 100 * GIB,
        "usable_bytes": 40 * GIB,
        "breaches": None,
        "failure": None,
        "max_used_percent": 90,
        "min_free_bytes": 20 * GIB,
        "ceiling_percent": 75,
        "taken_at": NOW,
        "is_stale": False,
        **others,
    }


def forecast(broker: int, device: str, days: float | None) -> Mapping[str, object]:
    return {
        "cluster_id": "cluster-a",
        "broker_id": broker,
        "device": device,
        "outlook": "filling" if days is not None else "not-filling",
        "days_to_full": days,
        "soonest_days": None if days is None else days - 1,
        "latest_days": None if days is None else days + 2,
        "growth_bytes_per_day": None if days is None else 2.0 * GIB,
    }


def reading(broker: int, device: str, hours_ago: int, usable: int) -> Mapping[str, object]:
    return {
        "cluster_id": "cluster-a",
        "broker_id": broker,
        "taken_at": NOW - timedelta(hours=hours_ago),
        "device": device,
        "total_bytes": 100 * GIB,
        "usable_bytes": usable,
    }


def replica(broker: int, log_dir: str, topic: str, size: int) -> Mapping[str, object]:
    return {"cluster_id": "cluster-a", "broker_id": broker, "log_dir": log_dir, "topic": topic, "size_bytes": size}


def write(place: Path, table: str, *rows: Mapping[str, object]) -> None:
    found = pa.Table.from_pylist([dict(row) for row in rows])
    # A column of nulls alone has no type of its own
    typed = pa.schema([each.with_type(pa.string()) if pa.types.is_null(each.type) else each for each in found.schema])
    write_deltalake(place / table, found.cast(typed))


def snapshot_of(place: Path, scenario: Scenario) -> SnapshotFile:
    return write_snapshot(place / "landing", header_of(broker=1), sections_of(scenario.tables))


def newest(file: SnapshotFile) -> Mapping[str, object]:
    """The row of broker 1."""
    whose = {"cluster_id": "cluster-a", "broker_id": 1, "taken_at": NOW, "source": "guard"}
    segments = {"taken_at": NOW, "snapshot_id": file.snapshot_id, "path": file.path, "rows": file.segments}
    return {**whose, "snapshot_id": file.snapshot_id, **{f"segments_{name}": each for name, each in segments.items()}}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    scenario = next(each for each in all_scenarios() if each.name == "over-the-ceiling")
    file = snapshot_of(tmp_path, scenario)
    device = scenario.tables.devices[0].name
    write(
        tmp_path,
        "volume_pressure",
        pressure(1, f"/{device}", device),
        pressure(2, "/b1", "8:2"),
        pressure(2, "/b2", "8:2"),
        pressure(3, "/c", "8:3", state="full", breaches="disk.max.used.percent"),
        pressure(
            4, "/d", "8:4", state="unknown", used_percent=None, total_bytes=None, usable_bytes=None, failure="gone"
        ),
    )
    write(tmp_path, "forecast", forecast(1, device, 3.0), forecast(2, "8:2", 30.0), forecast(3, "8:3", None))
    write(
        tmp_path, "volumes", reading(1, device, 2, 42 * GIB), reading(1, device, 1, 41 * GIB), reading(2, "8:2", 1, 1)
    )
    write(
        tmp_path,
        "retention_pressure",
        replica(1, f"/{device}", "orders", 5 * GIB),
        replica(1, f"/{device}", "orders", 1 * GIB),
        replica(1, f"/{device}", "clicks", 9 * GIB),
        replica(1, "/elsewhere", "lost", 9 * GIB),
        replica(2, "/b2", "clicks", 9 * GIB),
    )
    write(tmp_path, "newest", newest(file))
    return tmp_path


@pytest.fixture
def device() -> str:
    return next(each for each in all_scenarios() if each.name == "over-the-ceiling").tables.devices[0].name


def asked(warehouse: Path, path: str, query: str = "") -> HttpResponse:
    pages = WebPages(access=Access(None), fleet=FleetSource(str(warehouse)))
    return pages.respond(HttpRequest(method="GET", path=path, query=query, headers={"host": "localhost"}))


def test_a_row_for_every_device(warehouse: Path) -> None:
    rows = {(row.broker, row.log_dirs): row for row in FleetSource(str(warehouse)).rows()}

    assert [key[0] for key in sorted(rows)] == [1, 2, 3, 4]
    assert (rows[2, ("/b1", "/b2")].state, rows[2, ("/b1", "/b2")].fence) == ("ok", 80.0)
    assert (rows[3, ("/c",)].state, rows[4, ("/d",)].state) == ("full", "unknown")
    filling = next(row for row in rows.values() if row.broker == 1)
    assert (filling.state, filling.days_to_full, filling.ceiling) == ("filling", 3.0, 75.0)
    assert filling.why == "+2.00 GiB a day, full in 2 to 5 days"


@pytest.mark.parametrize(
    ("query", "brokers"),
    [
        ("", [3, 4, 1, 2]),
        ("days=7", [3, 1]),
        ("topic=clicks", [1, 2]),
        ("topic=nowhere", []),
        ("broker=4", [4]),
        ("cluster=cluster-a&days=40", [3, 1, 2]),
    ],
)
def test_volumes_are_filtered(warehouse: Path, query: str, brokers: list[int]) -> None:
    page = asked(warehouse, "/", query).body.decode()

    found = [
        given["href"] or ""
        for tag, given in Parsed(page).tags
        if tag == "a" and (given["href"] or "").startswith("disk?")
    ]
    assert [int(href.partition("broker=")[2].partition("&")[0]) for href in found] == brokers


def test_a_disk_opens_into_its_past_its_future_and_its_topics(warehouse: Path, device: str) -> None:
    answer = asked(warehouse, "/disk", f"cluster=cluster-a&broker=1&device={device}")

    text = Parsed(answer.body.decode()).text
    assert answer.status is HTTPStatus.OK
    assert "58.0 % used on 2026-01-31 10:00, 59.0 % on 2026-01-31 11:00; full in 3 days" in text
    assert text.index("clicks9.00 GiB9.0 %1") < text.index("orders6.00 GiB6.0 %2")
    assert "lost" not in text


def test_another_ceiling_is_what_the_guards_planner_says(warehouse: Path, device: str) -> None:
    path = next((warehouse / "landing").rglob("*.parquet"))
    broker = read_broker_at(str(path))

    made = dry_run(broker.tables, 0, 20, NOW)

    expected = plan(WhatIf(ceiling_percent=20).applied(broker.tables)).devices[0]
    assert made.planned.taken_bytes == expected.wanted_bytes > 0
    assert made.first_cycle_bytes == expected.taken_bytes
    assert (
        sum(each.bytes for each in made.loss.topics) == sum(each.bytes for each in made.ages) == expected.wanted_bytes
    )


def test_the_page_shows_it_and_the_command(warehouse: Path, device: str) -> None:
    page = asked(warehouse, "/disk", f"cluster=cluster-a&broker=1&device={device}&ceiling=20").body.decode()

    text = Parsed(page).text
    command = f"brimline reclaim --config /etc/kafka/server.properties --ceiling 20 --log-dir /{device}"
    assert command in text
    assert "Would be deleted, by topic, largest first" in text
    assert ("input", "ceiling", "20") in [
        (tag, given.get("name"), given.get("value")) for tag, given in Parsed(page).tags
    ]


def test_a_device_that_the_command_does_not_take_is_named_by_its_log_dir() -> None:
    row = ShownVolume(cluster="c", broker=1, device="/dev/nvme0n1", log_dirs=("/my data/a", "/b"), state="ok")

    assert _which(row) == "--log-dir '/my data/a'"
    assert _which(replace(row, device="259:0")) == "--device 259:0"


@pytest.mark.parametrize(
    ("label", "words"), [("too-short", "history too short"), ("not-filling", "not filling"), ("no-limit", "no limit")]
)
def test_pages_say_in_words_what_the_forecast_has_as_a_label(tmp_path: Path, label: str, words: str) -> None:
    write(tmp_path, "volume_pressure", pressure(1, "/a", "8:1"))
    write(tmp_path, "forecast", {**forecast(1, "8:1", None), "outlook": label})

    (row,) = FleetSource(str(tmp_path)).rows()

    assert row.why == words


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("broker=9&device=8:9", HTTPStatus.SERVICE_UNAVAILABLE, "no device 8:9 of broker 9"),
        ("broker=x", HTTPStatus.BAD_REQUEST, "Cannot show this"),
        ("cluster=cluster-a&broker=2&device=8:2&ceiling=0", HTTPStatus.BAD_REQUEST, "a ceiling is from 1 to 99"),
        ("cluster=cluster-a&broker=2&device=8:2", HTTPStatus.OK, "no snapshot with segments of this broker"),
        ("cluster=cluster-a&broker=4&device=8:4", HTTPStatus.OK, "No readings of this disk yet"),
    ],
)
def test_what_is_not_there_is_a_sentence(warehouse: Path, query: str, status: HTTPStatus, sentence: str) -> None:
    answer = asked(warehouse, "/disk", query)

    assert answer.status is status
    assert sentence in Parsed(answer.body.decode()).text


def test_a_snapshot_that_is_gone_costs_the_dry_run_alone(warehouse: Path, device: str) -> None:
    next((warehouse / "landing").rglob("*.parquet")).unlink()

    answer = asked(warehouse, "/disk", f"cluster=cluster-a&broker=1&device={device}")

    assert answer.status is HTTPStatus.OK
    assert "cannot be used: unreadable" in Parsed(answer.body.decode()).text


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\x00" not in name and name.isprintable()])
def test_hostile_topics_add_nothing_to_the_page(tmp_path: Path, name: str) -> None:
    def tags(place: Path, name: str) -> list[tuple[str, set[str]]]:
        write(place, "volume_pressure", pressure(1, "/a", "8:1"))
        write(place, "retention_pressure", replica(1, "/a", name, 1))
        page = asked(place, "/disk", "cluster=cluster-a&broker=1&device=8:1").body.decode()
        return [(tag, set(given)) for tag, given in Parsed(page).tags]

    assert tags(tmp_path / "hostile", name) == tags(tmp_path / "tame", "name")


def test_gold_is_read_again_when_there_is_a_new_version(warehouse: Path) -> None:
    seconds = [0.0]
    source = FleetSource(str(warehouse), lambda: seconds[0])
    before = source.rows()
    seconds[0] = 60.0
    assert source.rows() is before

    write_deltalake(warehouse / "forecast", pa.Table.from_pylist([dict(forecast(2, "8:2", 1.0))]), mode="overwrite")
    seconds[0] = 120.0

    assert [row.broker for row in source.rows() if row.state == "filling"] == [2]


def test_the_slider_gets_the_dry_run_alone(warehouse: Path, device: str) -> None:
    where = f"cluster=cluster-a&broker=1&device={device}&ceiling=50"
    whole, part = asked(warehouse, "/disk", where), asked(warehouse, "/disk", f"{where}&part=plan")

    assert part.body in whole.body
    assert b"<h1>" not in part.body
    assert b"WOULD DELETE" in part.body
    assert part.headers == whole.headers


def test_readers_that_no_snapshot_knows_are_said_to_be_unknown(warehouse: Path, device: str) -> None:
    page = asked(warehouse, "/disk", f"cluster=cluster-a&broker=1&device={device}&ceiling=20").body

    assert b"READERS UNKNOWN" in page
    assert b"NO GROUP LOSES" not in page


def test_what_if_is_what_fleet_simulate_says(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = FleetSource(str(warehouse))
    query = {"ceiling": "20", "days": "3"}
    eventually(lambda: b"UNDER WAY" not in source.what_if(query))
    page = source.what_if(query)
    options = ["--warehouse", str(warehouse), "--ceiling", "20", "--days", "3", "--output", "json"]

    code = main(["fleet", "simulate", *options])

    told = json.loads(capsys.readouterr().out)
    deleted = human_bytes(sum(device["byCeilingBytes"] for device in told["devices"]))
    text = Parsed(page.decode()).text
    assert code == 0
    assert f"ceilings {deleted}." in text
    assert f"brimline fleet simulate --warehouse {warehouse} --ceiling 20 --days 3 --all" in text


def test_a_topic_of_a_what_if_that_nobody_has_is_said(warehouse: Path) -> None:
    source = FleetSource(str(warehouse))
    query = {"topic": "no such-*", "retention": "7d", "days": "0"}
    eventually(lambda: b"UNDER WAY" not in source.what_if(query))

    text = Parsed(source.what_if(query).decode()).text

    assert "no topic matches no such-*" in text
    assert "Topic (* is any text)" in text
    assert "The topic is a regular expression there." in text


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("days=x", "'x' is not a number of days"),
        ("days=7&ceiling=101", "'101' is not a ceiling"),
        ("days=7&broker=99", "no broker with segments matches"),
        ("days=7&topic=a&retention=7", "7 of what?"),
        ("days=7&topic=a", "a topic needs a retention"),
        # Not a pattern of its own
        ("days=7&topic=*&retention=x|(a%2B)%2Bb=7d", "is not a size"),
        ("days=7&topic=*&retention=" + "(" * 2000 + "=7d", "is not a size"),
        ("days=7&topic=*&retention=" + "9" * 400 + ".5EB", "is not a size"),
    ],
)
def test_a_what_if_that_makes_no_sense_is_a_sentence(warehouse: Path, query: str, sentence: str) -> None:
    answer = asked(warehouse, "/what-if", query)

    assert answer.status is HTTPStatus.BAD_REQUEST
    assert sentence in Parsed(answer.body.decode()).text


@pytest.mark.parametrize(
    ("segments", "days", "where"), [(90_000, 7, "here"), (90_000, 365, "apart"), (200_000, 7, "apart")]
)
def test_what_takes_long_is_not_done_by_the_server_itself(
    monkeypatch: pytest.MonkeyPatch, segments: int, days: int, where: str
) -> None:
    def no_process(*_: object, **__: object) -> None:
        raise OSError("a process of its own")

    monkeypatch.setattr(what_if, "ProcessPoolExecutor", no_process)
    file = SnapshotFile(
        path="/gone", segments=segments, cluster_id="c", broker_id=1, snapshot_id="ff", taken_at_ms=int(NOW.timestamp())
    )

    def done() -> int:
        return len(list(what_if._rows(WhatIf(days=days), [file])))

    if where == "apart":
        with pytest.raises(OSError, match="a process of its own"):
            done()
    else:
        assert done() == 1


LONGEST = "a" * 249
"""The longest name that a topic can have."""


@pytest.mark.parametrize(
    "topic", ["*" * 8000 + "!", "*a" * 60 + "!", "*aa*a" * 40 + "*!", "a*" * 120 + "*b*", "*a*" * 2000, "*" * 40]
)
def test_no_pattern_takes_for_ever(topic: str) -> None:
    """Two stars in a row, or a name that nearly matches, had every way of sharing it out tried."""
    (rule,) = Asked.of({"topic": topic, "retention": "7d"}).what_if.retention

    assert (rule.pattern.fullmatch(LONGEST) is not None) == (topic == "*" * 40)


@given(st.text("ab*.", max_size=12), st.text("ab.", max_size=12))
def test_a_star_is_any_text(topic: str, name: str) -> None:
    assume(topic)

    (rule,) = Asked.of({"topic": topic, "retention": "7d"}).what_if.retention

    assert bool(rule.pattern.fullmatch(name)) == fnmatchcase(name, topic)


def test_no_jvm_and_no_spark(warehouse: Path) -> None:
    code = (
        "import sys\nfrom brimline.web.warehouse import FleetSource\n"
        f"assert len(FleetSource({str(warehouse)!r}).rows()) == 4\nassert 'pyspark' not in sys.modules\n"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""``ledger`` as a command: what it tells of a ledger as the guard writes it, in every output."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brimline.act.ledger.entries import (
    Answered,
    AnsweredTrim,
    BallastAct,
    BallastEntry,
    CameBack,
    CordonAct,
    CordonEntry,
    CycleEnded,
    FreedTrim,
    GivenUp,
    GivenUpAct,
    GivenUpTrim,
    Paused,
    Requested,
    RequestedTrim,
    Resumed,
    ShedAct,
    ShedEntry,
    TrimNumber,
)
from brimline.act.ledger.ledger import Ledger
from brimline.cli import main
from brimline.model import BrokerId, Bytes, Offset, TopicPartition
from tests.act.ledger.entries import a_plan, a_trim

MIB = 1 << 20
FIRST = datetime(2026, 1, 31, 8, 30, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = FIRST


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Ledger:
    return Ledger(tmp_path, 1, lambda: clock.now)


@pytest.fixture
def properties(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs=/data/a,/data/b\nlisteners=PLAINTEXT://127.0.0.1:9092\nbrimline.state.dir={tmp_path}\n"
    )
    return str(path)


def write_a_cycle(ledger: Ledger, clock: Clock, cycle: str = "8:1-1") -> None:
    """Three trims: done, done by others, abandoned."""
    plan = a_plan(cycle, a_trim(0, 3), a_trim(1, 2), a_trim(7, 1, topic="clicks"))
    ledger.append(plan)
    requested = RequestedTrim(
        number=TrimNumber(0), leader=BrokerId(2), log_start=Offset(0), present_bytes=Bytes(3 * MIB)
    )
    ledger.append(Requested(cycle=plan.cycle, trims=(requested,)))
    ledger.append(Answered(cycle=plan.cycle, trims=(AnsweredTrim(number=TrimNumber(0), low_watermark=Offset(3000)),)))
    clock.now += timedelta(minutes=6)
    freed = FreedTrim(number=TrimNumber(0), freed_bytes=Bytes(3 * MIB))
    ledger.append(
        CameBack(cycle=plan.cycle, trims=(freed, FreedTrim(number=TrimNumber(1), freed_bytes=Bytes(2 * MIB))))
    )
    given_up = GivenUpTrim(number=TrimNumber(2), why="the topic clicks is gone", freed_bytes=Bytes(0))
    ledger.append(GivenUp(act=GivenUpAct.ABANDONED, cycle=plan.cycle, trims=(given_up,)))
    ledger.append(CycleEnded(cycle=plan.cycle, done=2, abandoned=1, freed_bytes=Bytes(5 * MIB)))


SHED = ShedEntry(
    act=ShedAct.SHED,
    partition=TopicPartition("orders", 0),
    follower=BrokerId(2),
    log_dir="/data/a",
    before=(BrokerId(1), BrokerId(2), BrokerId(3)),
    size=Bytes(64 * MIB),
    why="broker 2 has no room",
)


def write_acts(ledger: Ledger) -> None:
    ledger.append(
        BallastEntry(
            act=BallastAct.RELEASED,
            path="/data/a/.brimline-ballast",
            device="8:1",
            size=Bytes(64 * MIB),
            usable_bytes=Bytes(0),
            why="only 0 B of the volume usable, less than 16.0 MiB",
            was_late=True,
        )
    )
    ledger.append(CordonEntry(act=CordonAct.CORDONED, log_dir="/data/a", why="log dir /data/a is 95.2 % used"))
    ledger.append(CordonEntry(act=CordonAct.UNCORDONED, log_dir="/data/a", why="it has room again"))
    ledger.append(SHED)
    ledger.append(SHED.over("its replicas are 1, 2, 3 now"))
    ledger.append(Paused(by="root", reason="CHG-1"))
    ledger.append(Resumed(by="root", reason=""))


def test_the_table_tells_what_went_why_and_what_came_back(
    ledger: Ledger, clock: Clock, properties: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_a_cycle(ledger, clock)
    write_acts(ledger)
    ledger.append(a_plan("8:1-11"))

    code = main(["ledger", "--config", properties])

    assert code == 0
    assert capsys.readouterr().out.splitlines() == [
        "Broker 1  2 cycles, 5.00 MiB freed",
        f"  {tmp_path}/ledger-1.jsonl",
        "",
        "ENDED       2026-01-31 08:30:00 UTC  cycle 8:1-1, by guard",
        "            device 8:1: /data/a, /data/b?",
        "            90.0 % used, 10.0 MiB over the ceiling of 80 %, 1.00 MiB being deleted already",
        "            planned 6.00 MiB, freed 5.00 MiB in 6 min: 2 trims done (1 by others), 1 abandoned",
        "            the oldest of the device",
        "            orders  2 partitions  5 segments  5.00 MiB of 5.00 MiB  2026-01-01 00:00 to 2026-01-01 03:00",
        "            clicks   1 partition   1 segment       0 B of 1.00 MiB  2026-01-01 00:00 to 2026-01-01 01:00",
        "            ✗ clicks-7: the topic clicks is gone",
        "",
        "BALLAST     2026-01-31 08:36:00 UTC  64.0 MiB released: /data/a/.brimline-ballast",
        "            only 0 B of the volume usable, less than 16.0 MiB; recorded later, when the disk had room",
        "",
        "CORDONED    2026-01-31 08:36:00 UTC  /data/a",
        "            log dir /data/a is 95.2 % used",
        "",
        "UNCORDONED  2026-01-31 08:36:00 UTC  /data/a",
        "            it has room again",
        "",
        "SHED        2026-01-31 08:36:00 UTC  orders-0 removed from broker 2 (64.0 MiB), replicas before: 1, 2, 3",
        "            broker 2 has no room",
        "",
        "SHED-OVER   2026-01-31 08:36:00 UTC  orders-0 removed from broker 2 (64.0 MiB), replicas before: 1, 2, 3",
        "            its replicas are 1, 2, 3 now",
        "",
        "PAUSED      2026-01-31 08:36:00 UTC  by root: CHG-1",
        "",
        "RESUMED     2026-01-31 08:36:00 UTC  by root",
        "",
        "UNDER WAY   2026-01-31 08:36:00 UTC  cycle 8:1-11, by guard",
        "            device 8:1: /data/a, /data/b?",
        "            90.0 % used, 10.0 MiB over the ceiling of 80 %, 1.00 MiB being deleted already",
        "            planned 3.00 MiB, freed 0 B: 0 trims done, 1 in progress",
        "            the oldest of the device",
        "            orders  1 partition  3 segments  0 B of 3.00 MiB  2026-01-01 00:00 to 2026-01-01 03:00",
    ]


def test_a_long_list_is_cut_and_says_where_the_rest_is(
    ledger: Ledger, properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = a_plan("8:1-1", *(a_trim(0, topic=f"topic-{n}") for n in range(15)))
    given_up = [GivenUpTrim(number=TrimNumber(n), why="gone", freed_bytes=Bytes(MIB)) for n in range(12)]
    ledger.append(plan, GivenUp(act=GivenUpAct.ABANDONED, cycle=plan.cycle, trims=tuple(given_up)))

    main(["ledger", "--config", properties])

    lines = capsys.readouterr().out.splitlines()
    assert lines[-12:-10] == [
        "            … and 5 more topics: --output csv",
        "            ✗ topic-0-0: gone (1.00 MiB freed)",
    ]
    assert lines[-1] == "            … and 2 more: --output csv"


def test_json_leaves_nothing_out(
    ledger: Ledger, clock: Clock, properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_a_cycle(ledger, clock)
    write_acts(ledger)

    code = main(["ledger", "--config", properties, "--output", "json"])

    document = json.loads(capsys.readouterr().out)
    (cycle,) = document["cycles"]
    assert (code, document["format"], document["broker"], document["damage"]) == (0, "brimline.ledger", 1, [])
    assert (cycle["begunAt"], cycle["endedAt"]) == ("2026-01-31T08:30:00.000Z", "2026-01-31T08:36:00.000Z")
    assert (cycle["plannedBytes"], cycle["freedBytes"], cycle["done"]) == (6 * MIB, 5 * MIB, 2)
    assert [trim["state"] for trim in cycle["trims"]] == ["done", "done", "abandoned"]
    assert [trim["byOthers"] for trim in cycle["trims"]] == [False, True, False]
    assert cycle["trims"][0]["lowWatermark"] == 3000
    assert cycle["trims"][2]["why"] == "the topic clicks is gone"
    assert [act["act"] for act in document["acts"]] == [
        "ballast-released",
        "cordoned",
        "uncordoned",
        "shed",
        "shed-over",
        "paused",
        "resumed",
    ]
    shed = document["acts"][3]
    assert (shed["topic"], shed["partition"], shed["before"], shed["left"]) == ("orders", 0, [1, 2, 3], [1, 3])


def test_csv_has_a_row_for_every_trim(
    ledger: Ledger, clock: Clock, properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_a_cycle(ledger, clock)

    main(["ledger", "--config", properties, "--output", "csv"])

    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["topic"], row["partition"], row["state"]) for row in rows] == [
        ("orders", "0", "done"),
        ("orders", "1", "done"),
        ("clicks", "7", "abandoned"),
    ]
    assert (rows[0]["target"], rows[0]["segments"], rows[0]["freed_bytes"]) == ("3000", "3", str(3 * MIB))
    assert rows[1]["low_watermark"] == ""
    assert rows[0]["oldest"] == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("since", "cycles"),
    [("2026-01-31", 2), ("2026-01-31T08:36", 2), ("2026-01-31T08:37", 1), ("2026-01-31T09:37+01:00", 1), ("1h", 0)],
)
def test_only_what_went_on_since_then(
    ledger: Ledger, clock: Clock, properties: str, capsys: pytest.CaptureFixture[str], since: str, cycles: int
) -> None:
    write_a_cycle(ledger, clock)
    clock.now += timedelta(hours=1)
    write_a_cycle(ledger, clock, "8:1-7")

    code = main(["ledger", "--config", properties, "--output", "json", "--since", since])

    assert code == 0
    assert len(json.loads(capsys.readouterr().out)["cycles"]) == cycles


def test_a_time_that_is_none_is_refused(properties: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--config", properties, "--since", "yesterday"]) == 1
    assert "'yesterday' is neither a span such as 24h nor a time such as 2026-01-31" in capsys.readouterr().err


def test_damage_is_named_and_the_rest_is_shown(
    ledger: Ledger, clock: Clock, properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_a_cycle(ledger, clock)
    lines = ledger.files.current.read_bytes().splitlines(keepends=True)
    ledger.files.current.write_bytes(b"".join([*lines[:2], b"?\n", *lines[3:]]))

    code = main(["ledger", "--config", properties])

    shown = capsys.readouterr()
    assert code == 3
    assert "2 trims done" in shown.out
    assert shown.err.splitlines() == [
        f"brimline: {ledger.files.current} line 3: damaged or truncated",
        f"brimline: {ledger.files.current} line 4: entries 3 to 3 are missing before it",
    ]


def test_no_ledger_is_one_sentence(properties: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--config", properties]) == 1
    assert "brimline: no ledger yet" in capsys.readouterr().err


def test_timestamps_that_are_no_dates_are_left_out(
    ledger: Ledger, properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trim = a_trim()
    odd = {name: getattr(trim, name) for name in type(trim).__slots__} | {"oldest_ms": -1, "newest_ms": 2**62}
    ledger.append(a_plan("8:1-1", type(trim)(**odd)))

    main(["ledger", "--config", properties, "--output", "json"])

    (shown,) = json.loads(capsys.readouterr().out)["cycles"][0]["trims"]
    assert (shown["oldest"], shown["newest"]) == (None, None)


def test_help_shows_examples_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--help"]) == 0

    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert "exit codes:" in shown

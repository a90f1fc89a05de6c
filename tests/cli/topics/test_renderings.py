"""``brimline topics`` for people and for programs, at every width, and what it says when it is asked wrongly."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from brimline.cli import main
from brimline.cli.shared.glyphs import ASCII
from brimline.cli.topics import table
from brimline.cli.topics.for_programs import COLUMNS, write_csv, write_json
from brimline.cli.topics.report import TopicsReport
from brimline.decide.topic_use import summaries
from brimline.model import BrokerId, Bytes, Failure, FailureKind, Offset
from brimline.model.blast_radius import GroupsSeen, UnknownGroups
from brimline.model.reclaim import CleanupRules
from brimline.model.topic_use import PartitionUse, ReplicaUse, TopicUse
from tests.cli.log_dirs.clusters import broker, by_id, log_dir

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY_MS = 86_400_000
MIB = 1 << 20
SHARE = UnknownGroups(
    what="1 share group",
    count=1,
    failure=Failure(kind=FailureKind.UNSUPPORTED, message="they keep their place elsewhere"),
)


def use(name: str, size: int, rules: CleanupRules | None, **more: object) -> TopicUse:
    replicas = tuple(ReplicaUse(broker=BrokerId(each), log_dir="/data/kafka", size=Bytes(size)) for each in (1, 2))
    partition = PartitionUse(
        partition=0,
        replicas=replicas,
        leader=BrokerId(1),
        log_start=Offset(0),
        high_watermark=Offset(1000),
        written_since=Offset(750),
        oldest_ms=NOW_MS - 3 * DAY_MS,
    )
    return TopicUse(name=name, rules=rules, partitions=(partition,), segment_bytes=1 << 30, **more)  # type: ignore[arg-type]


def report() -> TopicsReport:
    topics = [
        use("orders-of-a-shop-with-a-long-name", 40 * MIB, CleanupRules(), committed={"billing": {0: Offset(10)}}),
        use("clicks", 100 * MIB, CleanupRules(retention_ms=-1), own=frozenset({"retention.ms"})),
        use("settings", MIB, CleanupRules(compacts=True, deletes=False)),
        use("secret", 2 * MIB, None),
        use("__consumer_offsets", MIB, CleanupRules(compacts=True, deletes=False, is_internal=True)),
    ]
    return TopicsReport(
        observed_at=NOW,
        brokers=by_id(broker(1, log_dir("/data/kafka")), broker(2, log_dir("/data/kafka"))),
        topics=tuple(summaries(topics, {}, NOW_MS)),
        groups=GroupsSeen(groups=(), asked=2, unknown=(SHARE,)),
    )


def drawn(shown: TopicsReport, width: int, *, by_disk: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, highlight=False)
    lines = table.lines(shown, ASCII, width, top=3, by_disk=by_disk)
    for line in lines:
        console.print(line, soft_wrap=True)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("by_disk", [False, True])
def test_nothing_runs_over_and_the_size_is_always_there(width: int, by_disk: bool) -> None:  # noqa: FBT001
    shown = drawn(report(), width, by_disk=by_disk)

    assert max(map(len, shown)) <= width
    assert any("100 MiB" in line if by_disk else "200 MiB" in line for line in shown)


def test_the_largest_topic_comes_first_with_its_reason_below() -> None:
    first, second, *_ = drawn(report(), 120)[2:]

    assert first.split()[:4] == ["clicks", "200", "MiB", "100"]
    assert "none " in first
    assert second.strip() == "no limit: retention.ms and retention.bytes are -1; set one"


def test_the_rest_is_counted_and_what_is_not_known_is_said() -> None:
    text = "\n".join(drawn(report(), 120))

    assert "and 2 more (4.00 MiB): --all shows them" in text
    assert "5 topics - 288 MiB with all replicas - 144 MiB without - 3 without readers: --unread" in text
    assert "unknown: 1 share group: they keep their place elsewhere" in text
    assert "configuration unknown" in "\n".join(drawn(replace(report(), topics=report().topics[2:]), 120))


def test_json_and_csv_say_the_same_and_unknown_is_null() -> None:
    as_json, as_csv = io.StringIO(), io.StringIO()
    write_json(report(), as_json)
    write_csv(report(), as_csv)

    topics = {each["topic"]: each for each in json.loads(as_json.getvalue())["topics"]}
    rows = list(csv.DictReader(io.StringIO(as_csv.getvalue())))
    assert tuple(rows[0]) == COLUMNS
    assert sum(int(row["bytes"]) for row in rows) == sum(each["bytes"] for each in topics.values())
    assert topics["secret"]["retentionMs"] is None
    assert topics["clicks"]["retentionMsSetBy"] == "topic"
    assert topics["orders-of-a-shop-with-a-long-name"]["groups"] == [
        {"group": "billing", "activity": "unknown", "recordsBehind": 990}
    ]
    assert {row["stays"] for row in rows if row["topic"] == "clicks"} == {"no-limit"}


def test_one_of_both_ways_to_the_cluster_must_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BRIMLINE_CONFIG", raising=False)

    assert main(["topics"]) == 1
    assert main(["topics", "--bootstrap-server", "a:1", "--config", "x"]) == 1
    assert capsys.readouterr().err.count("name one of --bootstrap-server") == 2


def test_log_dirs_that_are_offline_are_named_because_nothing_in_them_is_counted() -> None:
    out = io.StringIO()
    brokers = by_id(broker(1, log_dir("/a"), log_dir("/b", error=56)))

    write_json(replace(report(), brokers=brokers), out)

    assert json.loads(out.getvalue())["offline"] == [{"broker": 1, "logDir": "/b"}]

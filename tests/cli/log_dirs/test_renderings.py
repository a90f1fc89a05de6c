"""One result, many renderings: golden texts of each."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from brimline.cli.log_dirs.for_programs import COLUMNS, write_csv, write_json, write_kafka_json
from brimline.cli.log_dirs.report import LogDirsReport
from brimline.cli.log_dirs.table import draw_table
from brimline.cli.shared.glyphs import ASCII, UNICODE, Glyphs
from brimline.model import BrokerLogDirs, Reason
from tests.cli.log_dirs.clusters import GIB, TIMED_OUT, broker, by_id, log_dir, row, small_cluster


def text_of(write: object, report: LogDirsReport) -> str:
    out = io.StringIO(newline="")
    assert callable(write)
    write(report, out)
    return out.getvalue()


def table_of(report: LogDirsReport, width: int = 80, top: int | None = 20, glyphs: Glyphs = UNICODE) -> str:
    out = io.StringIO()
    draw_table(report, Console(file=out, width=width, highlight=False, markup=False), glyphs, room=width, top=top)
    return out.getvalue()


def test_kafka_json_is_the_stock_tool_s() -> None:
    assert text_of(write_kafka_json, LogDirsReport(brokers=small_cluster())) == (
        "Received log directory information from brokers 1,2\n"
        '{"brokers":[{"broker":1,"logDirs":[{"partitions":['
        '{"partition":"orders-10","size":3221225472,"offsetLag":0,"isFuture":false}],'
        '"error":null,"logDir":"/data/a"}]},'
        '{"broker":2,"logDirs":[{"partitions":['
        '{"partition":"orders-8","size":512,"offsetLag":-1,"isFuture":true}],"error":null,"logDir":"/data/a"},'
        '{"partitions":[{"partition":"audit-0","size":734003200,"offsetLag":0,"isFuture":false},'
        '{"partition":"orders-9","size":3221225472,"offsetLag":12345,"isFuture":false},'
        '{"partition":"orders-10","size":3221225472,"offsetLag":0,"isFuture":false}],"error":null,"logDir":"/data/b"},'
        '{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/data/c"}]}],'
        '"version":1}\n'
    )


def test_kafka_json_has_remote_sizes_only_when_asked_and_null_where_unknown() -> None:
    report = LogDirsReport(brokers=small_cluster(), include_remote_info=True, topics=frozenset({"orders"}))

    line = text_of(write_kafka_json, report).splitlines()[1]

    assert '"isFuture":false,"remoteSize":9663676416,"onlyLocalSize":1073741824}' in line
    assert '"isFuture":false,"remoteSize":9663676416,"onlyLocalSize":null}' in line
    assert '"isFuture":true,"remoteSize":null,"onlyLocalSize":null}' in line
    assert "audit" not in line


def test_json_is_whole() -> None:
    cluster = small_cluster() | by_id(broker(3, failure=TIMED_OUT))

    document = json.loads(
        text_of(write_json, LogDirsReport(brokers=cluster, include_remote_info=True, skipped_records=7))
    )

    assert (document["format"], document["version"], document["topics"]) == ("brimline.log-dirs", 1, None)
    assert document["skippedRemoteLogMetadataRecords"] == 7
    first, second, third = document["brokers"]
    assert third["failure"] == {"kind": "timed-out", "message": TIMED_OUT.message}
    assert (third["volumes"], third["logDirs"]) == ([], [])
    assert (first["address"], first["observedAt"]) == ("kafka-1.example.com:9092", "2026-01-31T12:00:00.500Z")
    assert second["volumes"] == [
        {"totalBytes": 10 * GIB, "usableBytes": 3 * GIB, "usedPercent": 70.0, "logDirs": ["/data/a", "/data/b"]},
        {"totalBytes": None, "usableBytes": None, "usedPercent": None, "logDirs": ["/data/c"]},
    ]
    assert [log_dir["error"] for log_dir in second["logDirs"]] == [None, None, "KAFKA_STORAGE_ERROR"]
    assert second["logDirs"][1]["replicas"][1] == {
        "topic": "orders",
        "partition": 9,
        "size": 3 * GIB,
        "offsetLag": 12345,
        "isFuture": False,
        "remoteSize": 9 * GIB,
        "remoteSizeReason": None,
        "onlyLocalSize": None,
        "onlyLocalSizeReason": "follower",
    }


def test_a_topic_list_limits_replicas_and_neither_volumes_nor_log_dirs() -> None:
    report = LogDirsReport(brokers=small_cluster(), topics=frozenset({"audit"}))

    second = json.loads(text_of(write_json, report))["brokers"][1]

    assert second["volumes"][0]["logDirs"] == ["/data/a", "/data/b"]
    assert [(each["replicaCount"], len(each["replicas"])) for each in second["logDirs"]] == [(1, 0), (3, 1), (0, 0)]


def test_csv_has_a_row_for_every_replica_empty_log_dir_and_failed_broker() -> None:
    cluster = by_id(
        broker(1, log_dir('/a "b", c', [row("t", 0, 5)], total=10, usable=3), log_dir("/z", error=56)),
        broker(3, failure=TIMED_OUT),
    )

    text = text_of(write_csv, LogDirsReport(brokers=cluster))

    assert text == (
        f"{','.join(COLUMNS)}\r\n"
        '1,"/a ""b"", c",,10,3,t,0,5,0,false,,not-asked,,not-asked,,\r\n'
        "1,/z,KAFKA_STORAGE_ERROR,,,,,,,,,,,,,\r\n"
        f"3,,,,,,,,,,,,,,timed-out,{TIMED_OUT.message}\r\n"
    )


def test_the_table_at_80_columns() -> None:
    cluster = small_cluster() | by_id(broker(3, failure=TIMED_OUT))

    text = table_of(LogDirsReport(brokers=cluster, include_remote_info=True), top=4)

    assert text == (
        "Broker 1  kafka-1.example.com:9092\n"
        "  ██████████████████████░░   93.7 %  3.75 GiB used of 4.00 GiB, 256 MiB usable\n"
        "    /data/a  1 replica   3.00 GiB  cordoned\n"
        "\n"
        "Broker 2  kafka-2.example.com:9092\n"
        "  █████████████████░░░░░░░   70.0 %  7.00 GiB used of 10.0 GiB, 3.00 GiB usable\n"
        "  ├ /data/a  1 replica      512 B\n"
        "  └ /data/b  3 replicas  6.68 GiB\n"
        "    2 log dirs share this volume; it is counted once\n"
        "  volume of unknown size\n"
        "    /data/c  ✗ offline: KAFKA_STORAGE_ERROR\n"
        "\n"
        "Broker 3  kafka-3.example.com:9092\n"
        "  ✗ broker 3 at kafka-3.example.com:9092 did not answer in 30 s\n"
        "\n"
        "Broker  Log dir  Partition      Size     Lag    Remote  Only local\n"
        "──────────────────────────────────────────────────────────────────\n"
        "     1  /data/a  orders-10  3.00 GiB       0  9.00 GiB          -¹\n"
        "     2  /data/b  orders-9   3.00 GiB  12,345  9.00 GiB          -¹\n"
        "     2  /data/b  orders-10  3.00 GiB       0  9.00 GiB    1.00 GiB\n"
        "     2  /data/b  audit-0     700 MiB       0        -²          -²\n"
        "… and 1 more (512 B): --all shows them\n"
        "\n"
        "¹ unknown for followers: only the leader's local log start is known\n"
        "² the topic is not tiered (remote.storage.enable is false)\n"
        "\n"
        "Cluster  3 brokers · 3 volumes · 76.7 % used · 3.25 GiB usable of 14.0 GiB\n"
        "         5 replicas · 9.68 GiB · 18.0 GiB remote · 1.00 GiB only local\n"
        "         not counted: 1 broker without an answer, 1 volume of unknown size\n"
    )


def test_the_table_without_remote_information_has_no_such_columns_and_marks_a_future_replica() -> None:
    text = table_of(LogDirsReport(brokers=small_cluster()), top=None)

    assert "Remote" not in text
    assert "     2  /data/a  orders-8 (future)     512 B       -\n" in text


def test_a_broker_too_old_for_volume_bytes_says_so() -> None:
    text = table_of(LogDirsReport(brokers=by_id(broker(1, log_dir("/d", [row("t", 0, 1)])))))

    assert "  volume of unknown size: the broker does not say (needs Kafka 3.3)\n    /d  1 replica   1 B\n" in text
    assert "Cluster  1 broker · 1 volume\n" in text


def test_a_topic_nobody_has() -> None:
    text = table_of(LogDirsReport(brokers=small_cluster(), topics=frozenset({"nope"})))

    assert "No replica of these topics.\n" in text
    assert "0 replicas of 1 topic · 0 B\n" in text


def test_names_cannot_move_the_cursor() -> None:
    text = table_of(LogDirsReport(brokers=by_id(broker(1, log_dir("/a\x1b[2J", [row("t", 0, 1)])))))

    assert "\x1b" not in text
    assert "/a?[2J" in text


def test_the_table_at_60_columns() -> None:
    cluster = small_cluster() | by_id(broker(3, failure=TIMED_OUT), broker(4, log_dir("/d")))

    text = table_of(LogDirsReport(brokers=cluster, include_remote_info=True), width=60, top=2)

    assert text == (
        "Broker 1  kafka-1.example.com:9092\n"
        "  ████░   93.7 %  3.75 GiB used of 4.00 GiB, 256 MiB usable\n"
        "    /data/a  1 replica   3.00 GiB  cordoned\n"
        "\n"
        "Broker 2  kafka-2.example.com:9092\n"
        "  ████░   70.0 %  7.00 GiB used of 10.0 GiB, 3.00 GiB usable\n"
        "  ├ /data/a  1 replica      512 B\n"
        "  └ /data/b  3 replicas  6.68 GiB\n"
        "    2 log dirs share this volume; it is counted once\n"
        "  volume of unknown size\n"
        "    /data/c  ✗ offline: KAFKA_STORAGE_ERROR\n"
        "\n"
        "Broker 3  kafka-3.example.com:9092\n"
        "  ✗ broker 3 at kafka-3.example.com:9092 did not answer in\n"
        "    30 s\n"
        "\n"
        "Broker 4  kafka-4.example.com:9092\n"
        "  volume of unknown size: the broker does not say (needs\n"
        "  Kafka 3.3)\n"
        "    /d  0 replicas  0 B\n"
        "\n"
        "Broker  Log dir  Partition      Size    Remote  Only local\n"
        "──────────────────────────────────────────────────────────\n"
        "     1  /data/a  orders-10  3.00 GiB  9.00 GiB          -¹\n"
        "     2  /data/b  orders-9   3.00 GiB  9.00 GiB          -¹\n"
        "Lag would need a wider terminal\n"
        "… and 3 more (3.68 GiB): --all shows them\n"
        "\n"
        "¹ unknown for followers: only the leader's local log start\n"
        "  is known\n"
        "\n"
        "Cluster  4 brokers · 4 volumes · 76.7 % used\n"
        "         3.25 GiB usable of 14.0 GiB\n"
        "         5 replicas · 9.68 GiB · 18.0 GiB remote\n"
        "         1.00 GiB only local\n"
        "         not counted: 1 broker without an answer, 2 volumes\n"
        "         of unknown size\n"
    )


def test_long_names_at_60_columns_keep_their_ends_and_every_number() -> None:
    name = "payments.settled.by-customer.europe-west"
    rows = [row(name, 117, 3 * GIB, lag=12345, remote=9 * GIB, only_local=GIB), row(name, 9, 2 * GIB, future=True)]
    report = LogDirsReport(brokers=by_id(broker(1, log_dir("/var/lib/kafka/data-1", rows))), include_remote_info=True)

    text = table_of(report, width=60)

    assert (
        "Broker  Partition                 Size    Remote  Only local\n"
        "────────────────────────────────────────────────────────────\n"
        "     1  payments.…e-west-117  3.00 GiB  9.00 GiB    1.00 GiB\n"
        "     1  payme…est-9 (future)  2.00 GiB        -¹          -¹\n"
        "Lag and Log dir would need a wider terminal\n"
    ) in text


names = st.text("abc.-_", min_size=1, max_size=249)
paths = st.text("/abc", min_size=1, max_size=200)
any_size = st.integers(0, 2**63 - 1)
size_or_reason = any_size | st.sampled_from([reason for reason in Reason if reason is not Reason.KNOWN])
any_row = st.builds(
    row,
    names,
    st.integers(0, 2**31 - 1),
    any_size,
    lag=st.integers(-1, 2**63 - 1),
    future=st.booleans(),
    remote=size_or_reason,
    only_local=size_or_reason,
)
any_log_dir = st.builds(
    log_dir,
    paths,
    st.lists(any_row, max_size=3),
    total=any_size,
    usable=any_size,
    cordoned=st.sampled_from([None, False, True]),
)
broken_log_dir = st.builds(
    log_dir,
    paths,
    error=st.none() | st.integers(-1, 127).filter(lambda code: code != 0),
    cordoned=st.sampled_from([None, False, True]),
)
any_broker = st.builds(
    lambda number, host, log_dirs, failure: replace(
        broker(number, *([] if failure else log_dirs), failure=failure), address=f"{host}:65535"
    ),
    st.integers(0, 2**31 - 1),
    st.text("abc.-", min_size=1, max_size=253),
    st.lists(any_log_dir | broken_log_dir, max_size=3),
    st.none() | st.just(TIMED_OUT),
)


@given(
    st.lists(any_broker, min_size=1, max_size=3),
    st.integers(60, 200),
    st.sampled_from([UNICODE, ASCII]),
    st.booleans(),
    st.none() | st.frozensets(names, min_size=1, max_size=3),
    st.none() | st.integers(0, 3),
)
def test_no_line_is_wider_than_the_terminal(
    brokers: list[BrokerLogDirs],
    width: int,
    glyphs: Glyphs,
    remote: bool,  # noqa: FBT001 (Hypothesis gives it)
    topics: frozenset[str] | None,
    top: int | None,
) -> None:
    report = LogDirsReport(brokers=by_id(*brokers), include_remote_info=remote, topics=topics)

    text = table_of(report, width, top, glyphs)

    assert [line for line in text.splitlines() if len(line) > width] == []


@given(
    st.lists(st.tuples(names, st.integers(0, 3), st.integers(0, 2**62)), max_size=8, unique_by=lambda each: each[:2])
)
def test_every_rendering_for_programs_tells_the_same(replicas: list[tuple[str, int, int]]) -> None:
    report = LogDirsReport(brokers=by_id(broker(1, log_dir("/d", [row(*replica) for replica in replicas]))))
    expected = [(f"{topic}-{partition}", size) for topic, partition, size in sorted(replicas)]

    stock = json.loads(text_of(write_kafka_json, report).splitlines()[1])["brokers"][0]["logDirs"][0]["partitions"]
    ours = json.loads(text_of(write_json, report))["brokers"][0]["logDirs"][0]["replicas"]
    table = [each for each in csv.DictReader(io.StringIO(text_of(write_csv, report))) if each["topic"]]

    assert [(each["partition"], each["size"]) for each in stock] == expected
    assert [(f"{each['topic']}-{each['partition']}", each["size"]) for each in ours] == expected
    assert [(f"{each['topic']}-{each['partition']}", int(each["size"])) for each in table] == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "...."), (0.001, "#..."), (0.5, "##.."), (0.999, "###."), (1.0, "####"), (1.7, "####"), (-1.0, "....")],
)
def test_a_bar_is_full_only_when_full_and_empty_only_when_empty(share: float, expected: str) -> None:
    assert "".join(ASCII.bar(share, 4)) == expected


def test_shortened_text_keeps_the_end() -> None:
    assert UNICODE.without_middle("payments.orders-117", 11) == "payme…s-117"
    assert UNICODE.without_beginning("/var/lib/kafka/data-1", 8) == "…/data-1"
    assert UNICODE.without_beginning("/d", 8) == "/d"

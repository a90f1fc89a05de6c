"""``reclaim`` as a command: what it shows of a world that is written down, in every output, and what it refuses."""

import csv
import io
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.act.ledger.entries import Paused
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.ledger import Ledger
from brimline.act.plan_file import CeilingFrom, load_plan, read_plan
from brimline.cli import main
from brimline.cli.reclaim.asking import consent, progress_text, status_on
from brimline.cli.reclaim.for_programs import about_document, write_reclaim_csv, write_reclaim_json
from brimline.cli.reclaim.table import write_reclaim_table
from brimline.cli.shared.columns import Column, column_lines
from brimline.cli.shared.glyphs import ASCII, UNICODE
from brimline.guard.reclaim.hand import CycleProgress
from brimline.guard.reclaim.preview import Preview, Wanted, preview_of
from brimline.guard.reclaim.settings import refuse_unsaid_ceiling
from brimline.model import BadInput, BrokerId, Bytes, Failure, FailureKind, Offset, TopicPartition
from brimline.model.blast_radius import ConsumerGroup, GroupActivity, GroupsSeen, UnknownGroups
from brimline.model.reclaim import CleanupRules, ReclaimPolicy
from brimline.service.clock import SystemClock
from tests.guard.reclaim.surveys import ADisk, ALog

ORDERS = ALog(topic="orders", hours=[50, 40, 30, 20, 10, 0])
CLICKS = ALog(topic="clicks", hours=[45, 35, 25, 15, 5, 0])
PRICES = ALog(topic="prices", hours=[9, 0], rules=CleanupRules(deletes=False, compacts=True))
DISK = ADisk(logs=[CLICKS, ORDERS, PRICES], used=84)
HIDDEN = UnknownGroups(
    what="2 groups (secret, …)",
    count=2,
    failure=Failure(kind=FailureKind.NOT_AUTHORIZED, message="no permission"),
)
NOBODY = GroupsSeen(groups=(), asked=3)


def billing(_: Collection[TopicPartition]) -> GroupsSeen:
    committed = {TopicPartition("orders", 0): Offset(150), TopicPartition("clicks", 0): Offset(0)}
    group = ConsumerGroup(name="billing", activity=GroupActivity.EMPTY, committed=committed)
    return GroupsSeen(groups=(group,), asked=3, unknown=(HIDDEN,))


def shown(disk: ADisk = DISK, wanted: Wanted | None = None, groups: GroupsSeen | None = None) -> Preview:
    asked = wanted or Wanted()
    policy = asked.policy(disk.policy)
    return preview_of(
        replace(disk, policy=policy).survey(),
        asked,
        disk.policy,
        BrokerId(1),
        "cluster",
        billing if groups is None else lambda _: groups,
    )


def table(preview: Preview, *, is_dry: bool = True) -> list[str]:
    content = io.BytesIO()
    out = io.TextIOWrapper(content, encoding="utf-8")
    write_reclaim_table(preview, out, is_dry=is_dry)
    out.flush()
    return content.getvalue().decode().splitlines()


def test_the_table_tells_what_would_go_who_would_miss_it_and_why_the_rest_stays() -> None:
    assert table(shown()) == [
        "Broker 1  3.81 MiB would be deleted: 4 segments of 2 topics",
        "  dry run · 2026-01-31 12:00:00 UTC · ceiling 80 %",
        "",
        "Disk 8:1  /data/a",
        "  now     ████████████████████░░░░   84.0 %  80.1 MiB used of 95.4 MiB",
        "  after   ███████████████████░░░░░   80.0 %  3.81 MiB by this plan: 4 segments",
        "",
        "What would be deleted",
        "  Topic   Partitions  Segments      Size  Records  Oldest  Newest  Groups",
        "  ───────────────────────────────────────────────────────────────────────",
        "  clicks           1         2  1.91 MiB      200    45 h    35 h       1",
        "  orders           1         2  1.91 MiB      200  2 days    40 h       1",
        "  Records are counted by offsets: an upper bound.",
        "",
        "By age",
        "  50 to 51 h  977 KiB  1 segment  ████████████████████████",
        "  45 to 46 h  977 KiB  1 segment  ████████████████████████",
        "  40 to 41 h  977 KiB  1 segment  ████████████████████████",
        "  35 to 36 h  977 KiB  1 segment  ████████████████████████",
        "",
        "Consumer groups that would lose records",
        "  Group    State  Partitions  Records  Reset anyway  Topics",
        "  ─────────────────────────────────────────────────────────────────",
        "  billing  empty           2      250             0  clicks, orders",
        "  A group whose offset was deleted follows its auto.offset.reset: latest (the default) skips what is left "
        "in the partition, earliest continues at the new log start, none stops with an error.",
        "  ✗ unknown: 2 groups (secret, …): no permission",
        "  Readers that do not commit offsets to Kafka are not listed.",
        "",
        "Why the rest stays",
        "  5.72 MiB  6 segments  older segments on the device are enough to get below its ceiling",
        "  2.86 MiB  3 segments  the active segment, which the broker writes to",
        "   977 KiB   1 segment  a compacted topic: the newest record of each key must stay",
        "  Never trimmed, compacted topics: prices.",
        "  74.0 % of this disk cannot be removed, mostly files outside the log dirs, and file system overhead (70.0 "
        "%), active segments (3.0 %), compacted topics (1.0 %): a ceiling of 80 % is possible.",
        "",
        "Nothing was changed. --apply deletes this after asking; --output json keeps it as a plan.",
    ]


def test_what_is_about_to_be_done_is_not_called_a_dry_run() -> None:
    lines = table(shown(), is_dry=False)

    assert lines[0] == "Broker 1  3.81 MiB will be deleted: 4 segments of 2 topics"
    assert not [line for line in lines if "dry run" in line or "Nothing was changed" in line]


def test_another_ceiling_is_said_to_be_by_hand() -> None:
    lines = table(shown(wanted=Wanted(ceiling=82)))

    assert lines[1] == "  dry run · 2026-01-31 12:00:00 UTC · ceiling 82 % by hand (the file has 80 %)"
    without = shown(replace(DISK, policy=ReclaimPolicy()), Wanted(ceiling=82))
    assert table(without)[1].endswith("ceiling 82 % by hand (the file has none)")


def test_brakes_are_named() -> None:
    policy = ReclaimPolicy(
        ceiling_percent=80,
        min_retention_ms=7_200_000,
        min_retention_bytes=1 << 20,
        max_bytes_per_cycle=2_000_000,
        protected_topics=("pay.*",),
    )

    lines = table(shown(replace(DISK, policy=policy)))

    assert lines[1].endswith(
        "ceiling 80 % · newest 2 h kept · newest 1.00 MiB of a partition kept · at most 1.91 MiB a cycle · "
        "protected: pay.*"
    )
    assert [line for line in lines if line.endswith("1.91 MiB over the ceiling are left to later cycles")]


@pytest.mark.parametrize(
    ("disk", "verdict", "sentence"),
    [
        (replace(DISK, used=79), "nothing to delete", "  below its ceiling: nothing to delete"),
        (
            replace(DISK, policy=ReclaimPolicy()),
            "nothing to delete",
            "  no ceiling (log.retention.disk.usage.percent is 100): --ceiling 80 shows what one would do",
        ),
        (
            DISK.with_log(replace(ORDERS, log_start=400)),
            "nothing to delete",
            "  above its ceiling, but deletions in progress cover it",
        ),
        (ADisk(logs=[PRICES], used=84), "nothing is removable", "  ✗ stays above its ceiling of 80 %"),
    ],
)
def test_a_disk_from_which_nothing_goes_says_why(disk: ADisk, verdict: str, sentence: str) -> None:
    lines = table(shown(disk, groups=NOBODY))

    assert lines[0] == f"Broker 1  {verdict}"
    assert sentence in lines
    assert "What would be deleted" not in lines


def test_what_leaves_anyway_and_what_lower_local_retention_would_free_is_said() -> None:
    tiered = replace(PRICES, rules=CleanupRules(is_tiered=True, retention_ms=-1), highest_remote=99)
    lines = table(shown(DISK.with_log(replace(ORDERS, log_start=200)).with_log(tiered), groups=NOBODY))

    going = "  going   ████████████████████░░░░   82.0 %  1.91 MiB already being deleted: 1.91 MiB below log starts"
    assert going in lines
    assert "  none of 3 consumer groups has an offset in what would be deleted" in lines
    assert [line for line in lines if "a tiered topic: a trim would delete" in line]
    assert "  Lowering local.retention.ms or local.retention.bytes of tiered topics would free up to 977 KiB." in lines


def test_an_impossible_ceiling_names_what_would_help() -> None:
    lines = table(shown(replace(DISK, policy=ReclaimPolicy(ceiling_percent=20))))

    assert "  ✗ stays above its ceiling of 20 %" in lines
    assert [line for line in lines if line.endswith("a ceiling of 20 % is impossible.")]
    assert [
        line for line in lines if line.startswith("    active segments (clicks, orders, prices): lower segment.bytes")
    ]


def test_of_a_plan_it_is_said_what_is_not_true_any_more() -> None:
    filed = shown().filed

    lines = table(shown(replace(DISK, used=81), Wanted(plan=filed), NOBODY))

    enough = "older segments on the device are enough to get below its ceiling"
    begin = lines.index("No longer true of the plan")
    assert lines[begin + 1 : begin + 3] == [
        f"  ✗ orders-0: cut down from 200 to 100: {enough}",
        f"  ✗ clicks-0: left out: {enough}",
    ]


def test_a_plan_by_hand_keeps_its_ceiling() -> None:
    filed = shown(wanted=Wanted(ceiling=82)).filed

    again = shown(DISK, Wanted(plan=filed), NOBODY)

    assert (again.policy.ceiling_percent, again.filed.ceiling_from) == (82, CeilingFrom.HAND)
    assert again.trims == filed.trims


def test_json_is_a_plan_that_can_be_read_again() -> None:
    preview, out = shown(), io.StringIO()

    write_reclaim_json(preview, out)

    assert read_plan(out.getvalue().encode(), "plan.json") == preview.filed
    about = json.loads(out.getvalue())["about"]
    assert about["groups"] == [
        {
            "group": "billing",
            "activity": "empty",
            "recordsAtMost": 250,
            "partitions": [
                {
                    "topic": topic,
                    "partition": 0,
                    "committed": committed,
                    "newLogStart": 200,
                    "recordsAtMost": 200 - committed,
                    "wasBelow": False,
                }
                for topic, committed in (("clicks", 0), ("orders", 150))
            ],
        }
    ]
    assert [(topic["topic"], topic["recordsAtMost"], topic["hoursLost"]) for topic in about["topics"]] == [
        ("clicks", 200, 10.0),
        ("orders", 200, 10.0),
    ]
    (device,) = about["devices"]
    assert (device["outcome"], device["usedPercent"], device["usedPercentAfter"]) == ("enough-taken", 84.0, 80.0)
    assert [span["hours"] for span in device["ageHours"]] == [50, 45, 40, 35]
    assert sum(each["segments"] for each in device["segments"]) == 14
    assert about["unknownGroups"][0]["kind"] == "not-authorized"


def test_csv_has_a_row_per_trim() -> None:
    out = io.StringIO()

    write_reclaim_csv(shown(), out)

    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [(row["topic"], row["target"], row["records_at_most"], row["groups"]) for row in rows] == [
        ("orders", "200", "200", "1"),
        ("clicks", "200", "200", "1"),
    ]
    assert rows[0]["oldest"] == "2026-01-29T10:00:00.000Z"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(devices=("9:9",)), "no log dir of this broker is on 9:9; its devices are: 8:1"),
        (Wanted(log_dirs=("/data/z",)), "/data/z is not a log dir of this broker; its log dirs are: /data/a"),
    ],
)
def test_a_volume_that_is_not_there_is_refused(wanted: Wanted, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        shown(wanted=wanted)


@pytest.mark.parametrize("wanted", [Wanted(devices=("8:1",)), Wanted(log_dirs=("/data/../data/a/",))])
def test_a_volume_can_be_chosen(wanted: Wanted) -> None:
    assert [device.device for device in shown(wanted=wanted).devices] == ["8:1"]


COLUMNS = (
    Column("Topic", ["a-topic-with-quite-a-long-name", "b"], is_name=True),
    Column("Partitions", ["12", "1"], is_spare=True),
    Column("Size", ["1,234,567 bytes", "0 bytes"]),
    Column("Topics", ["some, others, and more of them than fit", "x"], is_name=True, is_spare=True),
)


@pytest.mark.parametrize(("room", "left_out"), [(200, None), (60, None), (50, "Topics"), (34, "Partitions and Topics")])
def test_columns_fit_and_cut_no_number(room: int, left_out: str | None) -> None:
    lines = [line.plain for line in column_lines(COLUMNS, ASCII, room)]

    assert max(len(line) for line in lines[:4]) <= room
    assert "1,234,567 bytes" in lines[2]
    assert lines[4:] == ([f"  {left_out} would need a wider terminal"] if left_out else [])


def test_columns_without_rows_are_titles() -> None:
    assert [line.plain for line in column_lines([Column("Empty", [])], UNICODE, 60)] == ["  Empty", "  ─────"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "is_yes"), [("yes\n", True), ("YES\n", True), ("y\n", False), ("\n", False), ("", False)]
)
def test_only_yes_is_a_yes(answer: str, is_yes: bool) -> None:  # noqa: FBT001 (a parameter)
    questions = io.StringIO()

    assert consent(shown(), Terminal(answer), questions) is is_yes

    assert questions.getvalue() == (
        "3.81 MiB in 4 segments of 2 partitions, at most 400 records, will be deleted on every replica. This cannot "
        "be undone.\n"
        "1 consumer group would lose records.\n"
        "Delete? Type yes to continue: "
    )


def test_progress_says_what_is_waited_for() -> None:
    sending = CycleProgress(trims=3, sent=1, ended=0, planned_bytes=Bytes(3 << 20), freed_bytes=Bytes(0))
    waiting = replace(sending, sent=3, ended=1, freed_bytes=Bytes(1 << 20))

    assert progress_text(sending, is_waiting=True) == "trimming: 1 of 3 partitions requested"
    assert progress_text(waiting, is_waiting=False) == "trimming: all 3 partitions requested"
    assert progress_text(waiting, is_waiting=True) == (
        "waiting for the broker to remove the files: 1.00 MiB of 3.00 MiB freed, 1 of 3 partitions"
    )


def test_without_a_terminal_there_is_no_progress() -> None:
    out = io.StringIO()

    with status_on(out) as say:
        say("looking")

    assert out.getvalue() == ""


# The command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def properties(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs=/data/a\nlisteners=PLAINTEXT://127.0.0.1:9\nbrimline.state.dir={tmp_path}/state\n"
    )
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pause", "--apply"], "remove --apply"),
        (["resume", "--log-dir", "/data/a"], "remove --log-dir"),
        (["--reason", "x"], "--reason is for pause and resume"),
        (["--plan", "p", "--log-dir", "/data/a"], "the plan names its volumes"),
        (["--yes"], "--yes needs --apply"),
        (["--no-wait"], "--no-wait needs --apply"),
        (["--ceiling", "100"], "'100' is not a percentage from 0 to 99"),
        (["--ceiling", "-1"], "is not a percentage"),
        (["halt"], "invalid choice"),
    ],
)
def test_contradictions_are_refused(
    properties: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["reclaim", "--config", properties, *arguments]) == 1

    assert said in capsys.readouterr().err


def test_without_a_terminal_and_a_yes_nothing_is_deleted(
    properties: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))

    assert main(["reclaim", "--config", properties, "--apply"]) == 1

    assert "nothing was deleted: no terminal to ask on" in capsys.readouterr().err


@pytest.mark.parametrize(("used", "code"), [(79, 0), (99, 3)])
def test_a_disk_that_stays_above_its_ceiling_is_no_success(
    properties: str, monkeypatch: pytest.MonkeyPatch, used: int, code: int
) -> None:
    """Nothing may go there: whoever runs it from a script must learn that."""
    stuck = shown(ADisk(logs=[PRICES], used=used))
    monkeypatch.setattr("brimline.cli.reclaim.command._looked", lambda _config, _wanted: stuck)

    assert stuck.trims == ()
    assert main(["reclaim", "--config", properties, "--apply", "--yes"]) == code


def test_a_file_that_is_no_plan_is_refused(properties: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text("{}")

    assert main(["reclaim", "--config", properties, "--plan", str(plan), "--apply", "--yes"]) == 1

    assert capsys.readouterr().err == (
        f"brimline: {plan}: format is missing; allowed: 'brimline.reclaim-plan': not a reclaim plan\n"
    )


@pytest.fixture
def plan_by_hand(tmp_path: Path) -> Path:
    """For 82 %, where the properties have 100, and with a brake that they have not."""
    policy = replace(DISK.policy, max_bytes_per_cycle=5_000_000)
    path = tmp_path / "plan.json"
    with path.open("w") as file:
        write_reclaim_json(shown(replace(DISK, policy=policy), Wanted(ceiling=82)), file)
    return path


def test_a_plans_own_ceiling_must_be_repeated(
    properties: str, plan_by_hand: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that says 0 % would else delete what no ceiling of this broker ever would."""
    apply = ["reclaim", "--config", properties, "--plan", str(plan_by_hand), "--apply", "--yes"]

    assert main(apply) == 1
    assert capsys.readouterr().err == (
        "brimline: the plan has a ceiling of its own, 82 %, where the properties have 100 %: nothing was deleted; look "
        "at it without --apply, then repeat it: --apply --plan FILE --ceiling 82\n"
    )
    assert main([*apply, "--ceiling", "0"]) == 1
    assert (
        "the plan is for its own ceiling, which was 82 % when it was made, and not for 0 %" in capsys.readouterr().err
    )


@pytest.mark.parametrize("output", ["table", "json"])
def test_where_plan_and_properties_differ_is_said_before_anything_is_deleted(
    properties: str,
    plan_by_hand: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    output: str,
) -> None:
    """The disk has been emptied since, so nothing is left to do."""
    monkeypatch.setattr(
        "brimline.cli.reclaim.command._looked",
        lambda _config, wanted: shown(replace(DISK, policy=ReclaimPolicy(), used=50), wanted),
    )
    arguments = ["--plan", str(plan_by_hand), "--apply", "--yes", "--ceiling", "82", "--output", output]

    assert main(["reclaim", "--config", properties, *arguments]) == 3

    said = capsys.readouterr()
    if output == "json":
        assert said.err.splitlines() == [
            "brimline: log.retention.disk.usage.percent is 82 in the plan and 100 in the properties; the plan counts",
            "brimline: brimline.reclaim.max.bytes.per.cycle is 5000000 in the plan and -1 in the properties; the "
            "properties count",
        ]
    else:
        lines = said.out.splitlines()
        begin = lines.index("Where plan and properties differ")
        assert lines[begin + 1 : begin + 5] == [
            "  Key                                      Plan  Properties  Counts",
            "  ─────────────────────────────────────────────────────────────────────",
            "  log.retention.disk.usage.percent           82         100  plan",
            "  brimline.reclaim.max.bytes.per.cycle  5000000          -1  properties",
        ]


def test_a_look_at_a_plan_names_the_whole_next_command(plan_by_hand: Path) -> None:
    looked_at = shown(replace(DISK, policy=ReclaimPolicy()), Wanted(plan=load_plan(plan_by_hand)))

    assert table(looked_at)[-1] == (
        "Nothing was changed. --apply --ceiling 82 deletes this after asking; --output json keeps it as a plan."
    )
    about = about_document(looked_at)
    assert about["differs"] == [
        {"key": "log.retention.disk.usage.percent", "plan": "82", "properties": "100", "counts": "plan"},
        {
            "key": "brimline.reclaim.max.bytes.per.cycle",
            "plan": "5000000",
            "properties": "-1",
            "counts": "properties",
        },
    ]


def test_a_plan_for_the_properties_ceiling_takes_it_from_there(properties: str, tmp_path: Path) -> None:
    plan, policy = shown().filed, replace(DISK.policy, ceiling_percent=82)

    refuse_unsaid_ceiling(plan, None, policy, is_applied=True)
    with pytest.raises(BadInput, match="for the ceiling of the properties, which was 80 % when it was made"):
        refuse_unsaid_ceiling(plan, 80, policy, is_applied=True)

    (difference,) = shown(replace(DISK, policy=policy), Wanted(plan=plan)).differs
    assert (difference.in_plan, difference.in_file, difference.counts) == ("80", "82", "properties")


def test_a_damaged_plan_is_refused_before_anything_is_looked_at(
    properties: str, plan_by_hand: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target with another digit is a plan, too, and deletes other records."""
    content = plan_by_hand.read_text()
    assert content.count('"target": 100,') == 2
    plan_by_hand.write_text(content.replace('"target": 100,', '"target": 101,', 1))

    assert main(["reclaim", "--config", properties, "--plan", str(plan_by_hand), "--apply", "--yes"]) == 1

    said = capsys.readouterr().err
    assert said.startswith(f"brimline: {plan_by_hand}: damaged or edited: its sha256 does not match")
    assert said.count("\n") == 1


def test_pause_and_resume_are_on_record(properties: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def told(*arguments: str) -> str:
        assert main(["reclaim", *arguments, "--config", properties]) == 0
        return capsys.readouterr().out

    assert told("resume") == "reclaim is not paused\n"
    assert "reclaim paused by" in (first := told("pause", "--reason", "CHG-1"))
    assert ": CHG-1\nceilings are not held until it is resumed:\n" in first
    assert f"  brimline reclaim resume --config {properties}\n" in first
    assert "is already paused by" in told("pause", "--reason", "CHG-2")
    pause = read_ledger(tmp_path).state.pause
    assert pause is not None
    assert pause.reason == "CHG-1"
    assert told("resume").startswith("reclaim resumed; it was paused by")
    assert read_ledger(tmp_path).pause is None


def test_a_pause_says_that_it_is_unknown_where_else_it_counts(
    properties: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nobody answers here. It stands all the same."""
    assert main(["reclaim", "pause", "--config", properties]) == 0

    assert capsys.readouterr().out.splitlines()[-1].startswith("on which brokers it does not count is unknown")
    assert read_ledger(tmp_path).pause is not None


def test_only_a_pause_asks_other_guards(properties: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "resume", "--config", properties, "--guard", "http://two:9827"]) == 1

    assert "--guard is for pause" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["flipped", "removed", "unusable"])
def test_a_pause_outlives_the_ledger(
    properties: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, damage: str
) -> None:
    """One bit of its line is enough to lose it there."""
    current = LedgerFiles(tmp_path / "state", 1).current
    if damage == "unusable":
        current.mkdir(parents=True)
    assert main(["reclaim", "pause", "--config", properties, "--reason", "CHG-1"]) == 0
    assert ("not in the ledger" in capsys.readouterr().out) is (damage == "unusable")
    if damage == "flipped":
        content = bytearray(current.read_bytes())
        content[20] ^= 1
        current.write_bytes(content)
    elif damage == "removed":
        current.unlink()
    else:
        current.rmdir()

    assert main(["reclaim", "--config", properties, "--apply", "--yes"]) == 1

    assert "reclaim is paused by" in capsys.readouterr().err


def test_while_paused_nothing_is_even_looked_at(
    properties: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No broker is there: a look would fail with other words."""
    ledger = read_ledger(tmp_path)
    ledger.append(Paused(by="anna", reason="replay"))
    ledger.close()

    assert main(["reclaim", "--config", properties, "--apply", "--yes"]) == 1

    said = capsys.readouterr().err
    assert said.startswith("brimline: reclaim is paused by anna since ")
    assert said.endswith(f"(replay): nothing was deleted; brimline reclaim resume --config {properties}\n")


def test_a_reason_is_one_line(properties: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "pause", "--config", properties, "--reason", "a\nb"]) == 1

    assert "--reason: write one line of plain text" in capsys.readouterr().err


def read_ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "state", 1, SystemClock().now)
    ledger.refresh()
    ledger.close()
    return ledger

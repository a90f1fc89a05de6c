"""The reclaim of a device as the guard tells it: metrics, ``/v1/state``, ``status``; and its keys."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.act.ledger.state import Pause
from brimline.cli.shared.glyphs import ASCII
from brimline.cli.status.table_parts import reclaim_lines
from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.codec import from_json, to_json
from brimline.documents.guard_state import ReclaimDocument
from brimline.guard.reclaim.published import reclaim_ages, reclaim_document, reclaim_families
from brimline.guard.reclaim.report import TROUBLES, Doing, ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.words import ceiling_sentence, does
from brimline.metrics.catalogue import CATALOGUE
from brimline.metrics.metric import MetricFamily
from brimline.model import Bytes
from brimline.model.reclaim_plan import DeviceOutcome
from brimline.settings import keys
from brimline.settings.gateway import protected_patterns
from tests.guard.files import FIRST_LINE, config, problems
from tests.guard.reclaim.brokers import Guarded, SmallBroker, SmallLock
from tests.service.ticking import TickingClock

PAUSE = Pause(by="root", reason="an audit", since=datetime(2026, 1, 1, tzinfo=UTC), sequence=1)
GIB = 1 << 30


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    clock = TickingClock()
    broker = SmallBroker(tmp_path, clock, bills=8, orders=8)
    broker.fill_to(60)
    return Guarded(broker, tmp_path / "state", clock)


@pytest.fixture
def report(guarded: Guarded) -> ReclaimReport:
    """Everything is sent, nothing has come back yet."""
    found = guarded.run(10)
    guarded.kill()
    SmallLock.holder = None
    return found


def of(families: list[MetricFamily], metric: str) -> dict[tuple[str, ...], float]:
    (family,) = [family for family in families if family.name == metric]
    return {labels[2:]: value for labels, value in zip(family.label_values, family.values, strict=True)}


def status_text(report: ReclaimReport, settings: ReclaimSettings) -> str:
    document = json.loads(json.dumps(to_json(reclaim_document([report], settings, 2000.0))))
    shown = from_json(ReclaimDocument, document)
    assert shown is not None
    return "\n".join(str(line) for line in reclaim_lines(shown, ASCII))


def test_a_device_has_one_row_in_every_metric(report: ReclaimReport) -> None:
    families = reclaim_families([report])

    assert of(families, "reclaim_state")[("waiting-for-space",)] == 1
    assert sum(of(families, "reclaim_state").values()) == 1
    assert of(families, "reclaim_outcome")[("enough-taken",)] == 1
    assert of(families, "reclaim_open_trims") == {("unsent",): 0, ("waiting",): 2}
    assert of(families, "reclaim_taken_segments") == {(): 5}
    assert of(families, "reclaim_cycles") == {(): 1}
    assert of(families, "reclaim_freed_bytes") == {(): 0}
    assert of(families, "reclaim_paused") == {(): 0}
    assert of([reclaim_ages([report], 5000.0)], "reclaim_age_seconds")[()] > 3900


def test_every_family_is_in_the_catalogue_with_its_labels(report: ReclaimReport) -> None:
    labels = {metric.name: len(metric.labels) for metric in CATALOGUE}
    for family in [*reclaim_families([report]), reclaim_ages([report], 5000.0)]:
        assert {len(row) for row in family.label_values} <= {labels[family.name]}


def test_what_is_not_known_has_no_metric(report: ReclaimReport) -> None:
    families = reclaim_families([replace(report, plan=None, floor=None, surveyed=None)])

    assert of(families, "reclaim_excess_bytes") == of(families, "reclaim_floor_bytes") == {}
    assert of([reclaim_ages([replace(report, surveyed=None)], 5000.0)], "reclaim_age_seconds") == {}


def test_the_document_tells_plan_floor_and_cycles(report: ReclaimReport, guarded: Guarded) -> None:
    document = json.loads(json.dumps(to_json(reclaim_document([report], guarded.settings, report.surveyed or 0.0))))

    (device,) = document["devices"]
    assert (document["ceilingPercent"], document["mode"], document["paused"]) == (50, "apply", None)
    assert (device["state"], device["troubled"], device["ageSeconds"]) == ("waiting-for-space", False, 0.0)
    assert device["plan"]["takenBytes"] >= device["plan"]["excessBytes"] > 0
    assert device["cycles"][0]["trims"] == {"unsent": 0, "waiting": 2, "done": 0, "abandoned": 0, "withdrawn": 0}
    assert device["floor"]["impossible"] is False
    assert device["floor"]["bytes"] == sum(part["bytes"] for part in device["floor"]["parts"])


def test_without_a_ceiling_there_is_no_such_part(report: ReclaimReport, guarded: Guarded) -> None:
    off = replace(guarded.settings, policy=replace(guarded.settings.policy, ceiling_percent=100))

    assert reclaim_document([replace(report, under_way=())], off, 0.0) is None
    assert reclaim_document([report], off, 0.0) is not None, "what was sent is still watched"


def test_status_says_what_is_done(report: ReclaimReport, guarded: Guarded) -> None:
    text = status_text(report, guarded.settings)

    assert "Reclaim  ceiling 50 %" in text
    assert "waiting for space" in text
    assert "deletions in progress cover it (2 deletions in progress)" in text


def test_status_does_not_say_that_deletions_cover_what_they_do_not(report: ReclaimReport, guarded: Guarded) -> None:
    assert report.plan is not None
    assert report.plan.excess_bytes is not None
    short = replace(report.plan, outcome=DeviceOutcome.CYCLE_LIMIT, taken_bytes=Bytes(report.plan.excess_bytes - 1))

    text = status_text(replace(report, plan=short), guarded.settings)

    assert "1 B short after the last cycle (2 deletions in progress)" in text
    assert "cover it" not in text


def test_status_shouts_where_nothing_can_be_done(report: ReclaimReport, guarded: Guarded) -> None:
    troubled = replace(report, doing=Doing.NOT_RECORDED, problem="the disk of the ledger is full")
    shown = reclaim_document([troubled], guarded.settings, 0.0)

    assert "the ledger cannot be written" in status_text(troubled, guarded.settings)
    assert shown is not None
    assert shown.devices[0].troubled


def test_a_pause_is_no_healthy_state(report: ReclaimReport, guarded: Guarded) -> None:
    paused = replace(report, doing=Doing.PAUSED, pause=PAUSE)
    shown = reclaim_document([paused], guarded.settings, 0.0)

    assert shown is not None
    assert shown.paused is not None
    assert "PAUSED" in status_text(paused, guarded.settings)
    assert "paused by root: an audit" in status_text(paused, guarded.settings)


@pytest.mark.parametrize("doing", Doing)
def test_there_are_words_for_everything(report: ReclaimReport, doing: Doing) -> None:
    told = replace(report, doing=doing, problem="why" if doing in TROUBLES else None, pause=PAUSE)

    assert does(told)
    assert "None" not in does(replace(told, problem="why"))


def test_the_start_says_what_the_ceiling_means(guarded: Guarded) -> None:
    settings = guarded.settings

    assert "deletes the oldest segments above it" in ceiling_sentence(settings)
    assert "plans only" in ceiling_sentence(replace(settings, is_applied=False))


# The keys ------------------------------------------------------------------------------------------------------------


def test_the_policy_is_what_the_file_says() -> None:
    found = config(
        "log.retention.disk.usage.percent=80\nbrimline.reclaim.min.retention.ms=5\n"
        "brimline.reclaim.min.retention.bytes=6\nbrimline.reclaim.max.bytes.per.cycle=7\n"
        "brimline.reclaim.protected.topics=pay.*, audit-[a-z]{2,3}\nbrimline.reclaim.mode=plan\n"
        "brimline.reclaim.interval.ms=2000\nlog.segment.delete.delay.ms=3000\n"
    )
    settings = ReclaimSettings.of(found)

    policy = settings.policy
    assert (policy.ceiling_percent, policy.min_retention_ms, policy.min_retention_bytes) == (80, 5, 6)
    assert (policy.max_bytes_per_cycle, policy.protected_topics) == (7, ("pay.*", "audit-[a-z]{2,3}"))
    assert (settings.is_applied, settings.interval, settings.delete_delay) == (False, 2.0, 3.0)
    assert found.has_ceiling


def test_by_default_there_is_no_ceiling_and_no_brake() -> None:
    settings = ReclaimSettings.of(config())

    assert (settings.is_off, settings.is_applied) == (True, True)
    assert (settings.policy.max_bytes_per_cycle, settings.policy.protected_topics) == (None, ())


def test_a_pattern_that_is_none_is_refused_with_its_place() -> None:
    (problem,) = problems("brimline.reclaim.protected.topics=orders, pay[\n")

    assert problem.startswith(f"server.properties line {FIRST_LINE}: {keys.RECLAIM_PROTECTED.name}=orders, pay[: pay[")
    assert "is not a regular expression" in problem


def test_a_pattern_that_loses_its_backslash_is_refused() -> None:
    r"""To Java's properties \d is a d: the pattern would be another one, and protect nothing."""
    (problem,) = problems("brimline.reclaim.protected.topics=audit-\\d+\n")
    found = config("brimline.reclaim.protected.topics=audit-\\\\d+\n")

    assert problem.endswith("a properties file drops the backslash before d: write two, as in \\\\d")
    assert ReclaimSettings.of(found).policy.protected_topics == (r"audit-\d+",)


@pytest.mark.parametrize(
    ("text", "patterns"), [("", ()), (" , ", ()), ("a,b", ("a", "b")), ("a{1,2},b", ("a{1,2}", "b"))]
)
def test_a_comma_in_braces_is_no_separator(text: str, patterns: tuple[str, ...]) -> None:
    assert protected_patterns(text) == patterns


@pytest.mark.parametrize("text", ["a{1,", "a(", "a,b)", "[", "a{1,2},b{"])
def test_half_a_pattern_protects_nobody_and_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"brace|not a regular expression"):
        protected_patterns(text)


def test_batches_are_small_on_small_volumes_and_slow_on_large_brokers() -> None:
    settings = ReclaimSettings.of(config())

    assert settings.pace(Bytes(GIB)).bytes_per_batch == GIB // 25
    assert settings.pace(Bytes(10_000 * GIB)).bytes_per_batch == GIB // 4
    assert settings.pace(Bytes(GIB), look_took=2.0).between_batches == 4.0


def test_status_says_what_others_have_to_do_with_the_brakes(guarded: Guarded, report: ReclaimReport) -> None:
    told = status_text(
        replace(report, doing=Doing.PAUSED, pause=PAUSE, brakes=("others were stricter",)), guarded.settings
    )

    assert "PAUSED" in told
    assert "paused by root: an audit (resume: brimline reclaim resume)" in told
    assert "others were stricter" in told


def test_what_is_kept_here_is_told_to_whoever_compares(guarded: Guarded, report: ReclaimReport) -> None:
    document = reclaim_document([report], guarded.settings, 0.0)

    assert document is not None
    assert document.keeps == Brakes.of(guarded.settings.policy)

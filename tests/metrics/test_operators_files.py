"""Dashboard and alerts speak of metrics that exist, and Prometheus' own tool takes every expression."""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.metrics.catalogue import CATALOGUE
from brimline.metrics.metric import BUCKET, COUNT, SUM, MetricKind

DASHBOARD = Path("deploy/grafana/brimline.json")
ALERTS = Path("deploy/prometheus/brimline-alerts.yml")
ALERT_TESTS = Path("deploy/prometheus/brimline-alerts.test.yml")
EXPORTER_RULES = Path("deploy/jmx_exporter/brimline-rules.yml")
NAMES = {
    metric.prometheus + suffix
    for metric in CATALOGUE
    for suffix in ((BUCKET, SUM, COUNT) if metric.kind is MetricKind.HISTOGRAM else ("",))
}
PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: package prometheus)")


def names_in(text: str) -> set[str]:
    """``(local)?`` in an alert's pattern of names is read both ways."""
    both = text.replace("(local)?", "") + text.replace("(local)?", "local")
    return set(re.findall(r"\b(?:kafka_log|brimline)_[a-z_]+\b", both))


def expressions() -> Iterator[str]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    for panel in panels:
        for target in panel.get("targets", []):
            yield target["expr"]


@pytest.mark.parametrize("path", [DASHBOARD, ALERTS, ALERT_TESTS], ids=lambda path: path.name)
def test_every_metric_that_is_asked_for_exists(path: Path) -> None:
    asked = names_in(path.read_text())

    assert asked
    assert asked - NAMES == set()


def test_the_dashboards_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}

        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_dashboard_shows_no_0_for_what_nobody_tells() -> None:
    """``or vector(0)`` is 0 without any guard; ``or 0 * count(…)`` of what is told is 0 only where something is."""
    assert [expression for expression in expressions() if "vector(" in expression] == []


def test_the_dashboard_belongs_to_no_data_source_of_ours() -> None:
    sources = set(re.findall(r'"uid": "([^"]*)"', DASHBOARD.read_text()))

    assert sources == {"${datasource}", "brimline"}


def test_every_alert_says_what_and_how_bad() -> None:
    alerts = re.split(r"\n +- alert: ", ALERTS.read_text())[1:]

    assert len(alerts) >= 10
    for alert in alerts:
        assert re.search(r"severity: (critical|warning|info)", alert), alert
        assert "summary:" in alert
        assert "description:" in alert


def test_every_alert_has_a_test() -> None:
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text())

    assert set(re.findall(r"alertname: (\w+)", ALERT_TESTS.read_text())) == set(alerts)


def test_every_alert_has_a_page_that_says_what_it_means_and_what_to_do() -> None:
    alerts = re.split(r"\n +- alert: ", ALERTS.read_text())[1:]

    pages = {re.findall(r"runbook_url: (\S+)", alert)[0]: alert.split()[0] for alert in alerts}
    assert set(pages) == {str(page) for page in Path("docs/alerts").glob("*.md")}
    for page, name in pages.items():
        text = Path(page).read_text()
        assert text.startswith(f"# {name}\n")
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["What it means", "What to look at", "What to do"]


def test_no_sentence_stands_on_the_pages_of_two_alerts() -> None:
    """One page has it, the others refer to it."""
    pages = [
        {" ".join(each.split()) for each in re.split(r"(?<=[.;])\s|\n- |\n\n", page.read_text())}
        for page in Path("docs/alerts").glob("*.md")
    ]
    counted = Counter(sentence for page in pages for sentence in page if len(sentence) > 60 and "](" not in sentence)

    assert [sentence for sentence, count in counted.items() if count > 1] == []


def test_every_panel_stands_in_a_row_and_is_of_the_chosen_cluster() -> None:
    first, *_ = json.loads(DASHBOARD.read_text())["panels"]

    assert first["type"] == "row"
    assert [each for each in expressions() if each.count("$instance") != each.count("$cluster")] == []


@needs_promtool
@pytest.mark.parametrize("arguments", [("check", "rules", ALERTS.name), ("test", "rules", ALERT_TESTS.name)])
def test_promtool_takes_the_alerts_and_they_fire_as_told(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([str(PROMTOOL), *arguments], cwd=ALERTS.parent, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_takes_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        f"  - record: panel:{number}\n    expr: {json.dumps(re.sub(r'[$][a-z]+', '.*', expression))}\n"
        for number, expression in enumerate(expressions())
    ]
    (tmp_path / "panels.yml").write_text("groups:\n- name: panels\n  rules:\n" + "".join(rules))

    done = subprocess.run(
        [str(PROMTOOL), "check", "rules", str(tmp_path / "panels.yml")], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr

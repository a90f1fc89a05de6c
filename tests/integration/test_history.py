"""What happened on a real broker is told afterwards: by the command, by the guard's page, and while nothing runs.

And the guard's pages in a real browser.
"""

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from brimline.guard.history import read_whole_history
from brimline.guard.http import HttpRequest
from brimline.sandbox import Sandbox
from brimline.web.access import Access
from brimline.web.pages import WebPages
from tests.integration.full_disks import (
    BY_PERCENT,
    FIRST,
    KAFKA_STORAGE_ERROR,
    MIB,
    create_topic_in,
    fill_beyond_limit,
    two_disks,
    write_ballast,
)
from tests.integration.gatewayed import gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.kafka_clients import kafka_producer, meanwhile
from tests.integration.raw_produce import raw_producer
from tests.integration.shared import shared
from tests.integration.test_reclaim_guard import commit
from tests.pages.test_html import Parsed
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.web.browser import Visit, browsing, needs_browser

pytestmark = pytest.mark.integration

HOSTILE_GROUP = '"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with shared(two_disks("4.3.1")) as running:
        yield running


def words(guarding: RunningGuard) -> list[str]:
    return [event["word"] for event in json.loads(guarding.get("/v1/history"))["events"]]


def since_full(told: list[str]) -> list[str]:
    return told[told.index("FULL") :]


def test_a_disk_fills_up_is_fenced_refuses_a_client_and_is_released(sandbox: Sandbox, tmp_path: Path) -> None:
    full, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "told", full)
    write_ballast(sandbox, "told", 1)
    settings = {**BY_PERCENT, "brimline.enforcement": "gateway", "brimline.state.dir": str(state_dir(sandbox))}
    with (
        gateway(sandbox, tmp_path / "gateway", BY_PERCENT) as running,
        guard(sandbox, tmp_path / "guard", settings) as guarding,
        raw_producer(sandbox.bootstrap_servers) as raw,
    ):
        filler = fill_beyond_limit(sandbox, full)
        eventually(lambda: running.fenced() == {FIRST})
        eventually(lambda: raw.produce([("told", 0)])["told", 0].code == KAFKA_STORAGE_ERROR)
        # The guard tells its gateway which topics there are as soon as the broker has told it
        eventually(lambda: "largest topics told " in str(raw.produce([("told", 0)])["told", 0].text))
        eventually(lambda: {"FULL", "FENCED", "REFUSED"} <= set(words(guarding)))
        url = f"http://127.0.0.1:{guarding.port}"
        with urllib.request.urlopen(f"{url}/", timeout=PATIENCE_SECONDS) as answer:
            headers, page = answer.headers, answer.read().decode()
        sandbox.outside(filler).unlink()
        # It had room at the start, too
        eventually(lambda: {"RELEASED", "ROOM"} <= set(since_full(words(guarding))))
        pages = WebPages(access=Access(None), guards=[url, "http://127.0.0.1:1"])
        cluster = pages.respond(HttpRequest(method="GET", path="/", headers={"host": "localhost"})).body.decode()

    shown = Parsed(page).text
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert f"FULL {full}" in shown
    assert "for topic told" in shown
    assert str(full) in Parsed(cluster).text
    assert "no guard answers at http://127.0.0.1:1" in Parsed(cluster).text

    after = read_whole_history(sandbox.outside(state_dir(sandbox)), 1)
    told = [(event.word, event.by) for event in after.events]
    expected = [
        ("FULL", "guard"),
        ("FENCED", "gateway"),
        ("REFUSED", "gateway"),
        ("RELEASED", "gateway"),
        ("ROOM", "guard"),
    ]
    assert set(expected) <= set(told)
    assert told.index(("FENCED", "gateway")) < told.index(("REFUSED", "gateway")) < told.index(("RELEASED", "gateway"))
    assert "ROOM" in since_full([word for word, _ in told])
    assert {("STOPPED", "guard"), ("STOPPED", "gateway")} <= set(told)
    assert after.incomplete == ()


@pytest.mark.long
@needs_browser()
def test_the_guards_pages_are_clicked_through_under_load(sandbox: Sandbox, tmp_path: Path) -> None:
    """From a disk to its topics, its slider and its history; a hostile group is text, and nothing is deleted."""
    _, disk = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "clicks", disk, config={"segment.bytes": str(MIB), "retention.bytes": str(80 * MIB)})
    write_ballast(sandbox, "clicks", 12)
    commit(sandbox, HOSTILE_GROUP, "clicks", 0)
    settings = {**BY_PERCENT, "brimline.enforcement": "gateway", "brimline.state.dir": str(state_dir(sandbox))}
    with (
        gateway(sandbox, tmp_path / "gateway", BY_PERCENT),
        guard(sandbox, tmp_path / "guard", {**settings, "brimline.reclaim.policy": "kip-61"}) as guarding,
        meanwhile(lambda stop: write_until(stop, sandbox, "clicks")) as load,
        browsing() as browser,
    ):
        visit = Visit(browser, f"http://127.0.0.1:{guarding.port}")
        page = visit.page
        visit.go("/")
        violations = {"/": visit.violations()}
        page.get_by_role("link", name=str(disk)).click()
        expect(page.locator("table").first).to_contain_text("clicks")
        page.get_by_label("Move the ceiling").focus()
        page.keyboard.press("Home")
        expect(page.locator("#plan")).to_contain_text("Ceiling 1 %")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        expect(page.locator("#plan")).to_contain_text("Ceiling 5 %")
        expect(page.locator("#plan")).to_contain_text("Who would lose records: 1 group")
        expect(page.locator("#plan")).to_contain_text(HOSTILE_GROUP)
        expect(page.locator("#command")).to_contain_text("--ceiling 5 --device")
        expect(page.get_by_role("heading", name="What happened")).to_be_visible()
        violations["/disk"] = visit.violations()
        reached = visit.reached_by_tab()
        assert load.is_alive()

    assert {path: found for path, found in violations.items() if found} == {}
    assert {"a:All disks", "input:range", "input:ceiling", "button:Copy"} <= set(reached)
    assert visit.complaints == []
    assert visit.strangers == []
    assert sandbox.outside(disk / "clicks-0" / f"{0:020}.log").is_file()


def write_until(stop: threading.Event, sandbox: Sandbox, topic: str) -> None:
    with kafka_producer(sandbox.bootstrap_servers) as producer:
        while not stop.wait(0.05):
            producer.send(topic, b"x" * 10_000, partition=0).get(PATIENCE_SECONDS)

"""What happened on a real broker is told afterwards: by the command, by the guard's page, and while nothing runs."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.guard.history import read_whole_history
from brimline.guard.http import HttpRequest
from brimline.sandbox import Sandbox
from brimline.web.access import Access
from brimline.web.pages import WebPages
from tests.integration.full_disks import (
    BY_PERCENT,
    FIRST,
    KAFKA_STORAGE_ERROR,
    create_topic_in,
    fill_beyond_limit,
    two_disks,
    write_ballast,
)
from tests.integration.gatewayed import gateway, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.integration.raw_produce import raw_producer
from tests.pages.test_html import Parsed
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(two_disks("4.3.1")) as running:
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

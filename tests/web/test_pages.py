"""The pages of ``brimline web`` over guards: every volume, to be filtered; a guard that is silent is said to be."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from brimline.documents.guard_state import GuardState
from brimline.documents.history import Happening, Timeline
from brimline.guard.client import read_state
from brimline.guard.http import HttpRequest, HttpResponse
from brimline.pages.volumes_page import ROWS_ON_A_PAGE, ShownVolume, VolumeFilter, VolumesSeen, volumes_page
from brimline.web.access import Access
from brimline.web.guards import GuardAnswer
from brimline.web.pages import WebPages
from tests.pages.test_guard_page import GOLDEN, volume
from tests.pages.test_html import HOSTILE, Parsed

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
URLS = ("http://one:9827", "http://two:9827", "http://three:9827")


def state(broker: int, *log_dirs: str) -> GuardState:
    known = read_state(GOLDEN.read_text(), "http://here")
    volumes = tuple(volume(path, seconds_to_limit=broker * 86_400.0) for path in log_dirs)
    return replace(known, broker=replace(known.broker, id=broker, failure=None), volumes=volumes)


def ask(url: str) -> GuardAnswer:
    if url == URLS[2]:
        return GuardAnswer(url=url, problem="no guard answers at http://three:9827")
    broker = 1 + URLS.index(url)
    event = Happening(at=NOW, what="disk-full", level="warning", by="guard", sentence=f"event of {broker}")
    return GuardAnswer(
        url=url, state=state(broker, f"/data/{broker}"), history=Timeline(broker=broker, events=(event,))
    )


def asked(path: str, query: str = "") -> HttpResponse:
    pages = WebPages(access=Access(None), guards=URLS, cluster="orders", ask=ask)
    return pages.respond(HttpRequest(method="GET", path=path, query=query, headers={"host": "localhost"}))


def test_every_volume_of_every_guard() -> None:
    answer = asked("/")

    text = Parsed(answer.body.decode()).text
    assert answer.status is HTTPStatus.OK
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert text.index("/data/1") < text.index("/data/2")


def test_a_guard_that_does_not_answer_is_no_volume() -> None:
    document = asked("/").body.decode()

    text = Parsed(document).text
    assert "2 volumes of 2 brokers; 1 guard does not answer" in text
    assert "every volume has room" not in text
    assert "NO ANSWER no guard answers at http://three:9827" in text
    assert "2 of 2 volumes" in text
    assert document.partition("<table")[2].count("three:9827") == 0


@pytest.mark.parametrize(
    ("enforcing", "said", "key"),
    [
        ((), "Observe mode, refuses nothing: broker 1, 2.", "full: writes would be refused"),
        ((1,), "Observe mode, refuses nothing: broker 2.", "full: writes are refused, unless in observe mode"),
        ((1, 2), "", "full: writes are refused"),
    ],
)
def test_guards_that_only_observe_are_named(enforcing: tuple[int, ...], said: str, key: str) -> None:
    def told(url: str) -> GuardAnswer:
        known = state(1 + URLS.index(url), "/data")
        mode = "gateway" if known.broker.id in enforcing else "observe"
        return GuardAnswer(url=url, state=replace(known, guard=replace(known.guard, enforcement=mode)))

    pages = WebPages(access=Access(None), guards=URLS[:2], ask=told)
    page = pages.respond(HttpRequest(method="GET", path="/", headers={"host": "localhost"})).body.decode()

    assert said in page
    assert ("Observe mode" in page) is bool(said)
    assert f">{key}<" in page.replace("</svg>", ">")


def test_one_timeline_of_all_brokers() -> None:
    text = Parsed(asked("/").body.decode()).text

    assert "broker 1, guardevent of 1" in text
    assert "broker 2, guardevent of 2" in text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["/data/1", "/data/2"]),
        ("broker=2", ["/data/2"]),
        ("days=1", ["/data/1"]),
        ("cluster=other", []),
        ("days=nonsense", ["/data/1", "/data/2"]),
        ("page=99", ["/data/1", "/data/2"]),
    ],
)
def test_volumes_are_filtered(query: str, shown: list[str]) -> None:
    table = asked("/", query).body.decode().partition("What happened")[0]

    assert re.findall(r">(/data/\d)<", table) == shown


def test_a_page_that_is_not_there() -> None:
    assert asked("/nowhere").status is HTTPStatus.NOT_FOUND


def test_too_many_fields_are_refused() -> None:
    assert asked("/", "&".join(f"a{n}=1" for n in range(100))).status is HTTPStatus.BAD_REQUEST


def test_nobody_is_asked_for_a_stranger() -> None:
    def ask_nobody(url: str) -> GuardAnswer:
        raise AssertionError(url)

    pages = WebPages(access=Access(None), guards=URLS, ask=ask_nobody)

    refused = pages.respond(HttpRequest(method="GET", path="/", headers={"host": "evil.example"}))

    assert refused.status is HTTPStatus.FORBIDDEN


def row(number: int, **others: object) -> ShownVolume:
    known = ShownVolume(cluster="c", broker=number, device="8:1", log_dirs=(f"/data/{number}",), state="ok")
    return replace(known, **others)  # type: ignore[arg-type]


def page_of(rows: list[ShownVolume], **fields: str) -> str:
    return volumes_page(VolumesSeen(title="Fleet", about="", rows=rows), VolumeFilter(**fields)).decode()


def test_a_long_list_has_pages() -> None:
    rows = [row(number, days_to_full=float(number)) for number in range(2 * ROWS_ON_A_PAGE + 1)]

    first, last = page_of(rows, days="9999"), page_of(rows, days="9999", page="3")

    assert first.count("<tr>") == ROWS_ON_A_PAGE + 1
    assert 'href="?days=9999&amp;page=2"' in first
    assert last.count("<tr>") == 2
    assert f"/data/{2 * ROWS_ON_A_PAGE}" in last


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_add_nothing_to_the_page(name: str) -> None:
    def named(name: str) -> list[tuple[str, set[str]]]:
        rows = [row(1, cluster=name, log_dirs=(name,), why=name), row(2, cluster="c")]
        seen = VolumesSeen(title=name, about=name, rows=rows, silent=[name], is_fleet=True)
        document = volumes_page(seen, VolumeFilter(topic=name, broker="")).decode()
        return [(tag, set(given)) for tag, given in Parsed(document).tags]

    assert named(name) == named("name")


def test_every_field_has_a_label() -> None:
    document = page_of([row(1), row(2, cluster="d")])

    assert len(re.findall("<label>[^<]+<(?:select|input)", document)) == 3

"""A guard's page: the worst disk first, every name escaped, and the same facts as ``/v1/state``."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.documents.guard_state import (
    FailureDocument,
    FloorDocument,
    FloorPartDocument,
    GuardState,
    LatelyDocument,
    PercentagesDocument,
    PercentRow,
    RefusedRow,
    TopicShareDocument,
    VolumeDocument,
)
from brimline.documents.history import Timeline
from brimline.documents.notices import Notice, Weight
from brimline.guard.client import read_state
from brimline.pages.guard_page import by_urgency, fence_percent, guard_page
from tests.pages.test_html import HOSTILE, Parsed

GOLDEN = Path(__file__).parent.parent / "golden" / "guard-state.json"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NO_HISTORY = Timeline(broker=1, events=())


@pytest.fixture
def state() -> GuardState:
    return read_state(GOLDEN.read_text(), "http://here")


def volume(name: str, state: str = "ok", **others: object) -> VolumeDocument:
    known = VolumeDocument(
        device="8:1",
        mount_point=None,
        log_dirs=(name,),
        state=state,
        breaches=(),
        total_bytes=1000,
        usable_bytes=250,
        reserved_bytes=0,
        used_percent=75.0,
        bytes_to_limit=None,
        fill_rate_bytes_per_second=None,
        seconds_to_limit=None,
        next_look_seconds=1.0,
        observed_at=NOW,
        failure=None,
        would_do=(),
    )
    return replace(known, **others)  # type: ignore[arg-type]


def shown(state: GuardState) -> str:
    return guard_page(state, NO_HISTORY).decode()


def test_disks_by_urgency() -> None:
    volumes = (
        volume("/calm"),
        volume("/tomorrow", seconds_to_limit=90_000.0, fill_rate_bytes_per_second=1.0),
        volume("/soon", seconds_to_limit=60.0, fill_rate_bytes_per_second=1.0),
        volume("/lost", "unknown", used_percent=None),
        volume("/full", "full", breaches=("disk.max.used.percent",)),
        volume("/dead", "offline"),
    )

    found = [each.log_dirs[0] for each in by_urgency(volumes)]
    assert found == ["/dead", "/full", "/lost", "/soon", "/tomorrow", "/calm"]


def test_the_worst_is_said_first(state: GuardState) -> None:
    filling = volume("/soon", seconds_to_limit=60.0, fill_rate_bytes_per_second=2048.0)
    quiet = replace(state, volumes=(volume("/calm"), filling), broker=replace(state.broker, failure=None))

    found = Parsed(shown(quiet)).text
    assert "FILLING /soon: full in 60 s at 2.00 KiB/s" in found
    assert found.index("FILLING") < found.index("Disks")


def test_a_broker_that_is_down_is_worse_than_any_disk(state: GuardState) -> None:
    dead = replace(state.broker, failure=FailureDocument(kind="unreachable", message="no answer"))

    assert "BROKER DOWN no answer" in Parsed(shown(replace(state, broker=dead))).text


def test_what_is_not_known_is_not_drawn_as_empty(state: GuardState) -> None:
    lost = volume(
        "/lost", "unknown", used_percent=None, failure=FailureDocument(kind="gone", message="/lost is not mounted")
    )

    found = shown(replace(state, volumes=(lost,)))

    assert "UNKNOWN" in found
    assert "/lost is not mounted" in found
    assert "use unknown" in found


def test_full_is_where_the_first_limit_is(state: GuardState) -> None:
    limits = replace(state.limits, max_used_percent=90, min_free_bytes=200)

    assert fence_percent(volume("/a"), replace(state, limits=limits)) == 80.0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_add_nothing_to_the_page(state: GuardState, name: str) -> None:
    def named(name: str) -> GuardState:
        assert state.gateway is not None
        assert state.gateway.state is not None
        row = RefusedRow(topic=name, partition=0, client=name, batches=1, bytes=1)
        answer = replace(state.gateway.state, lately=LatelyDocument(seconds=60.0, batches=1, bytes=1, most=(row,)))
        plain = PercentagesDocument(
            age_seconds=1.0,
            partitions=1,
            over_100=0,
            highest=(PercentRow(topic=name, partition=0, percent=3),),
            unknown={},
        )
        return replace(
            state,
            volumes=(volume(name, would_do=(name,)),),
            gateway=replace(state.gateway, state=answer),
            retention=replace(state.retention, plain=plain),
            guard=replace(state.guard, config=name),
        )

    hostile, tame = Parsed(shown(named(name))), Parsed(shown(named("name")))

    assert [(tag, set(given)) for tag, given in hostile.tags] == [(tag, set(given)) for tag, given in tame.tags]
    assert not any(key.startswith("on") or key == "style" for _, given in hostile.tags for key in given)


def test_a_page_asks_nobody_for_anything(state: GuardState) -> None:
    found = Parsed(shown(state))

    places = [given.get(key) for _, given in found.tags for key in ("src", "href", "action", "srcset") if key in given]
    relative = re.compile(r"[a-z0-9/.]+(\?.*)?|#\w+|data:,")  # a reverse proxy may serve them below a path of its own
    assert all(place and relative.fullmatch(place) for place in places)
    assert [given for tag, given in found.tags if tag == "script"] == [{"src": "brimline.js", "defer": None}]
    assert not {"img", "iframe", "object"} & {tag for tag, _ in found.tags}


def test_a_screen_reader_finds_its_way(state: GuardState) -> None:
    tags = Parsed(shown(state)).tags

    assert [tag for tag, _ in tags if tag in ("header", "main", "footer", "h1")] == ["header", "h1", "main", "footer"]
    assert ("html", {"lang": "en"}) in tags
    assert all(given.get("aria-label") or given.get("aria-hidden") for tag, given in tags if tag == "svg")
    assert all(given.get("scope") == "col" for tag, given in tags if tag == "th")


def test_in_observe_mode_no_write_is_said_to_be_refused(state: GuardState) -> None:
    def key(enforcement: str) -> str:
        return shown(replace(state, guard=replace(state.guard, enforcement=enforcement)))

    assert "full: writes would be refused" in key("observe")
    assert "full: writes are refused" in key("gateway")


def with_every_table(state: GuardState) -> GuardState:
    assert state.gateway is not None
    assert state.gateway.state is not None
    assert state.reclaim is not None
    refused = RefusedRow(topic="orders", partition=0, client="shop", batches=1, bytes=1)
    answer = replace(state.gateway.state, lately=LatelyDocument(seconds=60.0, batches=1, bytes=1, most=(refused,)))
    share = TopicShareDocument(topic="orders", bytes=1)
    part = FloorPartDocument(kind="active segments", bytes=1, percent=1.0, what_helps="", topics=(share,))
    floor = FloorDocument(bytes=1, percent=1.0, impossible=True, sentence="It cannot be held.", parts=(part,))
    row = PercentRow(topic="orders", partition=0, percent=9)
    figures = PercentagesDocument(age_seconds=1.0, partitions=1, over_100=0, highest=(row,), unknown={})
    return replace(
        state,
        gateway=replace(state.gateway, state=answer),
        reclaim=replace(state.reclaim, devices=(replace(state.reclaim.devices[0], floor=floor),)),
        retention=replace(state.retention, plain=figures),
    )


def test_every_table_is_a_list_of_blocks_on_a_telephone(state: GuardState) -> None:
    page = shown(with_every_table(state))

    assert page.count("<table") == page.count('<table class="stack"') == 4


def test_every_notice_is_on_the_page_with_its_cure(state: GuardState) -> None:
    hostile = Notice(
        feature="offline", key="/b", weight=Weight.PROBLEM, word="OFFLINE", text=f"it is {HOSTILE}", cure="restart it"
    )

    found = Parsed(shown(replace(state, notices=(hostile,))))
    assert f"OFFLINE it is {HOSTILE}; restart it" in found.text


def test_a_reserve_moves_the_mark_where_a_disk_is_full(state: GuardState) -> None:
    limits = replace(state.limits, max_used_percent=99, min_free_bytes=50)
    reserved = volume("/a", reserve_bytes=200)

    assert fence_percent(volume("/a"), replace(state, limits=limits)) == 95.0
    assert fence_percent(reserved, replace(state, limits=limits)) == 80.0


def test_a_disk_without_inodes_says_how_many_are_left() -> None:
    full = volume("/a", "full", breaches=("disk.min.free.bytes", "inodes"), usable_files=12)

    assert full.why_full == "over disk.min.free.bytes and inodes (12 left)"

"""What ``brimline status`` leads with: the worst first, and a disk that fills only where nothing holds it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from brimline.documents.guard_state import FailureDocument, GuardState
from brimline.documents.notices import Notice, Weight
from brimline.documents.troubles import troubles
from brimline.guard.client import read_state

GOLDEN = read_state((Path(__file__).parents[1] / "golden" / "guard-state.json").read_text(), "golden")


def calm() -> GuardState:
    """One disk with room, a ceiling that holds, no gateway and no other broker."""
    assert GOLDEN.reclaim is not None
    volume = replace(
        GOLDEN.volumes[0],
        state="ok",
        breaches=(),
        device="8:1",
        log_dirs=("/a",),
        total_bytes=1000,
        usable_bytes=180,
        bytes_to_limit=130,
        seconds_to_limit=None,
        failure=None,
    )
    device = replace(GOLDEN.reclaim.devices[0], device="8:1", log_dirs=("/a",), troubled=False, state="trimming")
    return replace(
        GOLDEN,
        guard=replace(GOLDEN.guard, dead_tasks=()),
        broker=replace(GOLDEN.broker, failure=None),
        volumes=(volume,),
        reclaim=replace(GOLDEN.reclaim, mode="apply", paused=None, ceiling_percent=80, devices=(device,)),
        gateway=None,
        followers=None,
    )


def said(state: GuardState) -> list[str]:
    return [str(each) for each in troubles(state)]


def filling(seconds: float, **reclaim: Any) -> GuardState:
    state = calm()
    assert state.reclaim is not None
    return replace(
        state,
        volumes=(replace(state.volumes[0], seconds_to_limit=seconds),),
        reclaim=replace(state.reclaim, **reclaim),
    )


def test_a_calm_guard_has_none() -> None:
    assert said(calm()) == []


def test_the_broker_comes_first_then_full_disks() -> None:
    state = calm()
    full = replace(state.volumes[0], state="full")
    unknown = replace(state.volumes[0], state="unknown", log_dirs=("/b", "/c"))
    down = replace(state.broker, failure=FailureDocument(kind="unreachable", message="refused"))

    found = said(replace(state, broker=down, volumes=(unknown, full)))

    assert found == ["DOWN", "FULL: /a", "UNKNOWN: /b, /c"]


def test_a_disk_that_fills_within_the_hour_is_named_unless_a_ceiling_holds_it() -> None:
    assert said(filling(600.0)) == []
    assert said(filling(10.0)) == ["FILLING: /a full in 10 s"]
    assert said(filling(600.0, ceiling_percent=60)) == ["FILLING: /a full in 10 min"], "it runs away from its ceiling"
    assert said(filling(600.0, ceiling_percent=96)) == ["FILLING: /a full in 10 min"], "the limit comes first"
    assert said(replace(filling(600.0), reclaim=None)) == ["FILLING: /a full in 10 min"]
    assert said(replace(filling(3601.0), reclaim=None)) == []


def test_a_ceiling_that_cannot_be_held_holds_nothing() -> None:
    state = filling(600.0)
    assert state.reclaim is not None
    troubled = replace(state.reclaim, devices=(replace(state.reclaim.devices[0], troubled=True, state="stuck"),))

    assert said(replace(state, reclaim=troubled)) == ["FILLING: /a full in 10 min", "CEILING NOT HELD: /a"]


def test_a_headline_of_a_notice_comes_before_the_disks() -> None:
    offline = Notice(
        feature="offline", key="/b", weight=Weight.PROBLEM, word="OFFLINE", text="it is", headline="OFFLINE: /b"
    )
    quiet = Notice(feature="reserve", key="pending /a", weight=Weight.WARNING, word="RESERVE", text="it is pending")
    state = calm()
    volumes = (replace(state.volumes[0], state="full"), replace(state.volumes[0], state="offline", log_dirs=("/b",)))

    assert said(replace(state, volumes=volumes, notices=(quiet, offline))) == ["OFFLINE: /b", "FULL: /a"]
    assert said(replace(state, notices=(quiet,))) == []

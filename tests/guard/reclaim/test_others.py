"""The brakes of other guards, compared."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.guard_state import GuardState, PausedReclaim, ReclaimDocument
from brimline.documents.notices import Weight
from brimline.guard.client import read_state
from brimline.guard.reclaim.others import Answer, ask_others, compare
from brimline.model import BrimlineError, BrokerId
from tests.guard.files import config

TWO, THREE = BrokerId(2), BrokerId(3)
OWN = Brakes(min_retention_ms=1000, protected_topics=("a",))
ALIKE = ReclaimDocument(ceiling_percent=80, mode="apply", interval_ms=1, paused=None, keeps=OWN, devices=())
PAUSED = replace(ALIKE, paused=PausedReclaim(by="root", reason="hold", since=datetime(2026, 1, 30, tzinfo=UTC)))
STATE = read_state((Path(__file__).parents[2] / "golden/guard-state.json").read_text(), "golden")


def told(*, is_paused: bool = False, **others: Answer) -> Mapping[str, tuple[Weight, str]]:
    answers = {BrokerId(int(name[1:])): answer for name, answer in others.items()}
    return {each.key: (each.weight, each.text) for each in compare(OWN, is_paused=is_paused, others=answers)}


def test_alike_is_nothing_to_say() -> None:
    assert told(_2=ALIKE, _3=None) == {}
    assert told(is_paused=True, _2=PAUSED) == {}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (PAUSED, "paused by root: hold"),
        (replace(ALIKE, keeps=replace(OWN, protected_topics=("a", "b"))), "keeps by brimline.reclaim.protected.topics"),
        (replace(ALIKE, keeps=Brakes(min_retention_ms=1000)), "deletes what this one keeps by"),
    ],
)
def test_what_is_apart_is_a_warning(other: ReclaimDocument, said: str) -> None:
    weight, text = told(_2=other)["brakes-2"]

    assert weight is Weight.WARNING
    assert said in text


def test_a_pause_here_that_does_not_count_there_is_one_too() -> None:
    assert told(is_paused=True, _2=ALIKE)["brakes-2"][0] is Weight.WARNING


def test_who_does_not_answer_is_named_and_never_taken_for_no_brake() -> None:
    weight, text = told(_2="no guard answers", _3="no guard answers")["brakes-unknown"]

    assert weight is Weight.NOTE
    assert "brokers 2, 3" in text


def test_the_hosts_of_the_brokers_are_asked_unless_guards_are_named() -> None:
    asked = []

    def fetch(url: str, _: float) -> tuple[GuardState, str]:
        asked.append(url)
        if "two" not in url:
            raise BrimlineError(f"no guard answers at {url}")
        return replace(STATE, broker=replace(STATE.broker, id=2), reclaim=ALIKE), ""

    hosts = {TWO: "two", THREE: "::3", BrokerId(4): ""}
    by_hosts = ask_others(config(), hosts, (), fetch)
    by_hand = ask_others(config(), hosts, ["http://two:1"], fetch)
    of_before = ask_others(
        config(),
        {TWO: "two"},
        (),
        lambda url, _: (replace(fetch(url, 0)[0], reclaim=replace(ALIKE, keeps=None)), ""),
    )

    assert asked == ["http://two:9827", "http://[::3]:9827", "http://two:1", "http://two:9827"]
    assert by_hosts[TWO] == by_hand[TWO] == ALIKE
    assert by_hosts[THREE] == "no guard answers at http://[::3]:9827"
    assert all(isinstance(each, str) for each in (by_hosts[BrokerId(4)], by_hand[THREE], of_before[TWO]))

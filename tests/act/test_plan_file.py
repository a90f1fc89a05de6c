"""A plan as a file: what is written is read, and whatever is wrong with it is named and refused."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.act.ledger.entries import PlannedTrim, SegmentRange
from brimline.act.plan_file import (
    BadPlanFile,
    CeilingFrom,
    FiledDevice,
    FiledPlan,
    checksum,
    load_plan,
    plan_document,
    read_plan,
)
from brimline.model import BrokerId, Bytes, Offset, TopicPartition
from brimline.model.reclaim import ReclaimPolicy

LONGEST = 2**63 - 1
LOG_DIRS = ("/data/a", "/data/b ü")

sizes = st.integers(0, LONGEST).map(Bytes)
texts = st.text(max_size=20)
milliseconds = st.integers(-1, LONGEST)
policies = st.builds(
    ReclaimPolicy,
    ceiling_percent=st.integers(0, 100),
    min_retention_ms=sizes,
    min_retention_bytes=sizes,
    max_bytes_per_cycle=st.none() | sizes,
    protected_topics=st.lists(texts, max_size=2).map(tuple),
    future_tolerance_ms=st.just(ReclaimPolicy().future_tolerance_ms),
)


@st.composite
def planned_trims(draw: st.DrawFn, partition: int) -> PlannedTrim:
    first, last, target = sorted(draw(st.sets(st.integers(0, LONGEST), min_size=3, max_size=3)))
    return PlannedTrim(
        partition=TopicPartition(draw(st.sampled_from(["orders", "clicks.v2"])), partition),
        topic_id=draw(st.uuids()),
        log_dir=draw(st.sampled_from(LOG_DIRS)),
        log_start=Offset(draw(st.integers(0, target - 1))),
        target=Offset(target),
        segments=SegmentRange(
            first=Offset(first), last=Offset(last), count=draw(st.integers(1, min(last - first + 1, 2**31 - 1)))
        ),
        allocated_bytes=draw(sizes),
        oldest_ms=draw(milliseconds),
        newest_ms=draw(milliseconds),
        reason=draw(texts),
    )


@st.composite
def filed_plans(draw: st.DrawFn) -> FiledPlan:
    number = draw(st.integers(0, 4))
    device = FiledDevice(
        device="8:1",
        log_dirs=LOG_DIRS,
        total_bytes=draw(sizes),
        used_bytes=draw(sizes),
        going_bytes=draw(sizes),
        excess_bytes=draw(sizes),
        trims=tuple(draw(planned_trims(partition)) for partition in range(number)),
    )
    return FiledPlan(
        made_at=draw(st.datetimes(timezones=st.just(UTC))).replace(microsecond=5000),
        made_by=draw(texts),
        cluster_id=draw(st.text(min_size=1, max_size=22)),
        broker=BrokerId(draw(st.integers(0, 2**31 - 1))),
        policy=draw(policies),
        ceiling_from=draw(st.sampled_from(CeilingFrom)),
        devices=draw(st.sampled_from([(), (device,)])),
    )


@given(filed_plans(), st.none() | st.just({"groups": []}))
def test_what_is_written_is_read(plan: FiledPlan, about: dict[str, object] | None) -> None:
    assert read_plan(json.dumps(plan_document(plan, about)).encode(), "plan.json") == plan


def a_document() -> dict[str, Any]:
    trim = {
        "topic": "orders",
        "partition": 0,
        "topicId": "uwIr5J5VSDqzHg2Ua4g5dg",
        "logDir": "/data/a",
        "logStart": 0,
        "target": 3000,
        "segments": 3,
        "firstBaseOffset": 0,
        "lastBaseOffset": 2000,
        "allocatedBytes": 4096,
        "oldestMs": None,
        "newestMs": 1,
        "reason": "the oldest",
    }
    device = {
        "device": "8:1",
        "logDirs": ["/data/a"],
        "totalBytes": 100,
        "usedBytes": 90,
        "goingBytes": 0,
        "excessBytes": 10,
        "trims": [trim],
    }
    return {
        "format": "brimline.reclaim-plan",
        "version": 2,
        "madeAt": "2026-01-31T12:00:00Z",
        "madeBy": "a person",
        "clusterId": "abc",
        "broker": 1,
        "ceilingPercent": 80,
        "ceilingFrom": "hand",
        "brakes": {"minRetentionMs": 0, "minRetentionBytes": 0, "maxBytesPerCycle": None, "protectedTopics": ["pay.*"]},
        "devices": [device],
    }


def a_trim(document: dict[str, Any]) -> dict[str, Any]:
    trim: dict[str, Any] = document["devices"][0]["trims"][0]
    return trim


def signed(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "sha256": checksum(document)}


def read(document: object) -> FiledPlan:
    """With the right checksum, whatever it says."""
    found = signed(document) if isinstance(document, dict) else document
    return read_plan(json.dumps(found).encode(), "plan.json")


def test_another_program_may_write_it() -> None:
    plan = read(a_document())

    assert (plan.made_at, plan.ceiling_from) == (datetime(2026, 1, 31, 12, tzinfo=UTC), CeilingFrom.HAND)
    assert [(trim.partition, trim.target, trim.oldest_ms) for trim in plan.trims] == [
        (TopicPartition("orders", 0), 3000, -1)
    ]


PLACES: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda document: document,
    lambda document: document["brakes"],
    lambda document: document["devices"][0],
    a_trim,
]
WRONG: list[object] = [{}, True, 1.5, -1, 2**63]
MEMBERS = [(place, name) for place in PLACES for name in place(a_document())]


@pytest.mark.parametrize(("place", "name"), MEMBERS, ids=[name for _, name in MEMBERS])
def test_every_member_must_be_there_and_of_its_type(
    place: Callable[[dict[str, Any]], dict[str, Any]], name: str
) -> None:
    document = a_document()
    del place(document)[name]
    with pytest.raises(BadPlanFile, match=rf"^plan\.json.*: {name} is missing; allowed: "):
        read(document)
    for wrong in WRONG[name == "brakes" :]:
        place(document)[name] = wrong
        with pytest.raises(BadPlanFile, match=rf"^plan\.json.*: {name} is .*; allowed: "):
            read(document)


@pytest.mark.parametrize("place", PLACES)
def test_no_other_member_may_be_there(place: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    document = a_document()
    place(document)["dryRun"] = True

    with pytest.raises(BadPlanFile, match="there is no member 'dryRun' in a plan of version 2"):
        read(document)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topic": "a/b"}, 'topic is "a/b"; allowed: a topic\'s name'),
        ({"topicId": "not-an-id"}, "topicId is"),
        ({"topicId": None}, "topicId is null; allowed"),
        ({"logDir": "/data/z"}, 'logDir is "/data/z"; allowed: /data/a'),
        ({"target": 2000}, "target is 2000; allowed: above lastBaseOffset"),
        ({"firstBaseOffset": 2001}, "target is 3000; allowed: above lastBaseOffset, and that not below"),
        ({"logStart": 3000}, "target is 3000; allowed: above logStart, which is 3000"),
        ({"segments": 2002}, "segments is 2002; allowed: no more than there are offsets"),
        ({"segments": 0}, "segments is 0; allowed: a whole number from 1"),
    ],
)
def test_a_trim_that_cannot_be_is_refused(changed: dict[str, Any], said: str) -> None:
    document = a_document()
    a_trim(document).update(changed)

    with pytest.raises(BadPlanFile) as refused:
        read(document)

    assert str(refused.value).startswith(f"plan.json: devices[0]: trims[0]: {said}")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"format": "brimline.ledger"}, "not a reclaim plan"),
        ({"version": 3}, "plan version 3 needs a later Brimline; this one reads version 2"),
        (
            {"version": 1},
            "plan version 1 has no checksum .earlier Brimline.; nothing was deleted; make",
        ),
        ({"madeAt": "2026-01-31T12:00:00"}, "a time with its zone"),
        ({"madeAt": "yesterday"}, "a time with its zone"),
        ({"ceilingFrom": "guess"}, "allowed: properties, hand"),
        ({"ceilingPercent": 101}, "a whole number from 0 to 100"),
        ({"clusterId": ""}, "not an empty one"),
        ({"devices": [7]}, r"devices\[0\]: must be an object, is 7"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(BadPlanFile, match=said):
        read({**a_document(), **changed})


def test_one_flipped_bit_anywhere_is_enough_to_refuse_it() -> None:
    content = json.dumps({**signed({**a_document(), "about": {"groups": ["a"]}})}, indent=1).encode()
    assert read_plan(content, "plan.json")

    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(BadPlanFile):
            read_plan(bytes(damaged), "plan.json")


def test_a_plan_that_was_changed_by_hand_is_refused_in_one_sentence() -> None:
    document = signed(a_document())
    a_trim(document)["target"] += 1

    with pytest.raises(BadPlanFile) as refused:
        read_plan(json.dumps(document).encode(), "plan.json")

    assert str(refused.value) == (
        "plan.json: damaged or edited: its sha256 does not match; nothing was deleted; make a "
        "new one with brimline reclaim --output json or brimline fleet simulate"
    )


def test_another_layout_of_the_same_content_is_the_same_plan() -> None:
    document = signed(a_document())

    assert read_plan(json.dumps(document, indent=8, sort_keys=True).encode(), "plan.json") == read(a_document())


def test_a_partition_is_trimmed_once_in_a_file() -> None:
    document = a_document()
    document["devices"].append({**document["devices"][0], "logDirs": ["/data/b"], "trims": []})
    assert len(read(document).devices) == 2
    document["devices"][1]["trims"] = [{**a_trim(document), "logDir": "/data/b", "target": 9000}]

    with pytest.raises(BadPlanFile, match="orders-0 is there twice; every log dir and partition may occur once"):
        read(document)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[1", b'{"format": NaN}', b'{"version": 1, "version": 2}', b"[" * 100_000],
    ids=["empty", "no text", "cut", "no number", "twice", "deep"],
)
def test_what_is_no_json_is_refused(content: bytes) -> None:
    with pytest.raises(BadPlanFile, match=r"^plan\.json is not a JSON document: "):
        read_plan(content, "plan.json")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPlanFile, match=r"missing\.json cannot be read: No such file"):
        load_plan(tmp_path / "missing.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(sorted({*a_document(), *a_trim(a_document())})), inner)
        ),
    )
)
def test_nothing_else_is_a_plan(document: object) -> None:
    with pytest.raises(BadPlanFile):
        read(document)

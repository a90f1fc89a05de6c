"""Formats that cross a border: what was written before is read today, and what a later version writes is not misread.

``tests/golden`` has each as the code of 8ef4b7c wrote it, files that are no text packed and in base64. The table of
docs/internals.md has a row for every one, and names the test that holds it.
"""

import base64
import gzip
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from brimline.act.borrowed import BorrowedSettings
from brimline.act.ledger.files import read_line, write_line
from brimline.act.ledger.ledger import Ledger, PauseFile
from brimline.act.ledger.state import TrimPhase
from brimline.act.move_pause import KEY, PauseRecord
from brimline.act.plan_file import BadPlanFile, load_plan
from brimline.act.replica_throttle import ThrottleRecord
from brimline.act.seen_settings import SeenFile
from brimline.decide.admission import FenceCause
from brimline.decide.reclaim.holding import Seen
from brimline.disks.reserves import Reserves
from brimline.fleet.planner.broker_snapshot import read_broker
from brimline.fleet.planner.plan_files import filed_plan
from brimline.gateway.client import GatewayClient
from brimline.gateway.control import ControlServer
from brimline.gateway.rules.fences import Fences
from brimline.gateway.rules.sequence_file import SequenceFile
from brimline.guard.client import read_state
from brimline.landing.reader import BadSnapshot, QuarantineReason, Snapshot
from brimline.landing.writer import encode
from brimline.model import BrimlineError, FailureKind, ObservationFailed
from brimline.model.failures import Failure
from brimline.observe.cluster.dynamic_values import Place
from brimline.observe.remote.gateway_log_dirs import _is_mark
from brimline.service.durable_files import NotRecorded
from brimline.wire.api_versions import GATEWAY_API_KEY
from tests.fleet.snapshots import broker_of_one_log, header_of, sections_of
from tests.guard.gateways import FakeGateway, fake_gateway

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = "of version 2, written by a later brimline"


def golden(name: str) -> bytes:
    packed = GOLDEN / f"{name}.gz.base64"
    if packed.exists():
        return gzip.decompress(base64.decodebytes(packed.read_bytes()))
    return (GOLDEN / name).read_bytes()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """As a guard and a gateway of before have left it."""
    names = (
        "cleaner-hold-1.json",
        "fences-1.json",
        "fences-1.log",
        "ledger-1.jsonl",
        "move-pause-1.json",
        "reserve-1.json",
        "sequences-1.map",
        "throttle-1.json",
    )
    for name in names:
        (tmp_path / name).write_bytes(golden(name))
    return tmp_path


def raise_version(path: Path) -> bytes:
    """As a later brimline might have written it; what is in the file now."""
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "version": document["version"] + 1}))
    return path.read_bytes()


# State files ---------------------------------------------------------------------------------------------------------


def fences_of(state_dir: Path) -> Fences:
    return Fences(state_dir=state_dir, node_id=1, log_dirs=["/data/a"], now=lambda: NOW)


def test_fences_by_hand(state_dir: Path) -> None:
    fences = fences_of(state_dir)
    fences.fence(topic="clicks", reason="today", by="root")

    by_hand = fences.snapshot
    assert fences.warnings == ()
    assert {**by_hand.topics_by_hand, **by_hand.log_dirs_by_hand}.keys() == {"orders", "clicks", "/data/a"}
    assert by_hand.topics_by_hand["orders"].by == "anna"
    assert [json.loads(line).get("v", 1) for line in (state_dir / "fences-1.log").read_text().splitlines()] == [1, 1, 1]


def test_fences_of_a_later_version_are_left_to_it(state_dir: Path) -> None:
    path = state_dir / "fences-1.json"
    content = raise_version(path)

    fences = fences_of(state_dir)

    assert fences.warnings == (f"{path} is {LATER}: fences by hand are not in force",)
    assert fences.snapshot.is_empty
    with pytest.raises(NotRecorded, match=f"^nothing was changed: .* is {LATER}: use that version, or move the file"):
        fences.fence(topic="clicks", reason="today", by="root")
    assert fences.snapshot.is_empty
    assert path.read_bytes() == content
    assert (state_dir / "fences-1.log").read_bytes() == golden("fences-1.log")


def test_the_memory_of_refused_sequences(state_dir: Path) -> None:
    path = state_dir / "sequences-1.map"

    memory = SequenceFile(path, 2)
    memory.close()

    (record,) = memory.records
    assert (record.serial, record.slot, record.key, tuple(record.entry)) == (
        1,
        1,
        b"0123456789abcdef",
        (3, 7, 1_700_000_000),
    )
    assert memory.warnings == []


def test_a_memory_of_another_version_is_made_anew(state_dir: Path) -> None:
    path = state_dir / "sequences-1.map"
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 8, 1)
    path.write_bytes(content)

    memory = SequenceFile(path, 2)
    memory.close()

    assert memory.records == []
    assert memory.warnings == [
        f"{path} was the memory of refused sequences of another brimline (version 1, and not 2) and was recreated"
    ]


def test_the_ledger(state_dir: Path) -> None:
    ledger = Ledger(state_dir, 1, lambda: NOW)
    ledger.refresh()
    ledger.close()

    (cycle,) = ledger.state.cycles.values()
    assert [trim.phase for trim in cycle.trims] == [TrimPhase.DONE, TrimPhase.ABANDONED, TrimPhase.WITHDRAWN]
    assert cycle.plan.trims[0].target == 300
    assert ledger.state.pause is not None
    assert (ledger.state.pause.by, ledger.state.pause.reason) == ("anna", "replay")
    assert ledger.state.ballast.keys() == {"/data/a/.brimline-ballast"}
    assert ledger.state.cordoned.keys() == {"/data/a"}
    (shed,) = ledger.state.shed.values()
    assert (shed.entry.before, shed.entry.left) == ((1, 2, 3), (1, 3))
    assert ledger.warnings == []


def test_every_line_of_the_ledger_is_written_as_before() -> None:
    """So the version before reads today's."""
    lines = golden("ledger-1.jsonl").splitlines(keepends=True)

    assert [write_line(read_line(line[:-1])) for line in lines] == lines


def test_nothing_is_written_behind_a_line_of_a_later_version(state_dir: Path) -> None:
    later = write_line(read_line(golden("ledger-1.jsonl").splitlines()[-1]))
    changed = later.replace(b'{"v":1,', b'{"v":2,')[: -len(b',"crc":"01234567"}\n')]
    path = state_dir / "ledger-1.jsonl"
    content = path.read_bytes() + changed + b',"crc":"%08x"}\n' % crc32(changed)
    path.write_bytes(content)

    with pytest.raises(
        NotRecorded, match=r"has an entry that is written by a later Brimline \(format version 2\): use"
    ):
        Ledger(state_dir, 1, lambda: NOW).refresh()

    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content", [b'{"version": 2, "by": "a", "reason": "b", "since": "2026-01-31T12:00:00Z"}', b"{}"]
)
def test_a_pause_of_reclaim(tmp_path: Path, content: bytes) -> None:
    pause = PauseFile(tmp_path, 1)
    assert pause.read() is None
    pause.path.write_bytes(content)

    assert pause.read() is not None


def test_what_reclaim_has_seen(tmp_path: Path) -> None:
    file, seen = SeenFile(tmp_path, 1, "/data/a"), Seen(settings="ceiling 80 %", foreign_bytes=7)
    file.write(seen)

    assert json.loads(file.path.read_text()) == {
        "version": 1,
        "logDir": "/data/a",
        "settings": "ceiling 80 %",
        "foreignBytes": 7,
    }
    assert file.read() == seen
    file.path.write_text(json.dumps({**json.loads(file.path.read_text()), "version": 2}))
    assert file.read() == Seen()


def test_a_pause_of_moves(state_dir: Path) -> None:
    record = PauseRecord(state_dir / "move-pause-1.json", KEY)
    found = record.read(NOW)
    assert found is not None
    assert (found.before, found.since, record.warnings) == ("20000000", NOW, [])

    raise_version(record.path)
    later = record.read(NOW)

    assert later is not None
    assert later.before is None
    assert record.warnings == [f"{record.path} is {LATER}: {KEY} is removed when moves resume"]


def test_a_throttle_of_replicas(state_dir: Path) -> None:
    record = ThrottleRecord(state_dir / "throttle-1.json")
    found = record.read(NOW)
    assert found is not None
    assert (found.topics, found.since, record.warnings) == ({"orders": (0, 2)}, NOW, [])

    raise_version(record.path)
    later = record.read(NOW)

    assert later is not None
    assert later.topics == {}
    assert record.warnings == [
        f"{record.path} is {LATER}: leader.replication.throttled.rate is removed if it is 1, topic lists stay"
    ]


def test_the_reserves_of_volumes(state_dir: Path) -> None:
    reserves = Reserves(state_dir, 1, lambda: "auto")
    assert reserves.refresh()
    (found,) = reserves.volumes
    assert (found.log_dirs, found.bytes, found.fewest_files) == (("/data/a",), 1408 << 20, 10_000)
    assert (found.is_in_force, found.are_files_in_force) == (True, False)
    assert [(part.what, part.bytes) for part in found.parts] == [("cleaner", 1044 << 20)]

    raise_version(reserves.path)

    assert not reserves.refresh()
    assert reserves.problem is not None
    assert LATER in reserves.problem
    assert reserves.volumes == (found,), "what was read before counts on"


def test_a_hold_of_the_cleaner(state_dir: Path) -> None:
    path, ours = state_dir / "cleaner-hold-1.json", Place("broker", "1", "log.cleaner.min.cleanable.ratio")
    nobody: Any = None  # nothing is asked here
    held = BorrowedSettings(nobody, path, lambda: NOW, {ours: "1"})
    assert (held.places[ours].ours, held.places[ours].before, held.since, held.warnings) == (("1",), "0.3", NOW, [])

    raise_version(path)
    later = BorrowedSettings(nobody, path, lambda: NOW, {ours: "1"})

    assert (later.places[ours].ours, later.places[ours].before) == (("1",), None)
    assert any(LATER in warning for warning in later.warnings)


# Between processes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[FakeGateway]:
    with fake_gateway(tmp_path / "gateway.sock") as running:
        yield running


def control(tmp_path: Path) -> ControlServer:
    return ControlServer(tmp_path / "control.sock", {"echo": lambda request: {"asked": dict(request)}})


def test_the_control_socket(tmp_path: Path) -> None:
    """A guard of before says no version, and reads an answer with one."""
    server = control(tmp_path)
    try:
        said = [json.loads(server.answer(line)) for line in (b'{"op": "echo"}', b'{"v": 1, "op": "echo"}')]
        refused = json.loads(server.answer(b'{"v": 2, "op": "echo"}'))
    finally:
        server.server_close()

    assert [(each["v"], each["ok"]) for each in said] == [(1, True), (1, True)]
    assert refused["ok"] is False
    assert refused["error"].startswith("an order of version 2, and this gateway (brimline ")


def test_a_gateway_of_before_says_no_version(gateway: FakeGateway) -> None:
    gateway.document = json.loads(golden("gateway-answer.json"))["state"]
    with GatewayClient(gateway.path) as client:
        state = client.state()

    assert [(fence.target, fence.cause) for fence in state.fences] == [
        ("/data/b", FenceCause.FULL),
        ("/data/b", FenceCause.GUARD),
        ("topic clicks", FenceCause.MANUAL),
    ]


def test_a_gateway_of_a_later_version_is_not_misread(gateway: FakeGateway) -> None:
    gateway.raw = b'{"v": 2, "ok": true, "state": {}}\n'

    with GatewayClient(gateway.path) as client, pytest.raises(ObservationFailed) as failed:
        client.state()

    assert failed.value.failure == Failure(
        kind=FailureKind.UNSUPPORTED,
        message=f"the gateway at {gateway.path} answers in version 2, which needs a later brimline",
    )


def test_the_guards_state() -> None:
    text = golden("guard-state.json").decode()

    shown = read_state(text, "http://guard")

    assert {volume.log_dirs: volume.state for volume in shown.volumes} == {("/data/a",): "ok", ("/data/b",): "full"}
    assert shown.gateway is not None
    later = json.dumps({**json.loads(text), "version": 2})
    with pytest.raises(BrimlineError, match=r"^http://guard answers in version 2, this brimline reads version 1: use"):
        read_state(later, "http://guard")


class Api:
    def __init__(self, low: int, high: int, key: int = GATEWAY_API_KEY) -> None:
        self.api_key, self.min_version, self.max_version = key, low, high


@pytest.mark.parametrize(
    ("api", "is_ours"), [(Api(0, 0), True), (Api(0, 3), True), (Api(1, 1), False), (Api(0, 0, key=35), False)]
)
def test_the_gateways_mark(api: Any, is_ours: bool) -> None:  # noqa: FBT001 (a parameter)
    assert _is_mark(api) is is_ours


# Files that are handed on --------------------------------------------------------------------------------------------


def test_a_snapshot() -> None:
    content = golden("snapshot.parquet")

    with Snapshot(content) as snapshot:
        assert (snapshot.header.version, snapshot.header.broker_id) == (1, 1)
    planned = filed_plan(read_broker(content), 50)

    assert planned is not None
    assert [(str(trim.partition), trim.target) for trim in planned.trims] == [("orders-7", 20)]


def test_a_snapshot_of_a_later_version_is_set_aside() -> None:
    content = encode(replace(header_of(), version=2), sections_of(broker_of_one_log(700, [0, 10])))

    with pytest.raises(BadSnapshot) as refused:
        Snapshot(content)

    assert refused.value.reason is QuarantineReason.FUTURE_VERSION


def test_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(golden("plan.json"))

    with pytest.raises(BadPlanFile) as refused:
        load_plan(path)
    assert str(refused.value) == (
        f"{path}: plan version 1 has no checksum (earlier Brimline); nothing was deleted; make "
        "a new one with brimline reclaim --output json or brimline fleet simulate"
    )

    path.write_text(json.dumps({**json.loads(path.read_bytes()), "version": 3}))
    with pytest.raises(BadPlanFile) as refused:
        load_plan(path)
    assert str(refused.value) == f"{path}: plan version 3 needs a later Brimline; this one reads version 2"

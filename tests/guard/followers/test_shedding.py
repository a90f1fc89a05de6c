"""When replicas are taken away from a full disk, and what is said of it."""

import json
import shlex
from dataclasses import replace
from datetime import UTC, datetime

from brimline.act.ledger.entries import ShedAct, ShedEntry
from brimline.act.ledger.state import ShedRecord
from brimline.act.shedding import CrowdedDisk
from brimline.decide.disk_state import DiskState
from brimline.decide.peer_disks import Peer, PeerLogDir, PeerState
from brimline.guard.followers.holding import LOOK
from brimline.guard.followers.report import FullFollower, PeerReport
from brimline.guard.followers.shed_words import how_to_put_back, shed_document, shed_families
from brimline.guard.followers.shedding import SheddingReport, SheddingTask, crowded_disks
from brimline.model import BrokerId, Bytes, Failure, FailureKind, ObservationFailed, TopicPartition
from brimline.observe.cluster.log_dirs import LedTopic
from tests.service.ticking import TickingClock

REFUSED = Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs ALTER on the cluster")
FIRST = TopicPartition("orders", 0)


def shed(number: int = 0, follower: int = 3) -> ShedEntry:
    return ShedEntry(
        act=ShedAct.SHED,
        partition=TopicPartition("orders", number),
        follower=BrokerId(follower),
        log_dir="/a",
        before=(BrokerId(1), BrokerId(2), BrokerId(3)),
        size=Bytes(1),
        why="full",
    )


class ShedderInMemory:
    def __init__(self) -> None:
        self.shed: list[ShedRecord] = []
        self.relieved: list[CrowdedDisk] = []
        self.failure: Failure | None = None

    def relieve(self, disk: CrowdedDisk) -> list[ShedEntry]:
        self.relieved.append(disk)
        if self.failure is not None:
            raise ObservationFailed(self.failure)
        self.shed.append(ShedRecord(entry=shed(), at=datetime(2026, 1, 1, tzinfo=UTC)))
        return [shed()]

    def look_after(self) -> None:
        pass


class Tasked:
    def __init__(self) -> None:
        self.clock = TickingClock()
        self.shedder = ShedderInMemory()
        self.is_wanted = True
        self.woken = 0
        self.reports: list[SheddingReport] = []
        self.task = SheddingTask(self.shedder, self.clock, lambda: self.is_wanted, self._wake, self.reports.append)

    def look(self) -> None:
        self.task.decided(peers(self.clock.seconds() + 60))

    def _wake(self) -> None:
        self.woken += 1


def peers(counts_until: float = 60.0, *, is_crowded: bool = True) -> PeerReport:
    topic = LedTopic(
        name="orders",
        topic_id=None,
        partitions=(0, 1, 2),
        log_dir="/a",
        critical=frozenset({1}),
        lagging=frozenset({2}),
    )
    own = LedTopic(name="__consumer_offsets", topic_id=None, partitions=(7,), log_dir="/a")
    follower = FullFollower(
        broker=BrokerId(3),
        reason="full",
        log_dirs=("/a",),
        topics=(topic, own),
        lacking={"/a": Bytes(5)} if is_crowded else {},
    )
    other = FullFollower(broker=BrokerId(4), reason="full", topics=(topic,))
    fresh = [Peer(broker=BrokerId(number), state=PeerState.FRESH) for number in (2, 3, 4)]
    own_disks = Peer(broker=BrokerId(1), state=PeerState.FRESH)
    return PeerReport(peers=tuple(fresh), own=own_disks, full=(follower, other), counts_until=counts_until)


def test_a_disk_down_to_its_reserve_is_relieved_of_what_is_in_sync_and_not_critical() -> None:
    tasked = Tasked()
    tasked.look()

    assert tasked.task.step() == LOOK
    (disk,) = tasked.shedder.relieved
    assert (disk.follower, disk.log_dir, disk.lacking) == (3, "/a", 5)
    assert disk.partitions == {FIRST: {1, 2}}
    assert tasked.reports[-1].new == (shed(),)
    assert tasked.woken == 1


def test_only_who_is_known_to_have_room_counts_as_having_it() -> None:
    told = peers()
    silent = replace(told.peers[0], state=PeerState.SILENT)
    full = replace(
        told.peers[0], broker=BrokerId(1), log_dirs={"/a": PeerLogDir(path="/a", space=None, state=DiskState.FULL)}
    )
    unclear = FullFollower(broker=BrokerId(2), reason="full", failure=REFUSED)

    def with_room(report: PeerReport) -> set[int]:
        return set(crowded_disks(report)[0].partitions[FIRST])

    assert with_room(replace(told, peers=(silent, *told.peers[1:]))) == {1}
    assert with_room(replace(told, full=(*told.full, unclear))) == {1}
    assert with_room(replace(told, own=full)) == {2}
    assert with_room(replace(told, own=None)) == {2}


def test_before_its_reserve_nothing_is_done() -> None:
    assert crowded_disks(peers(is_crowded=False)) == []


def test_switched_off_it_does_nothing() -> None:
    tasked = Tasked()
    tasked.is_wanted = False
    tasked.look()
    tasked.task.step()

    assert tasked.shedder.relieved == []
    assert tasked.reports == [SheddingReport()]


def test_a_report_that_is_too_old_counts_for_nothing() -> None:
    tasked = Tasked()
    tasked.look()
    tasked.clock.tick(61)
    tasked.task.step()

    assert tasked.shedder.relieved == []


def test_a_refusal_is_told_and_not_repeated_at_once() -> None:
    tasked = Tasked()
    tasked.shedder.failure = REFUSED
    tasked.look()
    tasked.task.step()

    assert tasked.task.report.failure == REFUSED
    document = shed_document(tasked.task.report, "b:9092")
    assert document is not None
    assert "needs ALTER on the cluster" in document.does
    assert tasked.task.step() == SheddingTask.RETRY


def test_what_was_taken_away_is_told_with_the_command_that_puts_it_back() -> None:
    report = SheddingReport(shed=(shed(0), shed(1)))
    document = shed_document(report, "b:9092")

    assert document is not None
    assert document.does == ("2 replicas removed because a disk of broker 3 was full, not put back: orders-0, orders-1")
    (family,) = shed_families(report)
    assert (family.label_values, list(family.values)) == ((("3",),), [2])
    words = shlex.split(how_to_put_back(report.shed, "b:9092"))
    written = json.loads(words[words.index("echo") + 1])
    assert [each["replicas"] for each in written["partitions"]] == [[1, 2, 3], [1, 2, 3]]
    assert words[-5:] == ["--bootstrap-server", "b:9092", "--execute", "--reassignment-json-file", "/dev/stdin"]
    assert shed_document(SheddingReport(), "b:9092") is None


def test_one_that_was_shed_twice_goes_back_to_what_it_was_first() -> None:
    later = ShedEntry(
        act=ShedAct.SHED,
        partition=FIRST,
        follower=BrokerId(2),
        log_dir="/a",
        before=(BrokerId(1), BrokerId(2)),
        size=Bytes(1),
        why="full",
    )

    assert '"replicas":[1,2,3]' in how_to_put_back([shed(0), later], "b:9092")

"""What a guard takes a broker's unfenced writers for, from folders of real files; and the reserve that comes of it."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from brimline.decide.commits import OffsetsTopic
from brimline.decide.disk_state import DiskLimits, DiskState
from brimline.decide.fill_rate import Pace
from brimline.decide.unfenced_writes import UnfencedWriters, reserve_bytes, reserve_parts
from brimline.disks.reserves import Reserves
from brimline.disks.task import DiskReport, DiskSettings, DiskTask, VolumeStatus
from brimline.guard.feature import Core
from brimline.guard.reserve import MEASURED_FOR, Reserve, WritersLook
from brimline.metrics.board import MetricBoard
from brimline.model import Bytes, Failure, FailureKind, ObservationFailed
from brimline.observe.cluster.cleaner_settings import CleanerSettings, CompactedTopic
from brimline.observe.scan.names import METADATA_LOG, REMOTE_INDEX_CACHE
from brimline.observe.volumes import VolumeReading, device_of
from brimline.settings import keys
from tests.guard.files import config
from tests.service.ticking import Answers, FakeDisks, TickingClock

MIB, GIB = 1 << 20, 1 << 30
OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
OF_COORDINATORS = CompactedTopic(segment_bytes=100 * MIB, delete_delay=60.0, has_own_rhythm=False)
COMPACTED = CompactedTopic(segment_bytes=GIB, delete_delay=60.0, has_own_rhythm=False)


class Broker:
    """What a broker says of its settings. Topics that are not in ``compacted`` are not."""

    def __init__(self) -> None:
        self.settings = CleanerSettings()
        self.compacted: dict[str, CompactedTopic] = {OFFSETS: OF_COORDINATORS, TRANSACTIONS: OF_COORDINATORS}
        self.is_down = False
        self.offsets_topic: OffsetsTopic | None = None
        self.asked = 0

    def cleaner(self) -> CleanerSettings:
        if self.is_down:
            raise ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="nobody answers"))
        return self.settings

    def offsets(self) -> OffsetsTopic | None:
        self.asked += 1
        self.cleaner()
        return self.offsets_topic

    def topics(self, names: Collection[str]) -> Mapping[str, CompactedTopic | None]:
        self.cleaner()
        return {name: self.compacted.get(name) for name in names}

    def close(self) -> None:
        pass


def segments(log_dir: Path, folder: str, *sizes: int) -> None:
    """Segments of these sizes, which take no room where the test runs."""
    (log_dir / folder).mkdir(exist_ok=True)
    for number, size in enumerate(sizes):
        path = log_dir / folder / f"{number:020d}.log"
        path.touch()
        os.truncate(path, size)


class Guarded:
    """Log dirs ``a`` and ``b``, on one device unless a test says otherwise."""

    def __init__(self, root: Path, added: str = "") -> None:
        self.root = root
        self.a, self.b = root / "a", root / "b"
        for log_dir in (self.a, self.b):
            log_dir.mkdir()
        self.clock = TickingClock()
        self.broker = Broker()
        self.can_be_held = True
        self.is_held = False
        self.device = device_of(str(root))
        self.config = config(
            f"log.dirs={self.a},{self.b}\nbrimline.enforcement=gateway\nbrimline.state.dir={root}\n{added}"
        )
        self.writers_look = WritersLook(
            self.broker,  # type: ignore[arg-type]
            lambda: self.config,
            self.clock.seconds,
            lambda: self.can_be_held,
            lambda: self.is_held,
        )

    def volume(self, *log_dirs: Path, usable: int = 400 * GIB, total: int = 500 * GIB) -> VolumeStatus:
        return VolumeStatus(
            reading=VolumeReading(
                device=self.device or "",
                log_dirs=tuple(map(str, log_dirs or (self.a, self.b))),
                total_bytes=Bytes(total),
                usable_bytes=Bytes(usable),
                reserved_bytes=Bytes(0),
                observed_at=self.clock.now(),
                seconds=self.clock.seconds(),
            ),
            fullness=DiskState.OK,
            breaches=(),
            bytes_to_limit=None,
            fill_rate=None,
            seconds_left=None,
            next_look=1.0,
        )

    def look(self, after: float = 0.0) -> UnfencedWriters:
        self.clock.tick(after)
        volume = self.volume()
        return self.writers_look.look([volume])[volume.log_dirs]

    def parts(self, after: float = 0.0) -> dict[str, int]:
        return {part.what: part.bytes for part in reserve_parts(self.look(after))}

    def coordinators(self, mib: int = 10) -> None:
        """As on a broker that is used: 50 partitions each."""
        for number in range(50):
            segments(self.a, f"{OFFSETS}-{number}", mib * MIB)
            segments(self.a, f"{TRANSACTIONS}-{number}", mib * MIB)

    def commit(self, kib_a_second: int, seconds: float = 10.0) -> None:
        """Evenly to all partitions, for so long."""
        self.look()
        for number in range(50):
            path = self.a / f"{OFFSETS}-{number}" / f"{0:020d}.log"
            os.truncate(path, path.stat().st_size + int(kib_a_second * 1024 * seconds / 50))
        self.clock.tick(seconds)


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


def test_a_broker_that_has_never_answered_is_not_guessed_at(guarded: Guarded) -> None:
    guarded.broker.is_down = True

    assert guarded.writers_look.look([guarded.volume()]) == {}


def test_one_that_answered_once_is_known_from_then_on_and_what_is_new_is_taken_for_compacted(guarded: Guarded) -> None:
    guarded.broker.compacted["t"] = COMPACTED
    segments(guarded.a, "t-0", 100 * MIB)
    guarded.look()

    guarded.broker.is_down = True
    segments(guarded.a, "new-0", 300 * MIB)

    assert sum(log.bytes for log in guarded.look(1).compacted) == 400 * MIB


def test_both_log_dirs_of_a_volume_count_and_the_copy_of_a_move_but_nothing_that_goes(guarded: Guarded) -> None:
    guarded.broker.compacted["t"] = COMPACTED
    ident = "0123456789abcdef0123456789abcdef"
    segments(guarded.a, "t-0", MIB)
    segments(guarded.b, "t-1", 2 * MIB)
    segments(guarded.b, f"t-0.{ident}-future", 4 * MIB)
    segments(guarded.b, f"t-2.{ident}-delete", 8 * MIB)
    segments(guarded.b, f"t-3.{ident}-stray", 16 * MIB)
    segments(guarded.b, "plain-0", 32 * MIB)

    found = guarded.look()

    assert sum(log.bytes for log in found.compacted) == 7 * MIB
    assert (found.partitions, found.is_moved_into) == (4, True)


def test_a_volume_counts_what_is_on_it(guarded: Guarded) -> None:
    guarded.broker.compacted["t"] = COMPACTED
    segments(guarded.a, "t-0", MIB)
    segments(guarded.b, "t-1", 2 * MIB)
    one, other = guarded.volume(guarded.a), guarded.volume(guarded.b)

    found = guarded.writers_look.look([one, other])

    assert [sum(log.bytes for log in found[each.log_dirs].compacted) for each in (one, other)] == [MIB, 2 * MIB]


def test_a_topic_that_becomes_compacted_is_seen_within_a_minute(guarded: Guarded) -> None:
    segments(guarded.a, "t-0", MIB)
    assert not guarded.look().compacted

    guarded.broker.compacted["t"] = COMPACTED

    assert guarded.look(61).compacted


def test_without_a_cleaner_nothing_is_compacted_and_commits_are_never_taken_back(guarded: Guarded) -> None:
    guarded.broker.settings = CleanerSettings(is_enabled=False)
    guarded.coordinators()
    guarded.commit(1024)

    found = guarded.look()

    assert not found.compacted
    assert {log.segment_bytes for log in found.state_logs} == {None}


def test_share_groups_state_is_no_cleaners_but_grows(guarded: Guarded) -> None:
    segments(guarded.a, f"{SHARES}-0", MIB)
    guarded.look()
    os.truncate(guarded.a / f"{SHARES}-0" / f"{0:020d}.log", 11 * MIB)

    (found,) = guarded.look(10).state_logs

    assert (found.rate, found.growth) == (MIB, 900 * MIB)


def test_the_metadata_log_counts_where_it_is(guarded: Guarded) -> None:
    folder = guarded.a / METADATA_LOG
    folder.mkdir()
    (folder / f"{7:020d}-{1:010d}.checkpoint").write_bytes(b"x" * MIB)

    assert guarded.parts()["metadata"] == MIB


@pytest.mark.parametrize("is_same_device", [True, False])
def test_a_metadata_directory_of_its_own_counts_on_the_same_device(tmp_path: Path, is_same_device: bool) -> None:  # noqa: FBT001
    guarded = Guarded(tmp_path, f"metadata.log.dir={tmp_path / 'meta'}\n")
    (tmp_path / "meta" / METADATA_LOG).mkdir(parents=True)
    (tmp_path / "meta" / METADATA_LOG / f"{7:020d}-{1:010d}.checkpoint").write_bytes(b"x" * MIB)
    guarded.device = guarded.device if is_same_device else "8:99"

    assert guarded.parts().get("metadata", 0) == (MIB if is_same_device else 0)


def test_the_index_cache_counts_where_the_first_log_dir_is(guarded: Guarded) -> None:
    guarded.broker.settings = CleanerSettings(index_cache_bytes=GIB)
    (guarded.a / REMOTE_INDEX_CACHE).mkdir()
    (guarded.a / REMOTE_INDEX_CACHE / "1_x.index").write_bytes(b"x" * MIB)
    one, other = guarded.volume(guarded.a), guarded.volume(guarded.b)

    found = guarded.writers_look.look([one, other])

    assert [found[each.log_dirs].index_cache_left for each in (one, other)] == [GIB - MIB, 0]


# Not fenced too early -------------------------------------------------------------------------------------------------


def added(guarded: Guarded) -> int:
    """To what KIP-1201's default keeps free of any volume."""
    return max(reserve_bytes(reserve_parts(guarded.look())) - GIB, 0)


def test_ten_small_compacted_topics_cost_little(guarded: Guarded) -> None:
    guarded.coordinators()
    for number in range(10):
        guarded.broker.compacted[f"t{number}"] = COMPACTED
        segments(guarded.b, f"t{number}-0", 100_000_000)
    guarded.commit(200)

    assert added(guarded) <= GIB // 2


def test_a_large_compacted_topic_costs_a_group_and_the_seconds_until_the_hold(guarded: Guarded) -> None:
    guarded.coordinators()
    guarded.broker.compacted["t"] = COMPACTED
    segments(guarded.b, "t-0", *[GIB] * 300)
    guarded.commit(2048)

    assert added(guarded) <= 4 * GIB


def test_where_the_cleaner_cannot_be_held_what_it_writes_meanwhile_is_counted(guarded: Guarded) -> None:
    guarded.broker.compacted["t"] = COMPACTED
    segments(guarded.b, "t-0", *[GIB] * 300)
    held = guarded.parts()["passes"]

    guarded.can_be_held = False

    assert (held, guarded.parts()["passes"]) == (2 * 400 * MIB, 60 * 160 * MIB)


def test_what_the_broker_says_while_its_settings_are_borrowed_lowers_no_reserve(guarded: Guarded) -> None:
    assert not guarded.look().is_measured
    assert guarded.look(after=MEASURED_FOR).is_measured
    guarded.is_held = True
    assert not guarded.look().is_measured
    guarded.is_held = False

    assert not guarded.look(after=MEASURED_FOR - 1).is_measured
    assert guarded.look(after=1).is_measured


# An upgrade -----------------------------------------------------------------------------------------------------------


class Upgraded:
    """The whole of it but the process: a guard's feature beside the disks that go by what it finds."""

    def __init__(self, guarded: Guarded, usable: int, choice: str = keys.AUTO) -> None:
        self.guarded = guarded
        self.choice = choice
        path = str(guarded.a)
        self.disks = FakeDisks(**{path: usable})
        self.disks.total = Bytes(100 * GIB)
        self.answers = Answers()
        self.reserves = Reserves(guarded.root, 7, lambda: self.choice)
        self.task = DiskTask(
            [path],
            DiskSettings(limits=DiskLimits(), pace=Pace(interval=1.0), stall_timeout=10.0),
            guarded.clock,
            self.answers,
            lambda *_: None,
            self.disks.look,
            limits_of=lambda reading, limits: self.reserves.limits_of(reading, limits),
        )
        core = Core(guarded.config, guarded.clock, MetricBoard(), DiskReport(limits=DiskLimits()), self.look)
        core.reserves = self.reserves
        self.feature = Reserve(core, guarded.broker)  # type: ignore[arg-type]
        self.core = core
        self.look()

    def look(self) -> None:
        self.task.look_now()
        self.task.step()
        self.answers.wait()
        self.task.step()

    def after(self, seconds: float, usable: int | None = None) -> DiskState:
        (path,) = self.disks.usable
        self.disks.usable[path] = self.disks.usable[path] if usable is None else usable
        self.guarded.clock.tick(seconds)
        self.look()
        self.core.disks = self.task.report
        self.feature.step()
        (volume,) = self.task.report.volumes
        return volume.state

    @property
    def wanted(self) -> int:
        (found,) = self.reserves.volumes
        return found.bytes


def two_thread_gibibytes(guarded: Guarded) -> None:
    """Groups of 2 GiB: more than the 1.5 GiB that the disk below has."""
    guarded.broker.settings = CleanerSettings(threads=2)
    guarded.broker.compacted["t"] = COMPACTED
    for number in range(2):
        segments(guarded.a, f"t-{number}", GIB, GIB)


def test_who_leads_the_offsets_is_filed_for_the_gateway_where_commits_may_be_refused(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, f"{keys.COMMITS_LINE.name}=50\n")
    upgraded = Upgraded(guarded, 50 * GIB)
    filed = Reserves(tmp_path, 7, lambda: keys.AUTO)
    upgraded.after(1)
    assert [notice.key for notice in upgraded.feature.notices()] == ["offsets", str(guarded.a)]

    guarded.broker.offsets_topic = found = OffsetsTopic(partitions=50, led=(1, 2))
    upgraded.after(6)
    filed.refresh()
    assert filed.offsets == found
    assert "offsets" not in [notice.key for notice in upgraded.feature.notices()]

    calm = guarded.broker.asked
    upgraded.after(6)
    assert guarded.broker.asked == calm
    upgraded.after(1, GIB // 2)
    upgraded.after(6)
    assert guarded.broker.asked == calm + 2, "more often while a disk is full"

    guarded.broker.is_down = True
    upgraded.after(60)
    assert upgraded.reserves.offsets == found, "what was known holds"


def test_otherwise_nobody_asks_who_leads_the_offsets(guarded: Guarded) -> None:
    upgraded = Upgraded(guarded, GIB // 2)
    upgraded.after(1)

    assert (guarded.broker.asked, upgraded.reserves.offsets) == (0, None)
    assert "offsets" not in [notice.key for notice in upgraded.feature.notices()]


def test_an_upgrade_fences_nothing_that_was_not_fenced(guarded: Guarded) -> None:
    two_thread_gibibytes(guarded)
    upgraded = Upgraded(guarded, 3 * GIB // 2)

    assert {upgraded.after(1) for _ in range(5)} == {DiskState.OK}
    assert upgraded.wanted > 2 * GIB
    assert [notice.key.split()[0] for notice in upgraded.feature.notices()] == ["pending"]

    had_room = upgraded.after(1, 10 * GIB)
    filled = upgraded.after(1, 3 * GIB // 2)
    assert (had_room, filled) == (DiskState.OK, DiskState.FULL)


def test_what_shows_only_later_fences_nothing_either(guarded: Guarded) -> None:
    """How fast the coordinators write is measured over minutes, and a missing right is noticed after the first look."""
    guarded.coordinators()
    guarded.broker.compacted["t"] = COMPACTED
    segments(guarded.a, "t-0", *[GIB] * 10)
    upgraded = Upgraded(guarded, 5 * GIB)
    assert upgraded.after(0) is DiskState.OK

    guarded.commit(8192)
    upgraded.core.can_hold_cleaner = False
    assert upgraded.after(0) is DiskState.OK
    assert upgraded.after(MEASURED_FOR) is DiskState.OK
    assert upgraded.wanted > 5 * GIB


def test_a_person_may_confirm_it(guarded: Guarded) -> None:
    two_thread_gibibytes(guarded)
    upgraded = Upgraded(guarded, 3 * GIB // 2)
    upgraded.after(1)

    upgraded.choice = keys.ON

    assert upgraded.after(1) is DiskState.FULL


def test_a_volume_too_small_for_its_reserve_is_said(guarded: Guarded) -> None:
    guarded.broker.settings = CleanerSettings(threads=2)
    two_thread_gibibytes(guarded)
    upgraded = Upgraded(guarded, 5 * GIB // 2)
    upgraded.disks.total = Bytes(3 * GIB)
    upgraded.after(1)

    assert upgraded.wanted == 3 * GIB // 2
    assert [notice.key.split()[0] for notice in upgraded.feature.notices()] == ["too-small", str(guarded.a)]

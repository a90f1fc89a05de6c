"""The reserve of every volume: what may still be written there once Produce is refused (``decide.unfenced_writes``).

Every second the folders of compacted topics and of the coordinators are looked at (where there are thousands, more
seldom: 1 % of a core, 5 % near a limit), and the broker is asked for the settings of topics that it did not have
before; everything is asked again every minute. What is worked out goes to disk (``disks.reserves``), where the gateway
reads it, and into the limits of the guard's own disks.

A broker that does not answer changes nothing: the last reserve stays in force.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from brimline.decide.commits import OFFSETS_TOPIC, OffsetsTopic
from brimline.decide.disk_state import DiskState
from brimline.decide.unfenced_writes import Cleaner, CompactedLog, StateLog, UnfencedWriters
from brimline.disks.reserves import Reserves, VolumeReserve, next_reserve
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.notices import Notice, Weight
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import Bytes, Failure, ObservationFailed, human_bytes, human_count
from brimline.model.scan import FolderKind
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.cleaner_settings import (
    CleanerSettings,
    CompactedTopic,
    ask_cleaner_settings,
    ask_compacted_topics,
)
from brimline.observe.cluster.topics import describe_topics
from brimline.observe.scan.growth import AppendRates, folder_bytes, folder_names, largest_file, log_size
from brimline.observe.scan.names import FUTURE_SUFFIX, METADATA_LOG, REMOTE_INDEX_CACHE, read_folder_name
from brimline.observe.volumes import device_of
from brimline.service.durable_files import NotRecorded
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import GuardConfig

STATE_TOPICS = (OFFSETS_TOPIC, "__transaction_state")
"""Compacted topics of the coordinators, cleaned all the time: what compaction removes there is most of it."""
SHARE_STATE = "__share_group_state"
"""Of a coordinator, too, which trims it itself, every five minutes and by whole segments: no cleaner keeps it short."""
STATE_DELETE_DELAY = 1.0
"""Their deletion delay while the cleaner is held (``guard.cleaner``)."""
_LOOK = 1.0
_ASK = 60.0
_ASK_LEADERS = 5.0
"""Who leads the groups' offsets, while a disk is full and commits may be refused."""
MEASURED_FOR = 150.0
"""Seconds until the rates of a volume that was not known before are complete (``AppendRates``)."""
_SHARE, _SHARE_NEAR_A_LIMIT = 100, 20
"""A look that takes long is made so many times rarer; waiting for the broker is no work."""
_UNKNOWN = CompactedTopic(segment_bytes=1 << 30, delete_delay=60.0, has_own_rhythm=False)
"""What a topic is taken for until the broker has told: unknown is not zero."""
_PATIENCE = timedelta(seconds=10)


class WritersClient(Reconnecting):
    """What is asked of the broker; every method raises ``ObservationFailed``."""

    def __init__(self, config: GuardConfig) -> None:
        super().__init__(config.admin)
        self._broker = config.node_id

    def cleaner(self) -> CleanerSettings:
        with self.connected() as connection:
            return ask_cleaner_settings(connection, self._broker, Deadline(_PATIENCE))

    def topics(self, names: Collection[str]) -> Mapping[str, CompactedTopic | None]:
        with self.connected() as connection:
            return ask_compacted_topics(connection, self._broker, names, Deadline(_PATIENCE))

    def offsets(self) -> OffsetsTopic | None:
        """``None``: there is no such topic, or it may not be described."""
        with self.connected() as connection:
            leaders = describe_topics(connection, [OFFSETS_TOPIC], Deadline(_PATIENCE))[OFFSETS_TOPIC].leaders
        led = tuple(sorted(number for number, leader in leaders.items() if leader == self._broker))
        return OffsetsTopic(partitions=len(leaders), led=led) if leaders else None


@dataclass(slots=True)
class _Known:
    """What the broker has said; ``cleaner`` is ``None`` until it has said anything."""

    cleaner: CleanerSettings | None = None
    topics: dict[str, CompactedTopic | None] = field(default_factory=dict)
    asked: float = float("-inf")


class WritersLook:
    """One look at the folders of all log dirs, with what the broker said of them. For one thread."""

    def __init__(
        self,
        client: WritersClient,
        config: Callable[[], GuardConfig],
        seconds: Callable[[], float],
        can_be_held: Callable[[], bool],
        is_held: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._config = config
        self._seconds = seconds
        self._can_be_held = can_be_held
        self._is_held = is_held
        self._known = _Known()
        self._rates = AppendRates()
        self._measured_at: float | None = None
        self._listed: dict[str, tuple[list[str], dict[str, str]]] = {}
        self.failure: Failure | None = None
        self.took = 0.0
        """Seconds that the last look took here, without waiting for the broker."""

    def look(self, volumes: Sequence[VolumeStatus]) -> dict[tuple[str, ...], UnfencedWriters]:
        """By the log dirs of each volume. Empty until the broker has answered once."""
        partitions = {path: self._partitions_in(path) for volume in volumes for path in volume.log_dirs}
        self._ask({topic for found in partitions.values() for topic in found.values()})
        if self._known.cleaner is None:
            return {}
        begun = self._seconds()
        if self._measured_at is None or self._is_held():
            self._measured_at = begun + MEASURED_FOR
        looked_at: list[str] = []
        found = {volume.log_dirs: self._of_volume(volume, partitions, looked_at) for volume in volumes}
        self._rates.forget_others(looked_at)
        self.took = self._seconds() - begun
        return found

    def close(self) -> None:
        self._client.close()

    def _partitions_in(self, log_dir: str) -> dict[str, str]:
        """Names that did not change are not read again: thousands of them, every second."""
        names = folder_names(log_dir)
        if log_dir not in self._listed or self._listed[log_dir][0] != names:
            self._listed[log_dir] = (names, _partitions(names))
        return self._listed[log_dir][1]

    def _ask(self, topics: Collection[str]) -> None:
        known, now = self._known, self._seconds()
        is_due = now - known.asked >= _ASK
        new = topics if is_due else topics - known.topics.keys()
        try:
            if is_due:
                known.cleaner = self._client.cleaner()
            if new:
                answered = self._client.topics(new)
                known.topics = {**(known.topics if not is_due else {}), **answered}
            if is_due:
                known.asked = now
            self.failure = None
        except ObservationFailed as error:
            self.failure = error.failure

    def _of_volume(
        self, volume: VolumeStatus, partitions: Mapping[str, Mapping[str, str]], looked_at: list[str]
    ) -> UnfencedWriters:
        settings, log_dirs = self._known.cleaner, volume.log_dirs
        assert settings is not None
        assert self._measured_at is not None
        now, can_be_held = self._seconds(), self._can_be_held()
        compacted, state_logs = [], []
        for log_dir in log_dirs:
            for name, topic in partitions[log_dir].items():
                rules = self._known.topics.get(topic, _UNKNOWN)
                is_state = topic in STATE_TOPICS
                if rules is None and topic != SHARE_STATE:
                    continue
                folder = os.path.join(log_dir, name)  # noqa: PTH118 (thousands of them)
                size = log_size(folder)
                if rules is not None and settings.is_enabled:
                    delay = STATE_DELETE_DELAY if is_state and can_be_held else rules.delete_delay
                    compacted.append(
                        CompactedLog(
                            bytes=size.bytes,
                            largest_segment=size.largest,
                            segment_bytes=rules.segment_bytes,
                            index_bytes=rules.index_bytes,
                            delete_delay=delay,
                            is_held=not is_state and not rules.has_own_rhythm,
                        )
                    )
                if is_state or topic == SHARE_STATE:
                    looked_at.append(folder)
                    rate = self._rates.look(folder, size, now)
                    segment_bytes = rules.segment_bytes if rules and settings.is_enabled else None
                    state_logs.append(StateLog(segment_bytes=segment_bytes, rate=rate))
        metadata = self._metadata_log(volume)
        if metadata is not None:
            looked_at.append(metadata)
        return UnfencedWriters(
            cleaner=Cleaner(
                threads=settings.threads,
                most_bytes_per_second=settings.bytes_per_second or float("inf"),
                delete_delay=settings.delete_delay,
                backoff=settings.backoff,
                can_be_held=can_be_held,
            ),
            compacted=compacted,
            state_logs=state_logs,
            index_cache_left=self._index_cache_left(settings, log_dirs),
            metadata_snapshot=largest_file(metadata, ".checkpoint") if metadata else 0,
            metadata_rate=self._rates.look(metadata, log_size(metadata), now) if metadata else 0.0,
            partitions=sum(len(partitions[path]) for path in log_dirs),
            is_moved_into=any(name.endswith(FUTURE_SUFFIX) for path in log_dirs for name in partitions[path]),
            is_measured=now >= self._measured_at,
        )

    def _metadata_log(self, volume: VolumeStatus) -> str | None:
        """Kafka keeps it in a directory of its own, or in one of the log dirs."""
        own = self._config().broker.metadata_log_dir
        dirs = [*volume.log_dirs, *([own] if own and device_of(own) == volume.reading.device else ())]
        folders = [os.path.join(path, METADATA_LOG) for path in dirs]  # noqa: PTH118
        return next((folder for folder in folders if os.path.isdir(folder)), None)  # noqa: PTH112

    def _index_cache_left(self, settings: CleanerSettings, log_dirs: Sequence[str]) -> int:
        first = self._config().broker.log_dirs[0]
        if not settings.index_cache_bytes or first not in log_dirs:
            return 0
        return max(settings.index_cache_bytes - folder_bytes(f"{first}/{REMOTE_INDEX_CACHE}"), 0)


class Reserve(Feature):
    name = "reserve"

    def __init__(self, core: Core, client: WritersClient | None = None) -> None:
        super().__init__(core)
        asked = client or WritersClient(core.config)
        self._look = WritersLook(
            asked,
            lambda: core.config,
            core.clock.seconds,
            lambda: core.can_hold_cleaner,
            lambda: core.is_cleaner_held,
        )
        self._unrecorded: NotRecorded | None = None
        self._first_seen: dict[str, tuple[float, Bytes]] = {}
        self._client = asked
        self._leaders_asked = float("-inf")
        self.workers = [Worker(self.name, self.step)]

    def step(self) -> float:
        core, reserves = self.core, self.core.reserves
        volumes = [each for each in core.disks.volumes if each.fullness is not DiskState.UNKNOWN]
        writers = self._look.look(volumes)
        if writers:
            fresh = [
                next_reserve(each, writers[each.log_dirs], reserves.of(each.log_dirs), self._most_usable(each))
                for each in volumes
            ]
            before = reserves.volumes
            seen = {path for each in fresh for path in each.log_dirs}
            unseen = [each for each in before if not seen.intersection(each.log_dirs)]
            try:
                reserves.write([*fresh, *unseen], self._offsets(volumes))
                self._unrecorded = None
            except NotRecorded as error:
                self._unrecorded = error
            if reserves.volumes != before:
                core.look_at_disks()
        core.board.put(*reserve_families(reserves.volumes, core.config.text(keys.RESERVE)))
        is_near = any(2 * (each.bytes_to_limit or 0) < (each.reading.usable_bytes or 0) for each in volumes)
        return max(_LOOK, (_SHARE_NEAR_A_LIMIT if is_near else _SHARE) * self._look.took)

    def _offsets(self, volumes: Sequence[VolumeStatus]) -> OffsetsTopic | None:
        """For the gateway, which refuses no commit that it cannot place. Without an answer what was known holds."""
        known, now = self.core.reserves.offsets, self.core.clock.seconds()
        if not self.core.config.number(keys.COMMITS_LINE):
            return None
        is_close = known is None or any(each.fullness is DiskState.FULL for each in volumes)
        if now - self._leaders_asked >= (_ASK_LEADERS if is_close else _ASK):
            with suppress(ObservationFailed):
                known = self._client.offsets()
            self._leaders_asked = now
        return known

    def _most_usable(self, volume: VolumeStatus) -> Bytes | None:
        """What a volume that was not known before has had since, while its writers are being measured."""
        path, now, usable = volume.log_dirs[0], self.core.clock.seconds(), volume.reading.usable_bytes or Bytes(0)
        if self.core.reserves.of(volume.log_dirs) is None:
            self._first_seen.setdefault(path, (now, usable))
        since, most = self._first_seen.get(path, (float("-inf"), usable))
        if now >= since + MEASURED_FOR:
            return None
        self._first_seen[path] = since, max(most, usable)
        return max(most, usable)

    @property
    def _is_off(self) -> bool:
        return self.core.config.text(keys.RESERVE) == keys.OFF

    def notices(self) -> Sequence[Notice]:
        found = []
        config = self.core.config
        if config.is_enforcing and config.number(keys.COMMITS_LINE) and self.core.reserves.offsets is None:
            found.append(
                Notice(
                    feature=self.name,
                    key="offsets",
                    weight=Weight.NOTE,
                    word="COMMITS",
                    text=f"no offset commit will be refused: the broker has not told the partitions of {OFFSETS_TOPIC}",
                    cure="it is made by the first group that commits; the guard needs DESCRIBE on it",
                )
            )
        if self._is_off:
            return found
        found += reserve_notices(self.core.disks, self.core.reserves, config)
        if self._unrecorded is not None:
            found.append(
                Notice(
                    feature=self.name,
                    key="unrecorded",
                    weight=Weight.PROBLEM,
                    word="RESERVE",
                    text=f"the gateway cannot know the reserve: {self._unrecorded.why}",
                )
            )
        return found

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        config = looked.config
        if config.text(keys.RESERVE) == keys.OFF:
            off = f"{keys.RESERVE.name}=off: what Kafka may still write after the fence is not kept free"
            yield Finding(topic="limits", weight=Weight.WARNING, sentence=off)
            return
        reserves = Reserves(config.state_dir, config.node_id, lambda: config.text(keys.RESERVE))
        reserves.refresh()
        if not reserves.volumes and looked.broker_answers:
            look = WritersLook(
                WritersClient(config), lambda: config, looked.clock.seconds, lambda: config.holds_cleaner
            )
            volumes = [each for each in looked.disks.volumes if each.fullness is not DiskState.UNKNOWN]
            writers = look.look(volumes)
            look.close()
            reserves.volumes = tuple(next_reserve(each, writers[each.log_dirs], None) for each in volumes if writers)
        for notice in reserve_notices(looked.disks, reserves, config):
            yield Finding.of(notice, "limits")


def reserve_notices(disks: DiskReport, reserves: Reserves, config: GuardConfig) -> Iterator[Notice]:
    is_on = config.text(keys.RESERVE) == keys.ON
    for volume in disks.volumes:
        reserve = reserves.of(volume.log_dirs)
        if reserve is None:
            continue
        paths = ", ".join(volume.log_dirs)
        parts = ", ".join(f"{part.what} {human_bytes(part.bytes)}" for part in reserve.parts) or "nothing"
        facts = {
            "logDirs": list(volume.log_dirs),
            "bytes": reserve.bytes,
            "parts": [{"what": part.what, "bytes": part.bytes, "why": part.why} for part in reserve.parts],
            "inForce": reserve.is_in_force or is_on,
            "fewestFiles": reserve.fewest_files,
            "filesInForce": reserve.are_files_in_force or is_on,
        }
        if sum(part.bytes for part in reserve.parts) > reserve.bytes:
            yield Notice(
                feature=Reserve.name,
                key=f"too-small {paths}",
                weight=Weight.WARNING,
                word="RESERVE",
                text=f"{paths} is too small for what Kafka may still write there after the fence ({parts}): its "
                f"reserve is half of the volume, {human_bytes(reserve.bytes)}",
                cure="give it a larger volume, or give its compacted topics a smaller segment.bytes",
                facts=facts,
            )
        pending = [
            *([human_bytes(reserve.bytes)] if not facts["inForce"] else ()),
            *([f"{human_count(reserve.fewest_files)} inodes"] if not facts["filesInForce"] else ()),
        ]
        if pending:
            yield Notice(
                feature=Reserve.name,
                key=f"pending {paths}",
                weight=Weight.WARNING,
                word="RESERVE",
                text=f"{paths} has less room than Kafka may still write after the fence ({parts}): its reserve of "
                f"{' and '.join(pending)} is not enforced",
                cure=f"make room, or fence for it now: {keys.RESERVE.name}=on in {config.path}, then SIGHUP",
                facts=facts,
            )
        else:
            yield Notice(
                feature=Reserve.name,
                key=paths,
                weight=Weight.FINE,
                word="RESERVE",
                text=f"{paths} is full below {_kept_free(volume)} usable{_inodes_kept(volume)}"
                + (f"; its reserve is {human_bytes(reserve.bytes)}: {parts}" if reserve.bytes else ""),
                facts=facts,
            )


def reserve_families(volumes: Sequence[VolumeReserve], choice: str) -> list[MetricFamily]:
    rows = [(path, volume) for volume in ([] if choice == keys.OFF else volumes) for path in volume.log_dirs]
    parts = [(path, part) for path, volume in rows for part in volume.parts]
    return [
        catalogue.RESERVE_PART.family(tuple((path, part.what) for path, part in parts), [p.bytes for _, p in parts]),
        catalogue.RESERVE_PENDING.family(
            tuple((path,) for path, _ in rows),
            [int(choice != keys.ON and not (each.is_in_force and each.are_files_in_force)) for _, each in rows],
        ),
    ]


def _kept_free(volume: VolumeStatus) -> str:
    reading, distance = volume.reading, volume.bytes_to_limit
    if reading.usable_bytes is None or distance is None:
        return human_bytes(volume.limits.reserve)
    return human_bytes(Bytes(reading.usable_bytes - distance))


def _inodes_kept(volume: VolumeStatus) -> str:
    files = volume.limits.min_free_files
    return f" or {human_count(files)} inodes ({human_count(volume.reading.usable_files or 0)} left)" if files else ""


def _partitions(names: Sequence[str]) -> dict[str, str]:
    """Folder → topic, of the replicas among these names."""
    read = ((name, read_folder_name(name)) for name in names)
    return {
        name: folder.topic
        for name, folder in read
        if folder.kind in (FolderKind.CURRENT, FolderKind.FUTURE) and folder.topic is not None
    }

"""Takes replicas in sync out of their assignments because their disk is full, and never puts them back.

**Invariant.** Who had a replica is in the ledger before the assignment is changed, so a person can put it back. It is
there until the partition's replicas are others than those that were left to it: put back, moved elsewhere, or never
taken away because the guard was killed in between. ``decide.shedding`` says what may go, by what is asked right before.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from brimline.act.ledger.entries import ShedAct, ShedEntry
from brimline.act.ledger.ledger import Ledger
from brimline.act.ledger.state import ShedRecord
from brimline.decide.admission import EXEMPT_TOPICS
from brimline.decide.shedding import Sheddable, may_shed, to_shed
from brimline.model import BrokerId, Bytes, TopicPartition
from brimline.observe.client.config import ClientConfig
from brimline.observe.client.connection import Deadline, Reconnecting
from brimline.observe.cluster.configs import describe_broker_config, describe_topic_configs
from brimline.observe.cluster.log_dirs import describe_log_dirs
from brimline.observe.cluster.reassignments import Assigned, assigned, being_reassigned, reassign

_PATIENCE = timedelta(seconds=10)
_FEWEST, _DELAY = "min.insync.replicas", "log.segment.delete.delay.ms"
_USUAL_DELAY = timedelta(minutes=1)
REFUSED_FOR = timedelta(minutes=5)
"""What was refused once is refused again, and each time stands in the ledger."""
_GONE_AFTER = timedelta(minutes=10)
"""A broker that has just begun describes nothing yet."""
LATE = timedelta(seconds=30)
"""Added to the delay of a broker's deleting; and how long what was changed may take to be seen everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdedDisk:
    """A follower's disk down to its reserve. ``partitions``: in sync there and led here → brokers with room for it."""

    follower: BrokerId
    log_dir: str
    lacking: Bytes
    partitions: Mapping[TopicPartition, frozenset[BrokerId]]
    why: str


class SheddingCluster(Protocol):
    """What is asked of the cluster; ``Assignments`` asks a real one. Methods raise ``ObservationFailed``."""

    def delete_delay(self, follower: BrokerId) -> timedelta: ...

    def look(self, disk: CrowdedDisk) -> Sequence[Sheddable]: ...

    def assigned(self, topics: Collection[str]) -> Mapping[TopicPartition, Assigned]: ...

    def reassign(self, wanted: Mapping[TopicPartition, Sequence[BrokerId]]) -> Mapping[TopicPartition, str]: ...


class Assignments(Reconnecting):
    def __init__(self, config: ClientConfig, own: BrokerId, now: Callable[[], datetime]) -> None:
        super().__init__(config)
        self._own = own
        self._now = now

    def delete_delay(self, follower: BrokerId) -> timedelta:
        with self.connected() as connection:
            config = describe_broker_config(connection, follower, [_DELAY], Deadline(_PATIENCE))
        value = config.get(_DELAY) if isinstance(config, Mapping) else None
        return timedelta(milliseconds=int(value)) if value and value.isdecimal() else _USUAL_DELAY

    def look(self, disk: CrowdedDisk) -> Sequence[Sheddable]:
        topics: dict[str, list[int]] = {}
        for partition in disk.partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        deadline = Deadline(_PATIENCE)
        with self.connected() as connection:
            told = describe_log_dirs(connection, [disk.follower], deadline, self._now, topics)[disk.follower].answer()
            configs = describe_topic_configs(connection, topics, [_FEWEST], deadline.renewed(), self._own)
            moving = being_reassigned(connection, self._own, deadline.renewed())
            known = assigned(connection, self._own, topics, deadline.renewed())
        there = told[disk.log_dir].replicas.each() if disk.log_dir in told else ()
        sizes = {partition: each.size for partition, each in there if not each.is_future}
        return [
            Sheddable(
                partition=partition,
                size=sizes[partition],
                replicas=known[partition].replicas,
                in_sync=known[partition].in_sync,
                leader=known[partition].leader,
                fewest=_number(configs.get(partition.topic)),
                is_internal=known[partition].is_internal or partition.topic in EXEMPT_TOPICS,
                is_moving=partition in moving,
            )
            for partition in disk.partitions
            if partition in sizes and partition in known
        ]

    def assigned(self, topics: Collection[str]) -> Mapping[TopicPartition, Assigned]:
        with self.connected() as connection:
            return assigned(connection, self._own, topics, Deadline(_PATIENCE))

    def reassign(self, wanted: Mapping[TopicPartition, Sequence[BrokerId]]) -> Mapping[TopicPartition, str]:
        with self.connected() as connection:
            return reassign(connection, self._own, wanted, Deadline(_PATIENCE))


class Shedding:
    """For one thread. Methods raise ``ObservationFailed`` or ``NotRecorded``; the next call goes on from there."""

    def __init__(self, cluster: SheddingCluster, ledger: Ledger, own: BrokerId, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._own = own
        self._now = now
        self._refused: dict[TopicPartition, datetime] = {}
        self._missing: dict[TopicPartition, datetime] = {}
        """Since when nobody describes them."""

    @property
    def shed(self) -> list[ShedRecord]:
        """What was taken away and is not back, the last one at the end."""
        return list(self._ledger.state.shed.values())

    def relieve(self, disk: CrowdedDisk) -> list[ShedEntry]:
        """What was taken away from it now. Nothing while reclaim is paused: a damaged ledger is a pause, too."""
        self._ledger.refresh()
        if self._ledger.pause is not None:
            return []
        since = self._now() - self._cluster.delete_delay(disk.follower) - LATE
        lately = [each.entry for each in self.shed if each.at > since]
        there = (disk.follower, disk.log_dir)
        lacking = disk.lacking - sum(each.size for each in lately if (each.follower, each.log_dir) == there)
        if lacking <= 0:
            return []
        settled = {each.partition for each in lately}
        settled |= {partition for partition, at in self._refused.items() if self._now() < at + REFUSED_FOR}
        allowed = [
            each
            for each in self._cluster.look(disk)
            if each.partition not in settled
            and may_shed(each, self._own, disk.follower, disk.partitions[each.partition])
        ]
        return self._take_away(disk, to_shed(allowed, lacking))

    def look_after(self) -> None:
        """Forget what is back, moved elsewhere or gone with its topic."""
        self._ledger.refresh()
        entries = [each.entry for each in self.shed if each.at < self._now() - LATE]
        if not entries:
            return
        known = self._cluster.assigned({each.partition.topic for each in entries})
        followers: dict[TopicPartition, set[BrokerId]] = {}
        for each in self.shed:
            followers.setdefault(each.entry.partition, set()).add(each.entry.follower)
        for entry in entries:
            now = known.get(entry.partition)
            if now is None:
                if self._now() > self._missing.setdefault(entry.partition, self._now()) + _GONE_AFTER:
                    self._ledger.append(entry.over("the topic is gone or may not be described"))
                continue
            self._missing.pop(entry.partition, None)
            if set(now.replicas) != set(entry.before) - followers[entry.partition]:
                self._ledger.append(entry.over(f"its replicas are {', '.join(map(str, now.replicas))} now"))

    def _take_away(self, disk: CrowdedDisk, chosen: Sequence[Sheddable]) -> list[ShedEntry]:
        entries = [
            ShedEntry(
                act=ShedAct.SHED,
                partition=each.partition,
                follower=disk.follower,
                log_dir=disk.log_dir,
                before=each.replicas,
                size=each.size,
                why=disk.why,
            )
            for each in chosen
        ]
        if not entries:
            return []
        self._ledger.append(*entries)
        refused = self._cluster.reassign({each.partition: each.left for each in entries})
        done = [each for each in entries if each.partition not in refused]
        if refused:
            self._refused |= dict.fromkeys(refused, self._now())
            not_done = (each for each in entries if each.partition in refused)
            self._ledger.append(*(each.over(f"the controller refused: {refused[each.partition]}") for each in not_done))
        return done


def _number(config: object) -> int | None:
    value = config.get(_FEWEST) if isinstance(config, Mapping) else None
    return int(value) if value and value.isdecimal() else None

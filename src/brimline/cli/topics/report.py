"""The one result that every rendering shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from brimline.model import BrokerId, BrokerLogDirs
from brimline.model.blast_radius import GroupsSeen
from brimline.model.topic_use import TopicSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsReport:
    """``topics``: those to show, the largest first. ``groups``: who was asked, and which are not known."""

    observed_at: datetime
    brokers: Mapping[BrokerId, BrokerLogDirs]
    topics: tuple[TopicSummary, ...]
    groups: GroupsSeen
    notes: tuple[str, ...] = ()
    include_remote_info: bool = False
    only_unread: bool = False

    @property
    def failed(self) -> list[BrokerLogDirs]:
        return [answer for answer in self.brokers.values() if answer.failure is not None]

    @property
    def offline(self) -> list[tuple[BrokerId, str]]:
        """Log dirs of which the broker tells nothing but an error: their replicas are not counted."""
        return [
            (answer.broker, path)
            for answer in self.brokers.values()
            for path, log_dir in sorted(answer.log_dirs.items())
            if log_dir.error is not None
        ]

"""``/v1/state`` put together: what there is without any feature, and the features' own members."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from brimline import __version__
from brimline.disks.task import DiskReport
from brimline.documents.codec import to_json
from brimline.documents.guard_state import (
    BrokerDocument,
    FailureDocument,
    GuardDocument,
    GuardState,
    LimitsDocument,
)
from brimline.guard.disks.published import volumes_document
from brimline.guard.percent.task import PercentReport
from brimline.settings import keys
from brimline.settings.config import GuardConfig


def guard_state(
    config: GuardConfig,
    disks: DiskReport,
    percents: PercentReport,
    members: Iterable[Mapping[str, object]],
    *,
    now: datetime,
    started_at: datetime,
    mount_points: Mapping[str, str],
    dead_tasks: Sequence[str] = (),
) -> GuardState:
    """``members``: of each feature, by the names of the fields of ``GuardState``."""
    of_features: dict[str, Any] = {name: member for each in members for name, member in each.items()}
    return GuardState(
        observed_at=now,
        guard=GuardDocument(
            version=__version__,
            started_at=started_at,
            enforcement=config.text(keys.ENFORCEMENT),
            config=config.path,
            dead_tasks=tuple(dead_tasks),
        ),
        broker=BrokerDocument(
            id=config.node_id,
            connected=percents.publishes_percentages is not None and percents.failure is None,
            publishes_percentages=percents.publishes_percentages,
            failure=FailureDocument.of(percents.failure),
        ),
        limits=LimitsDocument(
            max_used_percent=disks.limits.max_used_percent,
            min_free_bytes=disks.limits.min_free_bytes,
            release_margin_percent=disks.limits.release_margin_percent,
            retention_disk_usage_percent=config.number(keys.RETENTION_PERCENT),
            check_interval_ms=config.number(keys.CHECK_INTERVAL),
        ),
        volumes=volumes_document(disks, mount_points, enforced=config.is_enforcing),
        **of_features,
    )


def state_document(state: GuardState) -> bytes:
    return (json.dumps(to_json(state), ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")

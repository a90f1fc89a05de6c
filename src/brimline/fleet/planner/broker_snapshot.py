"""One broker as its newest snapshot with segments tells it: what a plan is made from, and the names of its rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from brimline.landing.file_systems import opened_file
from brimline.landing.header import Header
from brimline.landing.reader import Source, opened
from brimline.landing.schema import LOGS, TOPICS, VOLUMES
from brimline.landing.seal import BadSnapshot, QuarantineReason
from brimline.landing.tables import READ_OF_LOGS, READ_OF_VOLUMES, device_rows, numpy_column, tables_from
from brimline.model.reclaim import ReclaimTables
from brimline.model.scan import FolderKind, Int64Column


@dataclass(frozen=True, kw_only=True, eq=False)
class BrokerSnapshot:
    header: Header
    tables: ReclaimTables
    log_dirs: tuple[str, ...]
    log_dir_of_log: Int64Column
    """Row in ``log_dirs`` of each log."""
    device_of_log_dir: tuple[int, ...]
    """Row in the devices of each log dir. Two devices may have one name: an unreadable log dir stands alone."""
    topic_ids: tuple[str | None, ...]
    """Of each topic."""
    min_free_bytes: tuple[int | None, ...]
    max_used_percent: tuple[int | None, ...]
    """The limits of KIP-1201 for each log dir; ``None`` where no guard said any."""

    def log_dirs_of(self, device: int) -> tuple[str, ...]:
        rows = zip(self.log_dirs, self.device_of_log_dir, strict=True)
        return tuple(log_dir for log_dir, row in rows if row == device)

    @cached_property
    def current_logs(self) -> dict[tuple[str, int], int]:
        """The row of each current replica, by topic id and partition."""
        logs = self.tables.logs
        rows = np.flatnonzero((logs.kind == FolderKind.CURRENT) & (logs.topic >= 0))
        found = {}
        for row, topic, partition in zip(
            rows.tolist(), logs.topic[rows].tolist(), logs.partition[rows].tolist(), strict=True
        ):
            topic_id = self.topic_ids[topic]
            if topic_id is not None:
                found[topic_id, partition] = row
        return found


def read_broker(source: Source) -> BrokerSnapshot:
    """Raises ``BadSnapshot``."""
    with opened(source) as snapshot:
        volumes, topics = snapshot.columns(VOLUMES, READ_OF_VOLUMES), snapshot.columns(TOPICS)
        logs = snapshot.columns(LOGS, READ_OF_LOGS)
        return BrokerSnapshot(
            header=snapshot.header,
            tables=tables_from(snapshot, volumes, topics, logs),
            log_dirs=tuple(volumes["log_dir"].to_pylist()),
            log_dir_of_log=numpy_column(logs, "volume").astype(np.int64),
            device_of_log_dir=device_rows(volumes),
            topic_ids=tuple(topics["topic_id"].to_pylist()),
            min_free_bytes=tuple(volumes["min_free_bytes"].to_pylist()),
            max_used_percent=tuple(volumes["max_used_percent"].to_pylist()),
        )


def read_broker_at(path: str) -> BrokerSnapshot:
    """``path`` as the table of segment snapshots has it: a local path or a URI."""
    try:
        file = opened_file(path)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise BadSnapshot(QuarantineReason.UNREADABLE, " ".join(str(error).split())) from None
    with file:
        return read_broker(file)

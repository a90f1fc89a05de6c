"""Clusters made by hand, for renderings: the facts come in as a broker would give them."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from brimline.model import (
    BrokerId,
    BrokerLogDirs,
    Bytes,
    Failure,
    FailureKind,
    KafkaError,
    LogDirDescription,
    Reason,
    ReplicaColumns,
)

MIB = 1 << 20
GIB = 1 << 30
OBSERVED_AT = datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC)

# topic, partition, size, lag, future, remote size or reason, only-local size or reason
Row = tuple[str, int, int, int, bool, int | Reason, int | Reason]


def row(
    topic: str,
    partition: int,
    size: int,
    *,
    lag: int = 0,
    future: bool = False,
    remote: int | Reason = Reason.NOT_ASKED,
    only_local: int | Reason = Reason.NOT_ASKED,
) -> Row:
    return (topic, partition, size, lag, future, remote, only_local)


def columns(rows: Sequence[Row] = ()) -> ReplicaColumns:
    names = list(dict.fromkeys(each[0] for each in rows))

    def sizes(index: int) -> list[int]:
        return [-1 if isinstance(each[index], Reason) else int(each[index]) for each in rows]

    def reasons(index: int) -> list[int]:
        return [int(each[index]) if isinstance(each[index], Reason) else Reason.KNOWN for each in rows]

    return ReplicaColumns(
        topic_names=tuple(names),
        topic=np.array([names.index(each[0]) for each in rows], dtype=np.int32),
        partition=np.array([each[1] for each in rows], dtype=np.int32),
        size=np.array([each[2] for each in rows], dtype=np.int64),
        offset_lag=np.array([each[3] for each in rows], dtype=np.int64),
        is_future=np.array([each[4] for each in rows], dtype=np.bool_),
        remote_size=np.array(sizes(5), dtype=np.int64),
        remote_size_reason=np.array(reasons(5), dtype=np.uint8),
        only_local_size=np.array(sizes(6), dtype=np.int64),
        only_local_size_reason=np.array(reasons(6), dtype=np.uint8),
    )


def log_dir(
    path: str,
    rows: Sequence[Row] = (),
    *,
    total: int | None = None,
    usable: int | None = None,
    error: int | None = None,
    cordoned: bool | None = None,
) -> LogDirDescription:
    return LogDirDescription(
        path=path,
        error=None if error is None else KafkaError(error),
        total_bytes=None if total is None else Bytes(total),
        usable_bytes=None if usable is None else Bytes(usable),
        is_cordoned=cordoned,
        replicas=columns(rows),
    )


def broker(number: int, *log_dirs: LogDirDescription, failure: Failure | None = None) -> BrokerLogDirs:
    return BrokerLogDirs(
        broker=BrokerId(number),
        address=f"kafka-{number}.example.com:9092",
        observed_at=OBSERVED_AT,
        log_dirs={each.path: each for each in log_dirs},
        failure=failure,
    )


def by_id(*brokers: BrokerLogDirs) -> dict[BrokerId, BrokerLogDirs]:
    return {each.broker: each for each in brokers}


TIMED_OUT = Failure(kind=FailureKind.TIMED_OUT, message="broker 3 at kafka-3.example.com:9092 did not answer in 30 s")


def small_cluster() -> dict[BrokerId, BrokerLogDirs]:
    """Two brokers, three volumes (one shared), one offline log dir, a future replica, a tiered topic."""
    return by_id(
        broker(
            2,
            log_dir(
                "/data/b",
                [
                    row("orders", 10, 3 * GIB, remote=9 * GIB, only_local=GIB),
                    row("orders", 9, 3 * GIB, lag=12345, remote=9 * GIB, only_local=Reason.FOLLOWER),
                    row("audit", 0, 700 * MIB, remote=Reason.NOT_TIERED, only_local=Reason.NOT_TIERED),
                ],
                total=10 * GIB,
                usable=3 * GIB,
            ),
            log_dir("/data/a", [row("orders", 8, 512, lag=-1, future=True)], total=10 * GIB, usable=3 * GIB),
            log_dir("/data/c", error=56, total=None, usable=None),
        ),
        broker(
            1,
            log_dir(
                "/data/a",
                [row("orders", 10, 3 * GIB, remote=9 * GIB, only_local=Reason.FOLLOWER)],
                total=4 * GIB,
                usable=GIB // 4,
                cordoned=True,
            ),
        ),
    )

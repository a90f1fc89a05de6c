"""A describe worker driven as the gateway's loop drives it, and answers to feed it with."""

import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import pack

from kafka.protocol.admin import DescribeLogDirsResponse

from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.describe.job import DescribeJob
from brimline.wire.describe_log_dirs import DescribeLogDirsResponse as Decoded
from brimline.wire.describe_log_dirs import decode_layout
from brimline.wire.describe_log_dirs_request import AskedLogDirs, Layout
from tests.waiting import eventually

Result = DescribeLogDirsResponse.DescribeLogDirsResult
ResultTopic = Result.DescribeLogDirsTopic
ResultPartition = ResultTopic.DescribeLogDirsPartition


def drive(worker: DescribeWorker, until: Callable[[], bool]) -> None:
    poller = select.poll()
    poller.register(worker.fileno(), select.POLLIN)

    def is_done_after_a_round() -> bool:
        if until():
            return True
        deadline = worker.next_deadline
        pause = 0.1 if deadline is None else min(max(deadline - time.monotonic(), 0), 0.1)
        if poller.poll(pause * 1000):
            worker.on_event()
        worker.on_time()
        return until()

    eventually(is_done_after_a_round, pause=0)


def log_dir(path: Path | str, *, error: int = 0, partitions: int = 1, total: int = -1, usable: int = -1) -> object:
    rows = [
        ResultPartition(partition_index=index, partition_size=10, offset_lag=0, is_future_key=False)
        for index in range(partitions)
    ]
    topics = [ResultTopic(name="topic", partitions=rows)] if partitions else []
    described: object = Result(
        error_code=error, log_dir=str(path), topics=topics, total_bytes=total, usable_bytes=usable
    )
    return described


def payload(log_dirs: Sequence[object], version: int, error: int = 0) -> bytes:
    answer = DescribeLogDirsResponse(throttle_time_ms=0, error_code=error, results=list(log_dirs))
    header = pack(">i", 7) + (b"\0" if version >= 2 else b"")
    return header + bytes(answer.encode(version=version))


def job(
    log_dirs: Sequence[object], version: int, asked: Layout, *, error: int = 0, remote: bool = False
) -> DescribeJob:
    wanted = AskedLogDirs(layout=asked, include_remote_info=remote, explain=remote)
    return DescribeJob(payload=payload(log_dirs, version, error), version=version, asked=wanted)


def decoded(answer: bytes | None, layout: Layout) -> Decoded:
    assert answer is not None
    assert answer[:5] == pack(">i", 7) + b"\0"
    return decode_layout(answer[5:], layout)

"""What watching each other's disks costs a cluster of 150 brokers with 4,000 partitions each, by simulation.

150 guards run the task that real guards run, on a clock that is ticked, against brokers that answer at once. Requests
and answers are encoded as on the wire (version 4, with frames and headers), and their bytes are counted. Beside it
stands what the obvious way would cost: each guard asking every broker for all its replicas in every check.

``python -m bench.followers`` prints it.
"""

import random
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bench.ratio import AgainstGoal
from brimline.decide.disk_state import DiskLimits
from brimline.decide.fill_rate import Pace
from brimline.guard.followers.client import Remembered
from brimline.guard.followers.report import PeerReport
from brimline.guard.followers.task import FollowerTask
from brimline.model import BrokerId, BrokerLogDirs, Bytes, LogDirDescription
from brimline.observe.cluster.log_dirs import Followed, LedTopic
from brimline.wire.describe_log_dirs import decode_response
from brimline.wire.describe_log_dirs_request import encode_request

BROKERS, PARTITIONS, REPLICAS = 150, 4_000, 3
LOG_DIRS = ("/var/lib/kafka/data-0", "/var/lib/kafka/data-1")
PARTITIONS_OF_A_TOPIC = 12
INTERVAL, MINUTES = 60.0, 3
TOTAL = 4 << 40
OBSERVED = datetime(2026, 1, 1, tzinfo=UTC)
SHARED = PARTITIONS * (REPLICAS - 1) // (BROKERS - 1)
"""Partitions of a broker that any one other broker has a replica of."""
LED_OF_THEM = SHARED // REPLICAS
_FRAME, _REQUEST_HEADER, _RESPONSE_HEADER = 4, 2 + 2 + 4 + 2 + len("brimline") + 1, 4 + 1
_VERSION, _METADATA_VERSION = 4, 12


@dataclass(slots=True)
class Traffic:
    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, calls: int, size: int) -> None:
        self.calls[kind] += calls
        self.bytes[kind] += size


class Clock:
    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> datetime:
        return OBSERVED

    def seconds(self) -> float:
        return self._seconds

    def set(self, seconds: float) -> None:
        self._seconds = seconds


class SimulatedCluster:
    """What one guard is answered; ``full`` brokers have no room on their first volume."""

    def __init__(self, traffic: Traffic, full: Collection[BrokerId]) -> None:
        self._traffic = traffic
        self._full = full

    def brokers(self) -> Collection[BrokerId]:
        self._traffic.add("brokers", 1, metadata_size(topics=0))
        return [BrokerId(number) for number in range(BROKERS)]

    def volumes(self, brokers: Iterable[BrokerId]) -> Mapping[BrokerId, BrokerLogDirs]:
        answers = {}
        for broker in brokers:
            size, log_dirs = volumes_answer(is_full=broker in self._full)
            self._traffic.add("volumes", 1, size)
            answers[broker] = BrokerLogDirs(broker=broker, address="", observed_at=OBSERVED, log_dirs=log_dirs)
        return answers

    def followed(self, full: Mapping[BrokerId, Collection[str]], _remembered: Remembered) -> Followed:
        own = describe_size(encode_request(_VERSION, None), replicas_answer(PARTITIONS))
        self._traffic.add("details", 1, own)
        for _ in full:
            self._traffic.add("details", 1, describe_size(held_request(), replicas_answer(SHARED)))
        self._traffic.add("details", 1, metadata_size(topics=SHARED // 2))
        led = (LedTopic(name="payments.orders.v1", topic_id=None, partitions=tuple(range(LED_OF_THEM))),)
        return dict.fromkeys(full, led)


def describe_size(request: bytes, answer: bytes) -> int:
    return _FRAME + _REQUEST_HEADER + len(request) + _FRAME + _RESPONSE_HEADER + len(answer)


@cache
def held_request() -> bytes:
    topics = PARTITIONS // PARTITIONS_OF_A_TOPIC
    held = {f"payments.orders.v1-{number}": list(range(PARTITIONS_OF_A_TOPIC)) for number in range(topics)}
    return encode_request(_VERSION, held)


@cache
def volumes_answer(*, is_full: bool) -> tuple[int, Mapping[str, LogDirDescription]]:
    """Bytes of the question and the answer, and what it says."""
    body = _encoded([(path, 0, TOTAL // 100 if is_full and not n else TOTAL // 2) for n, path in enumerate(LOG_DIRS)])
    log_dirs = {each.path: each for each in decode_response(body, _VERSION).log_dirs}
    return describe_size(encode_request(_VERSION, {}), body), log_dirs


@cache
def replicas_answer(partitions: int) -> bytes:
    return _encoded([(path, partitions // len(LOG_DIRS), TOTAL // 2) for path in LOG_DIRS])


def _encoded(log_dirs: list[tuple[str, int, int]]) -> bytes:
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = result.DescribeLogDirsTopic
    partition = topic.DescribeLogDirsPartition
    answer = DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=0,
        results=[
            result(
                error_code=0,
                log_dir=path,
                topics=[
                    topic(
                        name=f"payments.orders.v1-{number}",
                        partitions=[
                            partition(partition_index=index, partition_size=1 << 30, offset_lag=0, is_future_key=False)
                            for index in range(PARTITIONS_OF_A_TOPIC)
                        ],
                    )
                    for number in range(partitions // PARTITIONS_OF_A_TOPIC)
                ],
                total_bytes=TOTAL,
                usable_bytes=usable,
            )
            for path, partitions, usable in log_dirs
        ],
    )
    encoded: bytes = answer.encode(version=_VERSION)
    return encoded


@cache
def metadata_size(topics: int) -> int:
    wanted = [MetadataRequest.MetadataRequestTopic(name=f"payments.orders.v1-{number}") for number in range(topics)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    of_topic = MetadataResponse.MetadataResponseTopic
    of_partition = of_topic.MetadataResponsePartition
    answer = MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            MetadataResponse.MetadataResponseBroker(n, f"broker-{n}.kafka.example.org", 9092, "rack-1")
            for n in range(BROKERS)
        ],
        cluster_id="a" * 22,
        controller_id=1,
        topics=[
            of_topic(
                error_code=0,
                name=each.name,
                is_internal=False,
                partitions=[
                    of_partition(
                        error_code=0,
                        partition_index=index,
                        leader_id=1,
                        leader_epoch=1,
                        replica_nodes=[1, 2, 3],
                        isr_nodes=[1, 2, 3],
                        offline_replicas=[],
                    )
                    for index in range(PARTITIONS_OF_A_TOPIC)
                ],
            )
            for each in wanted
        ],
    )
    sizes = len(request.encode(version=_METADATA_VERSION)), len(answer.encode(version=_METADATA_VERSION))
    return _FRAME + _REQUEST_HEADER + sizes[0] + _FRAME + _RESPONSE_HEADER + sizes[1]


def simulated(full: Collection[BrokerId]) -> Traffic:
    """All guards, for some minutes after a first one, in which each gets to know the others."""
    traffic = Traffic()
    for number in range(BROKERS):
        counted = Traffic()
        clock, chance = Clock(), random.Random(number)
        task = FollowerTask(
            BrokerId(number),
            SimulatedCluster(counted, full),
            clock,
            lambda: DiskLimits(max_used_percent=95, min_free_bytes=Bytes(0)),
            lambda: Pace(interval=INTERVAL),
            chance.random,
            _ignored,
        )
        is_known = False
        while clock.seconds() < (MINUTES + 1) * 60:
            if not is_known and clock.seconds() >= 60:
                counted.calls.clear()
                counted.bytes.clear()
                is_known = True
            clock.set(clock.seconds() + task.step())
        traffic.calls += counted.calls
        traffic.bytes += counted.bytes
    return traffic


def _ignored(_report: PeerReport) -> None:
    return


def figures() -> Iterator[AgainstGoal]:
    obvious = BROKERS * (BROKERS - 1) * describe_size(encode_request(_VERSION, None), replicas_answer(PARTITIONS))
    yield AgainstGoal(what="the obvious way: all replicas of all brokers, cluster", unit="MB/min", ours=obvious / 1e6)
    for what, full in (("calm", ()), ("one broker full", (BrokerId(7),))):
        traffic = simulated(full)
        calls, size = sum(traffic.calls.values()) / MINUTES, sum(traffic.bytes.values()) / MINUTES
        yield AgainstGoal(what=f"{what}: calls, cluster", unit="calls/min", ours=calls)
        yield AgainstGoal(what=f"{what}: bytes both ways, cluster", unit="MB/min", ours=size / 1e6)
        yield AgainstGoal(what=f"{what}: bytes both ways, each broker", unit="kB/s", ours=size / BROKERS / 60 / 1e3)
        for kind in sorted(traffic.calls):
            yield AgainstGoal(what=f"{what}: {kind}, cluster", unit="calls/min", ours=traffic.calls[kind] / MINUTES)


if __name__ == "__main__":
    for figure in figures():
        print(figure.row(), flush=True)
    sys.exit(0)

"""100,000 partitions in one DescribeLogDirs answer: columns against kafka-python's objects."""

from collections.abc import Iterator
from functools import partial

from kafka.protocol.admin import DescribeLogDirsResponse

from bench.ratio import Comparison, compare_calls
from brimline.wire.describe_log_dirs import decode_response

PARTITIONS = 100_000
TOPIC_COUNTS = (100, 1_000, 20_000)
VERSION = 4
ROUNDS = 9


def comparisons() -> Iterator[Comparison]:
    for topics in TOPIC_COUNTS:
        answer = encoded(topics, PARTITIONS // topics)
        theirs = DescribeLogDirsResponse.decode(answer, version=VERSION)
        ours = decode_response(answer, VERSION)
        decoded = sum(len(topic.partitions) for log_dir in theirs.results for topic in log_dir.topics)
        if decoded != sum(len(log_dir.replicas) for log_dir in ours.log_dirs):
            raise RuntimeError("the two decoders disagree")
        yield compare_calls(
            f"decode {PARTITIONS:,} partitions of {topics:,} topics",
            partial(DescribeLogDirsResponse.decode, answer, version=VERSION),
            partial(decode_response, answer, VERSION),
            ROUNDS,
        )


def encoded(topics: int, partitions: int) -> bytes:
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = result.DescribeLogDirsTopic
    partition = topic.DescribeLogDirsPartition
    answer = DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=0,
        results=[
            result(
                error_code=0,
                log_dir="/var/lib/kafka/data",
                topics=[
                    topic(
                        name=f"payments.orders.v1-{number}",
                        partitions=[
                            partition(
                                partition_index=index, partition_size=index * 1000, offset_lag=0, is_future_key=False
                            )
                            for index in range(partitions)
                        ],
                    )
                    for number in range(topics)
                ],
                total_bytes=1 << 40,
                usable_bytes=1 << 39,
            )
        ],
    )
    return bytes(answer.encode(version=VERSION))

"""kafkajs is known by its requests, and nobody else is taken for it."""

from collections.abc import Callable

import pytest

from brimline.wire.kafkajs import is_kafkajs
from brimline.wire.produce import index_produce
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request

IDEMPOTENT = batch(producer_id=5, producer_epoch=0, base_sequence=3)
PLAIN = batch(producer_id=-1, producer_epoch=0, base_sequence=0)
PLAIN_OF_OTHERS = batch()


def with_leader_epoch(records: bytes, epoch: int) -> bytes:
    return records[:12] + epoch.to_bytes(4, signed=True) + records[16:]


def judged(*records: bytes, version: int = 7, timeout_ms: int = 30_000, asked_api_versions: int | None = None) -> bool:
    partitions = [Partition(number, each) for number, each in enumerate(records)]
    asked = PlainRequest(topics=[PlainTopic("t", None, partitions)] if records else [], timeout_ms=timeout_ms)
    payload = memoryview(encoded_request(asked, version))
    return is_kafkajs(payload, index_produce(payload, version), asked_api_versions)


@pytest.mark.parametrize("records", [IDEMPOTENT, PLAIN])
@pytest.mark.parametrize("asked_api_versions", [None, 2])
def test_kafkajs(records: bytes, asked_api_versions: int | None) -> None:
    assert judged(records, records, asked_api_versions=asked_api_versions)


@pytest.mark.parametrize(
    "other",
    [
        lambda: judged(),
        lambda: judged(IDEMPOTENT, version=6),
        lambda: judged(IDEMPOTENT, version=8),
        lambda: judged(PLAIN, PLAIN_OF_OTHERS),
        lambda: judged(IDEMPOTENT, asked_api_versions=0),
        lambda: judged(PLAIN_OF_OTHERS, asked_api_versions=0),
        lambda: judged(with_leader_epoch(IDEMPOTENT, -1), asked_api_versions=2),
        lambda: judged(IDEMPOTENT, timeout_ms=10_000),
        lambda: judged(IDEMPOTENT, asked_api_versions=3),
    ],
    ids=["nothing", "older", "newer", "two kinds", "aiokafka", "aiokafka, plain", "Java 2.1", "sarama", "named"],
)
def test_others(other: Callable[[], bool]) -> None:
    assert not other()

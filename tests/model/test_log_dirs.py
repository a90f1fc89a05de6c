"""Replicas as columns, and the same facts one object at a time under the KIPs' names."""

import pytest

from brimline.model import KafkaError, ObservationFailed, Reason, ReplicaInfo, TopicPartition
from tests.cli.log_dirs.clusters import TIMED_OUT, broker, columns, log_dir, row

ROWS = [
    row("b", 1, 10, lag=3, remote=5, only_local=Reason.FOLLOWER),
    row("a", 0, 20, future=True),
    row("b", 0, 30, remote=0, only_local=0),
]


def test_rows_are_replica_infos_with_none_for_unknown() -> None:
    infos = log_dir("/d", ROWS).replica_infos

    assert infos[TopicPartition("b", 1)] == ReplicaInfo(
        size=infos[TopicPartition("b", 1)].size,
        offset_lag=3,
        is_future=False,
        remote_size=infos[TopicPartition("b", 1)].remote_size,
        only_local_size=None,
        remote_size_reason=Reason.KNOWN,
        only_local_size_reason=Reason.FOLLOWER,
    )
    assert (infos[TopicPartition("b", 1)].size, infos[TopicPartition("b", 1)].remote_size) == (10, 5)
    not_asked = infos[TopicPartition("a", 0)]
    assert not_asked.is_future
    assert (not_asked.remote_size, not_asked.only_local_size) == (None, None)
    assert not_asked.remote_size_reason is not_asked.only_local_size_reason is Reason.NOT_ASKED


def test_zero_is_known() -> None:
    info = columns(ROWS).replica_info(2)

    assert (info.remote_size, info.only_local_size) == (0, 0)


def test_numbers_are_plain_ints() -> None:
    info = columns(ROWS).replica_info(0)

    assert [type(value) for value in (info.size, info.offset_lag, info.remote_size)] == [int, int, int]


def test_only_topics_keeps_order_and_facts() -> None:
    kept = columns(ROWS).only_topics(frozenset({"b", "unknown"}))

    assert list(kept.each()) == [pair for pair in columns(ROWS).each() if pair[0].topic == "b"]
    assert len(columns().only_topics(frozenset({"b"}))) == 0


def test_replica_bytes_are_the_sum() -> None:
    assert log_dir("/d", ROWS).replica_bytes == 60
    assert log_dir("/d").replica_bytes == 0


def test_an_answer_is_the_log_dirs_or_the_failure() -> None:
    assert list(broker(1, log_dir("/d")).answer()) == ["/d"]
    with pytest.raises(ObservationFailed, match="did not answer") as failed:
        broker(3, failure=TIMED_OUT).answer()
    assert failed.value.failure is TIMED_OUT


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_label_and_a_sentence(reason: Reason) -> None:
    assert reason.label == reason.label.lower()
    assert reason.sentence


def test_an_error_has_its_java_class_even_when_unknown() -> None:
    assert KafkaError(56).java_class == "org.apache.kafka.common.errors.KafkaStorageException"
    assert (KafkaError(999).name, KafkaError(999).java_class) == (
        "ERROR_999",
        "org.apache.kafka.common.errors.UnknownServerException",
    )

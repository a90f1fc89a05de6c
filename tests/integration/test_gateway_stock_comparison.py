"""The same disks and the same data without a gateway: a stock broker does not live through it.

Whoever makes the volumes larger, or the load smaller, until nothing can go wrong, fails here.
"""

import pytest
from confluent_kafka import KafkaError, Message, Producer

from brimline.sandbox import Sandbox
from tests.integration.cluster import eventually
from tests.integration.full_disks import create_topic_in, log_dir_errors, signs_of_death, two_disks

pytestmark = pytest.mark.integration

KAFKA_STORAGE_ERROR = 56


def test_stock_kafka_loses_a_full_log_dir_and_then_its_life() -> None:
    with Sandbox(two_disks("4.3.1", fronted=False)) as sandbox:
        with_metadata, other = sandbox.broker(1).log_dirs
        create_topic_in(sandbox, "dies-last", with_metadata)
        create_topic_in(sandbox, "dies-first", other)

        write_without_end(sandbox, "dies-first")
        eventually(lambda: log_dir_errors(sandbox)[str(other)] == KAFKA_STORAGE_ERROR)
        complaints = signs_of_death(sandbox)
        assert sandbox.broker(1).is_running

        write_without_end(sandbox, "dies-last")
        eventually(lambda: not sandbox.broker(1).is_running)

        assert any("No space left" in line for line in complaints)
        assert sandbox.broker(1).exit_code == 1


def write_without_end(sandbox: Sandbox, topic: str) -> None:
    """Until a record cannot be stored."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": sandbox.bootstrap_servers,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 8 * 1024,
            "delivery.timeout.ms": 3000,
            "log_level": 0,
        }
    )
    while not failures:
        try:
            producer.produce(topic, b"x" * 8000, partition=0, on_delivery=delivered)
        except BufferError:  # as many as it takes are under way
            producer.poll(0.1)
        producer.poll(0)
    producer.purge()
    producer.flush(1)

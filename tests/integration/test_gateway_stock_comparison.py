"""The same disks and the same data without a gateway: a stock broker does not live through it.

Whoever makes the volumes larger, or the load smaller, until nothing can go wrong, fails here.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Producer

from brimline.sandbox import Sandbox
from tests.integration.full_disks import create_topic_in, log_dir_errors, signs_of_death, two_disks
from tests.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.long]

KAFKA_STORAGE_ERROR = 56


def test_stock_kafka_loses_a_full_log_dir_and_then_its_life() -> None:
    with Sandbox(two_disks("4.3.1", fronted=False)) as sandbox:
        with_metadata, other = sandbox.broker(1).log_dirs
        create_topic_in(sandbox, "dies-last", with_metadata)
        create_topic_in(sandbox, "dies-first", other)

        write_until(lambda: log_dir_errors(sandbox)[str(other)] == KAFKA_STORAGE_ERROR, sandbox, "dies-first")
        complaints = signs_of_death(sandbox)
        assert sandbox.broker(1).is_running

        write_until(lambda: not sandbox.broker(1).is_running, sandbox, "dies-last")

        assert any("No space left" in line for line in complaints)
        assert sandbox.broker(1).exit_code == 1


def write_until(condition: Callable[[], bool], sandbox: Sandbox, topic: str) -> None:
    """As much as the broker takes, and then what it does not take."""
    producer = Producer(
        {
            "bootstrap.servers": sandbox.bootstrap_servers,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 8 * 1024,
            "log_level": 0,
        }
    )

    def is_met_after_more() -> bool:
        """As many as the producer takes are under way."""
        with suppress(BufferError):
            while True:
                producer.produce(topic, b"x" * 8000, partition=0)
        producer.poll(0)
        return condition()

    eventually(is_met_after_more)
    producer.purge()
    producer.flush(1)

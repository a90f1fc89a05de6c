"""kafka-python's clients for the length of a block: made, watched and closed here. Their end raises nothing.

Its producer waits for what is on its way when it is closed, raises when that takes too long, and raises once more when
it is collected. Here it is ended first: whoever wants something stored has waited for it before.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

PATIENCE_SECONDS = 240.0
_PATIENCE_MS = int(PATIENCE_SECONDS * 1000)
_PATIENT = {"bootstrap_timeout_ms": _PATIENCE_MS}


@contextmanager
def kafka_producer(servers: str, **settings: Any) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=servers, **{**_PATIENT, "delivery_timeout_ms": _PATIENCE_MS, **settings})
    try:
        yield producer
    finally:
        # What is on its way fails now: then there is nothing that closing could wait for.
        producer._sender.force_close()
        producer._sender.join(PATIENCE_SECONDS)
        producer.close(timeout=0)


@contextmanager
def kafka_consumer(servers: str, *topics: str, **settings: Any) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(*topics, bootstrap_servers=servers, **{**_PATIENT, **settings})
    try:
        # One that joins its group before it knows its topics joins twice, and if a poll's time is up while it does so
        # for the second time, it never looks at what it was assigned.
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not all(consumer.partitions_for_topic(topic) for topic in topics):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{servers} do not know all of {', '.join(topics)}")
            time.sleep(0.1)
        yield consumer
    finally:
        consumer.close()


@contextmanager
def kafka_admin(servers: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=_PATIENCE_MS, **_PATIENT)
    try:
        yield client
    finally:
        client.close()

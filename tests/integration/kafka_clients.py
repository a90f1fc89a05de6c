"""kafka-python's clients for the length of a block: made, watched and closed here. Their end fails no test.

Its producer waits for what is on its way when it is closed, raises when that takes too long, and raises once more when
it is collected. Here it is ended first: what a test wants to be stored it has waited for before.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from tests.waiting import PATIENCE_SECONDS

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


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[threading.Thread]:
    """``work`` runs in a thread until the block ends and its event is set; what it raised fails the test, here.

    A helper that died early would let a test pass that saw nothing: the block asks ``is_alive`` where that matters.
    """
    stop, failures = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            work(stop)
        except BaseException as failure:  # noqa: BLE001  raised below, where the test sees it
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive(), "the helper did not end"
    if failures:
        raise failures[0]

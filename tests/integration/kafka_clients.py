"""kafka-python's clients for the length of a block, and what goes on meanwhile. Their end fails no test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from brimline.torture.kafka_clients import kafka_admin as kafka_admin
from brimline.torture.kafka_clients import kafka_consumer as kafka_consumer
from brimline.torture.kafka_clients import kafka_producer as kafka_producer
from tests.waiting import PATIENCE_SECONDS


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

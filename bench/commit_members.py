"""Members of groups in Python, for ``bench.commits``: what they read and what their application is told, in JSON lines.

``python -m bench.commit_members LIBRARY sync|auto SERVERS TOPIC GROUP MEMBERS``, until the end of its input. With
``sync`` each commits after every poll with records.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError as AiokafkaError  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaException
from kafka import KafkaConsumer
from kafka.errors import KafkaError


def _say(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")  # in one piece: members are threads
    sys.stdout.flush()


def _tried(commit: Callable[[], object], member: int) -> None:
    began = time.monotonic()
    try:
        commit()
    except (KafkaError, KafkaException) as error:
        _failed(error, member, began)


def _failed(error: Exception, member: int, began: float) -> None:
    name = error.args[0].name() if isinstance(error, KafkaException) else type(error).__name__
    _say(uncommitted=member, error=name, text=str(error)[:100], milliseconds=int((time.monotonic() - began) * 1000))


def _kafka_python(servers: str, topic: str, group: str, member: int, stop: threading.Event, *, auto: bool) -> None:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=servers, group_id=group, enable_auto_commit=auto, auto_offset_reset="earliest"
    )
    while not stop.is_set():
        found = [record for records in consumer.poll(timeout_ms=100).values() for record in records]
        for record in found:
            _say(consumed=record.value.decode(), member=member)
        if found and not auto:
            _tried(consumer.commit, member)
    consumer.close()


def _librdkafka(servers: str, topic: str, group: str, member: int, stop: threading.Event, *, auto: bool) -> None:
    settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": auto, "log_level": 0})
    consumer.subscribe([topic])
    while not stop.is_set():
        found = [each for each in consumer.consume(100, 0.1) if each.error() is None]
        for record in found:
            _say(consumed=(record.value() or b"").decode(), member=member)
        if found and not auto:
            _tried(lambda: consumer.commit(asynchronous=False), member)
    consumer.close()


def _aiokafka(servers: str, topic: str, group: str, member: int, stop: threading.Event, *, auto: bool) -> None:
    async def run() -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, enable_auto_commit=auto, auto_offset_reset="earliest"
        )
        await consumer.start()
        while not stop.is_set():
            found = [each for records in (await consumer.getmany(timeout_ms=100)).values() for each in records]
            for record in found:
                _say(consumed=record.value.decode(), member=member)
            if found and not auto:
                began = time.monotonic()
                try:
                    await consumer.commit()
                except AiokafkaError as error:
                    _failed(error, member, began)
        await consumer.stop()

    asyncio.run(run())


LIBRARIES = {"kafka-python": _kafka_python, "librdkafka": _librdkafka, "aiokafka": _aiokafka}


def main(library: str, mode: str, servers: str, topic: str, group: str, members: str) -> None:
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=LIBRARIES[library], args=(servers, topic, group, number, stop), kwargs={"auto": mode == "auto"}
        )
        for number in range(int(members))
    ]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])

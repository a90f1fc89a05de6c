"""The demo's producer: numbered records of 10 kB at a steady pace, in a process of its own, as services are.

It prints how many were acknowledged. A line on standard input ends it after all are, the end of input at once.
"""

import os
import sys
import threading

from confluent_kafka import Producer

RECORD_BYTES = 10_000
_TICK = 0.1


def main() -> int:
    servers, topic, a_second = sys.argv[1], sys.argv[2], int(sys.argv[3])
    # What is refused is tried again, in its order, and holds up the rest.
    patient = {"enable.idempotence": True, "message.timeout.ms": 600_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": servers, **patient})
    ended, acknowledged, sent = threading.Event(), 0, 0

    def listen() -> None:
        if not sys.stdin.readline():
            os._exit(0)
        ended.set()

    def count(error: object, _message: object) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    threading.Thread(target=listen, daemon=True).start()
    while not ended.wait(_TICK):
        producer.poll(0)
        at_once = int(a_second * _TICK)
        for _ in range(min(at_once, acknowledged + 4 * at_once - sent)):
            producer.produce(topic, b"%-*d" % (RECORD_BYTES, sent), partition=0, on_delivery=count)
            sent += 1
        print(acknowledged, flush=True)
    producer.flush()
    print(acknowledged, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

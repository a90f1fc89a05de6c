"""The demo's producer: numbered records of 1,000 bytes at a steady pace, until standard input ends.

Every line on standard input is answered with the number of acknowledged records; the last line is the final number.
Client defaults, but for a small batch and a longer patience: an idempotent producer that retries what was refused.
"""

import os
import sys
import threading
from itertools import count

from kafka import KafkaProducer

_TICK = 0.02


def main() -> int:
    servers, topic, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=5, batch_size=64_000, delivery_timeout_ms=600_000)
    acknowledged = count()
    ended = threading.Event()
    total = [0]

    def noted(_metadata: object) -> None:
        total[0] = next(acknowledged) + 1

    def answer() -> None:
        while os.read(0, 1):
            print(total[0], flush=True)
        ended.set()

    threading.Thread(target=answer, daemon=True).start()
    sent = 0
    while not ended.wait(_TICK):
        # Like a service that waits for its answers: what is refused holds up what follows.
        for _ in range(min(int(rate * _TICK), total[0] + rate - sent)):
            producer.send(topic, b"%-1000d" % sent, partition=0).add_callback(noted)
            sent += 1
    producer.flush()
    print(total[0], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

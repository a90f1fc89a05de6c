"""What every producing client shares: its options, its pace, its report.

Options: ``--bootstrap-servers``, ``--topic``, ``--partitions 0,1`` (used in turn), ``--rate`` (records per second),
``--count`` (default: until told to stop), ``--name``, ``--value-bytes`` (pad with blanks up to this size) and any
number of ``--property key=value`` in the client library's own names. ``--tell-sends yes``: a line for every record
before it is handed to the client.

Record number n has the value ``<name>-<partition>-<n>``. One JSON object per line comes out:

    {"sent": n, "at": seconds since 1970}                it is about to be handed to the client
    {"acked": n, "partition": p, "offset": o}            the application was told that it is stored; -1: not where
    {"failed": n, "error": "Name", "text": "…"}          the client told the application that it gave up
    {"done": {"sent": …, "acked": …, "failed": …}}       last line, after a flush

SIGTERM or the end of standard input (whoever started it is gone) means: send no more, flush, report, end.
"""

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    bootstrap_servers: str
    topic: str
    partitions: tuple[int, ...]
    rate: float
    count: int | None
    name: str
    value_bytes: int
    tells_sends: bool
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    number: int
    partition: int
    value: bytes


def parse_options() -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--name", required=True)
    parser.add_argument("--value-bytes", type=int, default=0)
    parser.add_argument("--tell-sends", choices=("yes", "no"), default="no")
    parser.add_argument("--property", action="append", default=[])
    given = parser.parse_args()
    return Options(
        bootstrap_servers=given.bootstrap_servers,
        topic=given.topic,
        partitions=tuple(map(int, given.partitions.split(","))),
        rate=given.rate,
        count=given.count,
        name=given.name,
        value_bytes=given.value_bytes,
        tells_sends=given.tell_sends == "yes",
        properties=dict(each.split("=", 1) for each in given.property),
    )


def typed(properties: dict[str, str]) -> dict[str, object]:
    """Keyword arguments for libraries that want numbers as numbers: ``5``, ``true``; what is no JSON is a text."""
    arguments: dict[str, object] = {}
    for key, value in properties.items():
        try:
            arguments[key] = json.loads(value)
        except json.JSONDecodeError:
            arguments[key] = value
    return arguments


def asked_to_stop() -> threading.Event:
    """Set by SIGTERM and by the end of our input."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def wait_for_the_end_of_input() -> None:
        # Not sys.stdin: its lock, held in here for ever, would break the interpreter's own end
        while os.read(0, 4096):
            pass
        stop.set()

    threading.Thread(target=wait_for_the_end_of_input, daemon=True).start()
    return stop


def due_records(options: Options) -> Iterator[tuple[float, Record]]:
    """Every record with the time (seconds since the first) at which it is due."""
    number = 0
    while options.count is None or number < options.count:
        partition = options.partitions[number % len(options.partitions)]
        value = f"{options.name}-{partition}-{number}".ljust(options.value_bytes)
        yield number / options.rate, Record(number, partition, value.encode())
        number += 1


def paced_records(options: Options, stop: threading.Event) -> Iterator[Record]:
    """The records, each when it is due; late ones at once, so that a pause is made up for."""
    start = time.monotonic()
    for due, record in due_records(options):
        if stop.wait(max(0.0, start + due - time.monotonic())):
            return
        yield record


class Report:
    """The lines that come out; any thread may report."""

    def __init__(self, options: Options) -> None:
        self._tells_sends = options.tells_sends
        self._lock = threading.Lock()
        self._acked = 0
        self._failed = 0

    def sent(self, number: int) -> None:
        if self._tells_sends:
            with self._lock:
                _say({"sent": number, "at": time.time()})

    def acked(self, number: int, partition: int, offset: int) -> None:
        with self._lock:
            self._acked += 1
            _say({"acked": number, "partition": partition, "offset": offset})

    def failed(self, number: int, error: str, text: str) -> None:
        with self._lock:
            self._failed += 1
            _say({"failed": number, "error": error, "text": text})

    def done(self, sent: int) -> None:
        with self._lock:
            _say({"done": {"sent": sent, "acked": self._acked, "failed": self._failed}})


def _say(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)

"""What deciding costs a guard: 40,000 segments of a real broker, surveyed and planned, against ``du -s``.

A survey scans the files with their timestamps, asks the broker for sizes, topics, configurations and three kinds of
offsets of every partition, and plans. The segments are put under a stopped broker: one that was
stopped cleanly believes what lies there. A broker holds every segment's log open, and may not open 40,000 files here:
so it is shown every fifth segment, and the others, which are empty, are added when it runs.

``python -m bench.reclaim_cycle`` prints it.
"""

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.record import MemoryRecordsBuilder

from bench.ratio import Comparison, compare_calls
from brimline.guard.broker_client import BrokerClient
from brimline.guard.reclaim.survey import ReclaimSurvey, Surveyor
from brimline.model import BrokerId, Bytes
from brimline.model.reclaim import ReclaimPolicy
from brimline.observe.client.config import ClientConfig
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.service.clock import SystemClock

TOPICS, PARTITIONS, SEGMENTS = 20, 100, 20
CHANGED_FOLDERS = TOPICS * PARTITIONS // 100
BROKER_KNOWS_EVERY = 5
ROUNDS = 7
PATIENCE = 60.0
AN_HOUR = 3600.0
RECORDS_PER_SEGMENT = 1000
VALUE_BYTES = 4000
SPEC = SandboxSpec(volumes=(VolumeSpec(size=Bytes(4 << 30)),), heap=Bytes(1 << 30))
ALL = ReclaimPolicy(ceiling_percent=0)


def comparisons() -> Iterator[Comparison]:
    with Sandbox(SPEC) as sandbox:
        log_dir = sandbox.outside(sandbox.broker(1).log_dirs[0])
        make_topics(sandbox)
        sandbox.broker(1).stop()
        for folder in sorted(log_dir.glob("bench-*")):
            make_active_segment(folder)
            make_closed_segments(folder, range(0, SEGMENTS - 1, BROKER_KNOWS_EVERY), one_record())
        sandbox.broker(1).start()
        for folder in sorted(log_dir.glob("bench-*")):
            unknown = (number for number in range(SEGMENTS - 1) if number % BROKER_KNOWS_EVERY)
            make_closed_segments(folder, unknown, b"")
            for path in (*folder.iterdir(), folder):  # a broker's files are mostly old
                os.utime(path, (time.time() - AN_HOUR,) * 2)
        # Where the broker's own names of its log dirs are valid.
        command = [
            sys.executable,
            "-m",
            "bench.reclaim_cycle",
            sandbox.admin_servers,
            str(sandbox.broker(1).log_dirs[0]),
        ]
        measured = subprocess.run(sandbox.inside(command), stdout=subprocess.PIPE, text=True, check=True)
        for line in measured.stdout.splitlines():
            yield Comparison(**json.loads(line))


def measure(servers: str, log_dir: Path) -> Iterator[Comparison]:
    clock = SystemClock()
    client = BrokerClient(ClientConfig.from_properties(servers), BrokerId(1), clock)

    def du() -> None:
        subprocess.run(["du", "-s", str(log_dir)], stdout=subprocess.DEVNULL, check=True)

    def first() -> ReclaimSurvey:
        return Surveyor(client, clock).survey(ALL, [str(log_dir)])

    surveyor = Surveyor(client, clock)

    def again() -> ReclaimSurvey:
        touch(log_dir)
        return surveyor.survey(ALL, [str(log_dir)])

    closed = TOPICS * PARTITIONS * (SEGMENTS - 1)
    give_up_at = time.monotonic() + PATIENCE
    # A broker that has just started leads its partitions a little later.
    while (planned := first().plan.devices[0]).taken_segments != closed:
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"{planned.taken_segments} of {closed} segments are planned: {planned.outcome.label}")
        time.sleep(0.5)
    what = f"{TOPICS * PARTITIONS * SEGMENTS:,} segments, {TOPICS * PARTITIONS:,} partitions"
    yield compare_calls(f"first survey and plan: {what}", du, first, ROUNDS)
    again()
    yield compare_calls("the next one, 1 % of the folders changed", du, again, ROUNDS)
    yield Comparison(what="CPU time of the same", unit="ms", theirs=cpu_milliseconds(du), ours=cpu_milliseconds(again))
    client.close()


def cpu_milliseconds(call: Callable[[], object]) -> float:
    before = os.times()
    for _ in range(ROUNDS):
        call()
    after = os.times()
    return (sum(after[:4]) - sum(before[:4])) * 1000 / ROUNDS


def make_topics(sandbox: Sandbox) -> None:
    admin = KafkaAdminClient(bootstrap_servers=sandbox.admin_servers)
    keep = {"retention.ms": "-1", "retention.bytes": "-1", "segment.index.bytes": "4096"}
    try:
        for number in range(TOPICS):
            admin.create_topics([NewTopic(f"bench-{number}", PARTITIONS, 1, topic_configs=keep)])
    finally:
        admin.close()
    folders = sandbox.outside(sandbox.broker(1).log_dirs[0])
    while len(list(folders.glob("bench-*"))) < TOPICS * PARTITIONS:
        time.sleep(0.1)


def make_active_segment(folder: Path) -> None:
    """The first, empty segment becomes the active one, behind the closed ones."""
    active = (SEGMENTS - 1) * RECORDS_PER_SEGMENT
    for file in folder.glob(f"{0:020}.*"):
        file.rename(folder / f"{active:020}{file.suffix}")


def one_record() -> bytes:
    """A batch but for the base offset in front of it, which no checksum covers."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=2 * VALUE_BYTES)
    builder.append(timestamp=1_700_000_000_000, key=None, value=bytes(VALUE_BYTES))
    builder.close()
    return bytes(builder.buffer())[8:]


def make_closed_segments(folder: Path, numbers: Iterable[int], batch: bytes) -> None:
    for number in numbers:
        base = number * RECORDS_PER_SEGMENT
        newest = struct.pack(">qi", 1_700_000_000_000 + base, RECORDS_PER_SEGMENT - 1)
        (folder / f"{base:020}.log").write_bytes(struct.pack(">q", base) + batch if batch else b"")
        (folder / f"{base:020}.index").write_bytes(bytes(8))
        (folder / f"{base:020}.timeindex").write_bytes(newest)


def touch(log_dir: Path) -> None:
    for folder in sorted(log_dir.glob("bench-*-0"))[:CHANGED_FOLDERS]:
        os.utime(folder)


def main(arguments: Sequence[str]) -> None:
    if arguments:
        servers, log_dir = arguments
        for figure in measure(servers, Path(log_dir)):
            print(json.dumps(asdict(figure)), flush=True)
        return
    for figure in comparisons():
        print(figure.row(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""What refusing offset commits does to groups, by client library. It takes a quarter of an hour.

``python -m bench.commits``: two groups of every library, one that commits after every poll and one that commits by
itself, on one broker whose offsets lie on a volume past its line for 10 s, 2 min and 10 min. A member joins 1 s after
the line is passed, another one is told to leave 4 s later. ``python -m bench.commits control``: the same without the
line, 10 s and 2 min. Members in Python: ``commit_members``; three brokers: ``commits_cluster``.
"""

import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bench.commit_members import LIBRARIES
from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.torture.clients.table import ClientProcess, java_command
from tests.integration.full_disks import KEEPS_ALL, MIB, NEVER_LATE, create_topic_in
from tests.integration.gatewayed import ENFORCING, gateway, state_dir
from tests.integration.guarded import guard
from tests.waiting import eventually

TOPIC, OFFSETS, PARTITIONS = "read", "__consumer_offsets", 6
RATE = 12.0
DURATIONS = (10.0, 120.0, 600.0)
PAST_LINE = Bytes(10 * MIB)
LIMITS = {
    **ENFORCING,
    "disk.max.used.percent": "100",
    "disk.min.free.bytes": str(64 * MIB),
    "brimline.disk.reserve": "off",
    "brimline.cordon": "false",
}
LINE = {"brimline.gateway.commits.refuse.below.percent": "50"}
JAVA = {"java": "classic", "java-848": "consumer"}
SETTLED = 30.0
_HAVE_NOT_JOINED = re.compile(r"Group (\S+) removed dynamic members who haven't joined: \[(.*?)\]")
_HAS_GONE = re.compile(
    r"\[Group(?:Id)? (\S+)\] Member \S+ (?:has )?(?:left|fenced)|Member \S+ in group (\S+) has failed"
)
"""The first by itself, by LeaveGroup, or because its session is over."""

# Groups --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Group:
    """``known``: all records that it ever read. The others since ``forget``: how many it read again, what its
    applications were told, how long their longest commit took that failed."""

    software: str
    mode: str
    servers: str
    known: set[str] = field(default_factory=set)
    again: int = 0
    read: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    members: list[ClientProcess] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.software}-{self.mode}"

    def start(self, first: int, members: int) -> None:
        if self.software in LIBRARIES:
            words = [self.software, self.mode, self.servers, TOPIC, self.name, str(members)]
            command = [sys.executable, "-m", "bench.commit_members", *words]
        else:
            options = {"bootstrap-servers": self.servers, "topic": TOPIC, "group": self.name, "commit": self.mode}
            options |= {"members": str(members), "name": f"{self.name}-{first}"}
            options["property"] = f"group.protocol={JAVA[self.software]}"
            command = java_command("4.3.1", "consume", [word for k, v in options.items() for word in (f"--{k}", v)])
        self.members.append(ClientProcess(command, self._hear))

    def _hear(self, line: dict[str, Any]) -> None:
        if "consumed" in line:
            self.again += line["consumed"] in self.known
            self.read += line["consumed"] not in self.known
            self.known.add(line["consumed"])
        elif "uncommitted" in line:
            self.errors[line["error"]] += 1
            self.longest = max(self.longest, line["milliseconds"])

    def close(self) -> None:
        for each in self.members:
            each.close()

    def forget(self) -> None:
        self.again, self.read, self.errors, self.longest = 0, 0, Counter(), 0


class Committed:
    """When each group last got further, asked past the gateway twice a second."""

    def __init__(self, admin_servers: str, groups: list[Group]) -> None:
        self._admin = AdminClient({"bootstrap.servers": admin_servers, "log_level": 0})
        self._groups, self._sums = [group.name for group in groups], dict.fromkeys((g.name for g in groups), 0)
        self.moved: dict[str, list[float]] = {name: [] for name in self._groups}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Committed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def members(self, name: str) -> int:
        with suppress(KafkaException):
            return len(self._admin.describe_consumer_groups([name])[name].result(20).members)
        return -1

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            for name in self._groups:
                with suppress(KafkaException):
                    asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
                    total = sum(max(each.offset, 0) for each in asked[name].result(20).topic_partitions or ())
                    if total != self._sums[name]:
                        self.moved[name].append(time.monotonic())
                    self._sums[name] = total


@contextmanager
def producing(servers: str) -> Iterator[None]:
    """Numbered records past the gateway."""
    producer, stop = Producer({"bootstrap.servers": servers, "log_level": 0}), threading.Event()

    def run() -> None:
        number = 0
        while not stop.wait(1 / RATE):
            producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
            producer.poll(0)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def libraries(line: Mapping[str, str], durations: Sequence[float]) -> None:
    disk = VolumeSpec(size=Bytes(192 * MIB))
    properties = {**NEVER_LATE, "offsets.topic.num.partitions": str(PARTITIONS)}
    with (
        tempfile.TemporaryDirectory() as logs,
        Sandbox(SandboxSpec(volumes=(disk, disk), fronted=True, properties=properties)) as sandbox,
        ExitStack() as stack,
    ):
        free, full = sandbox.broker(1).log_dirs
        create_topic_in(sandbox, TOPIC, *[free] * PARTITIONS, config=KEEPS_ALL)
        create_topic_in(sandbox, OFFSETS, *[full] * PARTITIONS, config={"cleanup.policy": "compact"})
        keys = {**LIMITS, **line, "brimline.state.dir": str(state_dir(sandbox))}
        running = stack.enter_context(gateway(sandbox, Path(logs, "gateway"), keys))
        stack.enter_context(guard(sandbox, Path(logs, "guard"), keys))
        servers, log = sandbox.bootstrap_servers, sandbox.outside(sandbox.broker(1).node.home / "server.log")
        groups = [Group(library, mode, servers) for library in (*LIBRARIES, *JAVA) for mode in ("sync", "auto")]
        stack.enter_context(producing(sandbox.admin_servers))
        for group in groups:
            group.start(0, 2)
            group.start(2, 1)
            stack.callback(group.close)
        committed = stack.enter_context(Committed(sandbox.admin_servers, groups))
        eventually(lambda: all(committed.moved[each.name] and committed.members(each.name) == 3 for each in groups))
        time.sleep(SETTLED)
        columns = (
            "group",
            "read on the line",
            "again",
            "errors",
            "longest commit",
            "gone (1 wanted)",
            "members",
            "resumed",
        )
        print(f"| {' | '.join(columns)} |")
        print("|---|---|---|---|---|---|---|---|")
        for seconds in durations:
            before, began, gone = running.state()["commits"]["requests"], time.monotonic(), members_gone(log)
            for group in groups:
                group.forget()
            filler = sandbox.outside(sandbox.fill(full, leave_free=PAST_LINE))
            time.sleep(1)
            for group in groups:
                group.start(3, 1)
            time.sleep(4)
            for group in groups:
                group.members.pop(1).ask_to_stop()
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            members = {each.name: committed.members(each.name) for each in groups}
            gone, released = members_gone(log) - gone, time.monotonic()
            read = {each.name: each.read for each in groups}
            print(f"| **{seconds:.0f} s**, {running.state()['commits']['requests'] - before} refused | | | | | | | |")
            filler.unlink()
            time.sleep(SETTLED)
            for group in groups:
                moved = [f"{at - released:.1f} s" for at in committed.moved[group.name] if at > released] or ["never"]
                told = ", ".join(f"{count} {error}" for error, count in group.errors.items()) or "none"
                figures = (
                    f"{read[group.name]} | {group.again} | {told} | {group.longest / 1000:.1f} s | {gone[group.name]}"
                )
                print(f"| {group.name} | {figures} | {members[group.name]} | {moved[0]} |", flush=True)


def members_gone(log: Path) -> Counter[str]:
    """Of each group, as the coordinator says: who has left it or was removed. One was told to leave."""
    gone: Counter[str] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        if found := _HAVE_NOT_JOINED.search(line):
            gone[found[1]] += found[2].count(",") + 1
        elif found := _HAS_GONE.search(line):
            gone[found[1] or found[2]] += 1
    return gone


if __name__ == "__main__":
    if sys.argv[1:] == ["control"]:
        libraries({}, DURATIONS[:-1])
    else:
        libraries(LINE, DURATIONS)

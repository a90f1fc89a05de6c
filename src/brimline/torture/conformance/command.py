"""``brimline torture conformance``: what does a Kafka-compatible system do when one of its disks fills?

Writes to a partition on the disk that is filled and to one on another disk, has the disk filled and freed by commands
of yours, and says what it saw. Verdicts are observations: which of them are good enough is for you to say.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic, OffsetSpec
from kafka.errors import KafkaError, TopicAlreadyExistsError

from brimline.model import BrimlineError
from brimline.torture.conformance.clients import RefusedSend, Written, read_back, writing

TOPIC = "brimline-conformance"
_PARTITIONS = 12
_TOPIC = {"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(1 << 20), "file.delete.delay.ms": "1000"}
_DELETED = 50
"""Records that DeleteRecords is asked to take away: too few to make room."""
_WORDS_OF_CAUSE = ("space", "disk", "full", "storage limit")


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    done: str
    asked: str
    words: str


SCENARIOS = (
    Scenario("broker", "one disk of two fills while clients write to both", "is it alive?", "lives, dies"),
    Scenario("acknowledged", "the same, to the end", "is everything acknowledged there?", "all there, N missing"),
    Scenario(
        "told",
        "the same",
        "what is the producer to the full disk told?",
        "the cause, an error without a cause, nothing",
    ),
    Scenario("other disk", "the same", "is the other disk written as before?", "goes on, slowed, stops"),
    Scenario("reads", "records of the full disk are read", "does that go on?", "goes on, fails"),
    Scenario("deletes", "DeleteRecords for the full disk", "does that work?", "works, fails"),
    Scenario(
        "recovers",
        "space is given back, then a restart",
        "is the full disk written again?",
        "by itself, after a restart, not",
    ),
)


@dataclass(frozen=True, slots=True)
class Observation:
    name: str
    verdict: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} ({self.detail})" if self.detail else self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """Who does to a system what its clients cannot. ``None``: nobody does."""

    fill: Callable[[str], None]
    """The disk of this log dir, all but a little."""
    free: Callable[[], None] | None
    restart: Callable[[], None] | None
    is_alive: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePace:
    per_second: float = 100.0
    size: int = 8000
    before: float = 10.0
    during: float = 45.0
    patience: float = 60.0


# Looking -------------------------------------------------------------------------------------------------------------


def observe(servers: str, hands: Hands, pace: WritePace, tell: Callable[[str], None]) -> list[Observation]:
    """All scenarios, in one run."""
    with _own_topic(servers, tell):
        return _observed(servers, hands, pace, tell)


def _observed(servers: str, hands: Hands, pace: WritePace, tell: Callable[[str], None]) -> list[Observation]:
    full, other, log_dir = _partitions_on_two_disks(servers)
    tell(f"partition {full} is in {log_dir}, which will be filled; partition {other} is on another disk")
    with ExitStack() as stack:
        leaders = _leaders(servers)
        to_full, to_other = (
            stack.enter_context(writing(leaders[each], TOPIC, each, per_second=pace.per_second, size=pace.size))
            for each in (full, other)
        )
        began = time.monotonic()
        time.sleep(pace.before)
        hands.fill(log_dir)
        filled = time.monotonic()
        tell(f"filled; looking for {pace.during:.0f} s")
        time.sleep(pace.during)
        late = filled + pace.during / 2, filled + pace.during
        found = [
            _alive(hands),
            _told(to_full),
            _share(to_other.rate(began, filled), to_other.rate(*late)),
            _reads(servers, full, to_full, pace),
            _deletes(servers, full),
        ]
        tell("space is given back")
        found.append(_recovers(hands, to_full, pace))
    found.insert(1, _acknowledged(servers, {full: to_full, other: to_other}, pace))
    return found


@contextmanager
def _own_topic(servers: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Made for this run, and gone with it, however it ends."""
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as client:
        try:
            client.create_topics([NewTopic(TOPIC, _PARTITIONS, 1, topic_configs=_TOPIC)])
        except TopicAlreadyExistsError:
            raise BrimlineError(f"topic {TOPIC} exists already at {servers}: delete it, then try again") from None
    try:
        yield
    finally:
        try:
            with closing(KafkaAdminClient(bootstrap_servers=servers)) as client:
                client.delete_topics([TOPIC])
        except KafkaError as error:
            tell(f"topic {TOPIC} is still there: it could not be deleted ({error})")


def _partitions_on_two_disks(servers: str) -> tuple[int, int, str]:
    """A partition in the last log dir, one in another, and the path of the last."""
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as client:
        give_up_at = time.monotonic() + 60
        while time.monotonic() < give_up_at:
            places = _places(client.describe_log_dirs())
            if sum(map(len, places.values())) == _PARTITIONS and len(places) > 1:
                *others, last = sorted(places)
                return places[last][0], places[others[0]][0], last
            time.sleep(0.5)
    raise BrimlineError(f"the partitions of {TOPIC} are not on two log dirs: {places}")


def _places(described: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Log dir → partitions of the topic."""
    found: dict[str, list[int]] = {}
    for broker in described:
        for log_dir in broker["log_dirs"]:
            for topic in log_dir["topics"]:
                if topic["name"] == TOPIC:
                    numbers = [partition["partition_index"] for partition in topic["partitions"]]
                    found.setdefault(log_dir["log_dir"], []).extend(numbers)
    return found


def _leaders(servers: str) -> dict[int, str]:
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as client:
        addresses = {
            broker.get("broker_id", broker.get("node_id")): f"{broker['host']}:{broker['port']}"
            for broker in client.describe_cluster()["brokers"]
        }
        (topic,) = client.describe_topics([TOPIC])
        return {each["partition_index"]: addresses[each["leader_id"]] for each in topic["partitions"]}


def _alive(hands: Hands) -> Observation:
    return Observation("broker", "lives" if hands.is_alive() else "dies")


def _told(to_full: Written) -> Observation:
    answered = {refusal: count for refusal, count in to_full.refusals.items() if refusal.code}
    if not answered:
        return Observation("told", "nothing", _listed(to_full.refusals) or "every record was acknowledged")
    has_cause = any(word in refusal.text.lower() for refusal in answered for word in _WORDS_OF_CAUSE)
    return Observation("told", "the cause" if has_cause else "an error without a cause", _listed(answered))


def _listed(refusals: Mapping[RefusedSend, int]) -> str:
    often = sorted(refusals, key=lambda refusal: -refusals[refusal])[:2]
    return "; ".join(f"{f'error {each.code} ' if each.code else ''}{each.text}".strip() for each in often)


def _share(before: float, during: float) -> Observation:
    share = during / before if before else 0.0
    verdict = "goes on" if share >= 0.9 else "slowed" if share >= 0.1 else "stops"
    return Observation("other disk", verdict, f"{share:.0%} of before")


def _reads(servers: str, full: int, to_full: Written, pace: WritePace) -> Observation:
    wanted = [offset for offset in to_full.acknowledged[:200] if offset >= 0]
    try:
        found = read_back(servers, TOPIC, full, 0, max(wanted, default=-1) + 1, pace.patience / 3)
    except (KafkaError, OSError) as error:
        return Observation("reads", "fails", type(error).__name__)
    there = sum(offset in found for offset in wanted)
    return Observation("reads", "goes on" if there == len(wanted) else "fails", f"{there} of {len(wanted)} records")


def _deletes(servers: str, full: int) -> Observation:
    where = TopicPartition(TOPIC, full)
    try:
        with closing(KafkaAdminClient(bootstrap_servers=servers, bootstrap_timeout_ms=10_000)) as client:
            client.delete_records({where: _DELETED}, timeout_ms=10_000)
            start = client.list_partition_offsets({where: OffsetSpec.EARLIEST})[where].offset
    except (KafkaError, OSError, BrimlineError) as error:
        return Observation("deletes", "fails", type(error).__name__)
    return Observation("deletes", "works" if start >= _DELETED else "fails", f"the log begins at {start}")


def _recovers(hands: Hands, to_full: Written, pace: WritePace) -> Observation:
    for act, verdict in ((hands.free, "by itself"), (hands.restart, "after a restart")):
        if act is None:
            continue
        try:
            act()
        except BrimlineError as error:
            return Observation("recovers", "not", str(error).splitlines()[0])
        since, already = time.monotonic(), len(to_full.acknowledged)
        while time.monotonic() < since + pace.patience:
            if len(to_full.acknowledged) > already + 5:
                return Observation("recovers", verdict, f"{to_full.at[already] - since:.1f} s")
            time.sleep(0.1)
    return Observation(
        "recovers", "not", f"within {pace.patience:.0f} s{', nor after a restart' * bool(hands.restart)}"
    )


def _acknowledged(servers: str, written: Mapping[int, Written], pace: WritePace) -> Observation:
    missing = total = 0
    for partition, writer in written.items():
        numbers = {offset: number for number, offset in enumerate(writer.acknowledged) if number >= _DELETED}
        total += len(numbers)
        try:
            first, end = min(numbers, default=0), max(numbers, default=-1) + 1
            found = read_back(servers, TOPIC, partition, first, end, pace.patience)
        except (KafkaError, OSError):
            found = {}
        missing += sum(found.get(offset) != number for offset, number in numbers.items())
    return Observation("acknowledged", f"{missing} missing" if missing else "all there", f"of {total:,}")


# The command ---------------------------------------------------------------------------------------------------------


def hands_of(options: argparse.Namespace) -> Hands:
    """By the shell. The log dir is in ``BRIMLINE_LOG_DIR``."""

    def running(command: str | None, **environment: str) -> Callable[[], None] | None:
        if command is None:
            return None
        return lambda: _run(command, environment)

    def is_alive() -> bool:
        if options.alive_command is not None:
            return subprocess.run(options.alive_command, shell=True, check=False).returncode == 0
        try:
            KafkaAdminClient(bootstrap_servers=options.target, bootstrap_timeout_ms=10_000).close()
        except KafkaError:
            return False
        return True

    return Hands(
        fill=lambda log_dir: _run(options.fill_command, {"BRIMLINE_LOG_DIR": log_dir}),
        free=running(options.free_command),
        restart=running(options.restart_command),
        is_alive=is_alive,
    )


def _run(command: str, environment: Mapping[str, str]) -> None:
    if subprocess.run(command, shell=True, check=False, env={**os.environ, **environment}).returncode:
        raise BrimlineError(f"this failed: {command}")


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    parser = subparsers.add_parser(
        "conformance",
        help="what a Kafka-compatible system does when a disk fills",
        description=__doc__.partition("\n\n")[2],
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--target", metavar="HOST:PORT", help="a broker of the system; a topic is made in it")
    where.add_argument("--sandbox", metavar="VERSION", help="a Kafka of this version, made for it, on two small disks")
    parser.add_argument("--fill-command", metavar="CMD", help="fills the disk of $BRIMLINE_LOG_DIR, all but a little")
    parser.add_argument("--free-command", metavar="CMD", help="gives the space back")
    parser.add_argument("--alive-command", metavar="CMD", help="exit code 0: it lives (default: it answers)")
    parser.add_argument("--restart-command", metavar="CMD", help="restarts it; returns when it is up")
    parser.add_argument("--brimline", action="store_true", help="with --sandbox: put a gateway in front")
    parser.add_argument("--jar", type=Path, action="append", default=[], help="with --sandbox: a plug-in's jar")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="with --sandbox")
    parser.add_argument(
        "--seconds", type=float, default=WritePace().during, help="to look at the full disk (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print what was seen as JSON")
    parser.set_defaults(func=run)


def _epilog() -> str:
    rows = [f"  {each.name:<13} {each.done}\n{'':<16}{each.asked} {each.words}" for each in SCENARIOS]
    codes = ["", "exit codes:", "  0    observed, whatever was seen", "  1    the run could not be carried out"]
    return "\n".join(["scenarios:", *rows, *codes])


def run(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # brokers and gateway end with it
    pace = WritePace(during=options.seconds)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if options.target is not None:
        if options.fill_command is None:
            raise BrimlineError("--target needs --fill-command: only you know how to fill its disk")
        found = observe(options.target, hands_of(options), pace, tell)
    else:
        from brimline.torture.conformance.sandbox import in_sandbox

        with in_sandbox(options) as (servers, hands):
            found = observe(servers, hands, pace, tell)
    _show(found, as_json=options.json)
    return 0


def _show(found: Sequence[Observation], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2))
        return
    for scenario in SCENARIOS:
        said = next(str(each) for each in found if each.name == scenario.name)
        print(f"{scenario.name:<13} {scenario.asked:<46} {said}")

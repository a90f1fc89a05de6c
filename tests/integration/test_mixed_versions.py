"""Two versions of Brimline at one broker: whichever is the older, the fence holds and is lifted, and what one has
written down the other reads, or refuses in one sentence.

The older code is that of a commit of this very repository, unpacked into a folder and run by today's Python: once the
last before fences judged every Produce, and once the one before today's. The last one without a reserve is upgraded.
"""

import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from brimline.model import Bytes
from brimline.sandbox import Sandbox
from tests.integration.cluster import brimline, brimline_inside, produce
from tests.integration.full_disks import (
    BY_PERCENT,
    KAFKA_STORAGE_ERROR,
    MIB,
    NO_LIMIT,
    SECOND,
    STORED,
    admin_client,
    clean_up,
    create_topic_in,
    end_offset,
    fill_beyond_limit,
    two_disks,
    verify_unharmed,
)
from tests.integration.gatewayed import ENFORCING, RunningGateway, gateway, state_dir, write_gateway_config
from tests.integration.guarded import BRIMLINE, RunningGuard, guard, write_config
from tests.integration.raw_produce import RawProducer, raw_producer
from tests.integration.shared import shared
from tests.waiting import LONGER, PATIENCE_SECONDS, SPARK_SECONDS, eventually
from tests.wire.produce_messages import batch

pytestmark = [pytest.mark.integration, pytest.mark.long, LONGER]

ROOT = Path(__file__).parents[2]
COMMITS = ("8ef4b7c", "HEAD^")
BEFORE_RESERVES = "2f40139"
ALWAYS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": str(1 << 50), "brimline.cordon": "false"}
"""A guard that is killed would leave a cordon, and no topic would be put there again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A Brimline, and how it is started."""

    name: str
    program: tuple[str, ...]


TODAY = Version(name="today", program=BRIMLINE)


@pytest.fixture(scope="module", params=COMMITS)
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Version:
    return version_of(str(request.param), tmp_path_factory.mktemp("older"))


@pytest.fixture(scope="module")
def before_reserves(tmp_path_factory: pytest.TempPathFactory) -> Version:
    return version_of(BEFORE_RESERVES, tmp_path_factory.mktemp("before-reserves"))


def version_of(commit: str, folder: Path) -> Version:
    source = unpacked(commit, folder) / "src"
    on_path = ("env", f"PYTHONPATH={source}", sys.executable)
    where = subprocess.check_output([*on_path, "-c", "import brimline; print(brimline.__file__)"], text=True)
    assert Path(where).is_relative_to(source), f"{where} is not the older one"
    return Version(name=commit, program=(*on_path, "-m", "brimline.cli"))


def unpacked(commit: str, folder: Path) -> Path:
    try:
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, "src"],
            capture_output=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
    except FileNotFoundError:
        pytest.skip("there is no git")
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"the commit {commit} is not in this clone: {problem.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def running_sandbox() -> Iterator[Sandbox]:
    with shared(two_disks("4.3.1")) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    """With nothing in its state dir."""
    shutil.rmtree(running_sandbox.outside(state_dir(running_sandbox)), ignore_errors=True)
    yield running_sandbox
    verify_unharmed(running_sandbox)
    clean_up(running_sandbox)


class Services:
    """Gateways and guards of two versions, one after the other; whatever still runs ends with the test."""

    def __init__(self, sandbox: Sandbox, logs: Path, stack: ExitStack) -> None:
        self._sandbox = sandbox
        self._logs = (logs / f"log-{number}" for number in count(1))
        self._stack = stack

    def gateway(self, version: Version, limits: dict[str, str] = BY_PERCENT) -> RunningGateway:
        return self._stack.enter_context(gateway(self._sandbox, next(self._logs), limits, program=version.program))

    def guard(self, version: Version, limits: dict[str, str] = BY_PERCENT) -> RunningGuard:
        keys = {**ENFORCING, "brimline.state.dir": str(state_dir(self._sandbox)), **limits}
        return self._stack.enter_context(guard(self._sandbox, next(self._logs), keys, program=version.program))


@pytest.fixture
def services(sandbox: Sandbox, tmp_path: Path) -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services(sandbox, tmp_path, stack)


@pytest.fixture(params=["the older guard", "the older gateway"])
def pair(request: pytest.FixtureRequest, older: Version) -> tuple[Version, Version]:
    """Guard and gateway."""
    return (older, TODAY) if request.param == "the older guard" else (TODAY, older)


def codes(client: RawProducer, topic: str, *partitions: int) -> list[int]:
    said = client.produce([(topic, partition) for partition in partitions])
    return [said[topic, partition].code for partition in partitions]


def test_a_full_disk_is_fenced_and_released(
    sandbox: Sandbox, services: Services, pair: tuple[Version, Version]
) -> None:
    first, second = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "orders", first, second)
    running, watching = services.gateway(pair[1]), services.guard(pair[0])
    eventually(lambda: watching.state()["gateway"]["up"])
    with raw_producer(sandbox.bootstrap_servers) as client:
        assert codes(client, "orders", 0, 1) == [STORED, STORED]
        foreign = fill_beyond_limit(sandbox, second)
        eventually(lambda: running.fenced() == {SECOND})
        eventually(lambda: fenced_log_dirs(watching) == {str(second)})

        while_full = codes(client, "orders", 0, 1)
        ends = [end_offset(sandbox, "orders", partition) for partition in (0, 1)]
        sandbox.unfill(foreign)
        eventually(lambda: running.fenced() == set())
        after = codes(client, "orders", 0, 1)

    assert (while_full, ends) == ([STORED, KAFKA_STORAGE_ERROR], [2, 1])
    assert after == [STORED, STORED]
    assert end_offset(sandbox, "orders", 1) == 2


def fenced_log_dirs(watching: RunningGuard) -> set[str]:
    state = watching.state()["gateway"]["state"]
    return set() if state is None else {fence["logDir"] for fence in state["fences"]}


def test_the_guards_word_counts_for_as_long_as_it_lives(
    sandbox: Sandbox, services: Services, pair: tuple[Version, Version]
) -> None:
    """The gateway itself sees room on every disk: what it refuses, it refuses because it was told to."""
    first, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "told", first)
    running = services.gateway(pair[1], NO_LIMIT)
    watching = services.guard(pair[0], ALWAYS_FULL)
    eventually(lambda: {fence["cause"] for fence in running.state()["fences"]} == {"guard"})
    with raw_producer(sandbox.bootstrap_servers) as client:
        assert codes(client, "told", 0) == [KAFKA_STORAGE_ERROR]
        assert end_offset(sandbox, "told") == 0
        watching.process.kill()
        eventually(lambda: running.fenced() == set())
        assert codes(client, "told", 0) == [STORED]
    assert end_offset(sandbox, "told") == 1


@pytest.mark.parametrize("is_older_first", [True, False], ids=["older, then today's", "today's, then older"])
def test_a_gateway_finds_what_the_other_version_has_fenced_and_refused(
    sandbox: Sandbox,
    services: Services,
    older: Version,
    is_older_first: bool,  # noqa: FBT001 (a parameter)
) -> None:
    """By the command of the one to the gateway of the other, too."""
    before, after = (older, TODAY) if is_older_first else (TODAY, older)
    first, _ = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "by-hand", first)
    config = str(write_gateway_config(sandbox, {**ENFORCING, **NO_LIMIT}))
    target = ("--config", config, "--topic", "by-hand")
    running = services.gateway(before, NO_LIMIT)
    fenced = brimline_inside(sandbox, "fence", *target, "--reason", "CHG-1", program=after.program)
    assert fenced.returncode == 0, fenced.stderr
    with raw_producer(sandbox.bootstrap_servers) as client:
        idempotent = {("by-hand", 0): batch(producer_id=4711, producer_epoch=0, base_sequence=0)}
        assert client.produce(idempotent)["by-hand", 0].code == KAFKA_STORAGE_ERROR
    held = running.state()["sequences"]["held"]
    running.stop()

    swapped = services.gateway(after, NO_LIMIT)
    with raw_producer(sandbox.bootstrap_servers) as client:
        while_fenced = codes(client, "by-hand", 0)
        lifted = brimline_inside(sandbox, "unfence", *target, program=before.program)
        released = codes(client, "by-hand", 0)

    assert (while_fenced, lifted.returncode, released) == ([KAFKA_STORAGE_ERROR], 0, [STORED]), lifted.stderr
    assert end_offset(sandbox, "by-hand") == 1
    told = swapped.log.read_text()
    assert held == swapped.state()["sequences"]["held"] or "recreated" in told or "made anew" in told
    swapped.stop()
    assert services.gateway(before, NO_LIMIT).fenced() == set()


def test_an_upgrade_fences_nothing_that_was_not_fenced_and_can_be_taken_back(
    sandbox: Sandbox, services: Services, before_reserves: Version
) -> None:
    """The second disk has less room than the cleaner may still need there, and more than both limits of the KIP."""
    _, second = sandbox.broker(1).log_dirs
    create_topic_in(sandbox, "keyed", second, config={"cleanup.policy": "compact"})
    create_topic_in(sandbox, "orders", second)
    produce(sandbox, "keyed", megabytes=20, keyed=True)
    sandbox.fill(second, leave_free=Bytes(30 * MIB))

    def said() -> list[int]:
        with raw_producer(sandbox.bootstrap_servers) as client:
            return codes(client, "orders", 0)

    run_until(services, before_reserves, {}, lambda: said() == [STORED])

    running, watching = services.gateway(TODAY), services.guard(TODAY)

    def pending() -> dict[str, float]:
        return watching.samples("brimline_reserve_pending")

    eventually(lambda: pending().get(f'log_dir="{second}"') == 1)
    found = brimline_inside(
        sandbox, "doctor", "--config", str(write_guard_config(sandbox, {})), "--output", "json", program=TODAY.program
    )
    assert (running.fenced(), said()) == (set(), [STORED])
    assert "brimline.disk.reserve=on" in found.stdout
    assert str(second) in found.stdout

    confirm(sandbox, running, watching)
    eventually(lambda: {fence["cause"] for fence in running.state()["fences"]} == {"full", "guard"})
    assert (running.fenced(), said()) == ({SECOND}, [KAFKA_STORAGE_ERROR])
    eventually(lambda: set(pending().values()) == {0})
    eventually(lambda: own_ratio(sandbox) == 1)
    running.stop()
    watching.process.terminate()
    watching.process.wait(PATIENCE_SECONDS)

    # Back, as it is: the reserve is forgotten, what was borrowed stays
    run_until(services, before_reserves, {}, lambda: said() == [STORED])
    assert own_ratio(sandbox) == 1

    # What was borrowed is given back first, as docs/reserve.md says
    giving_back = {"brimline.disk.reserve": "on", "brimline.cleaner.hold": "false"}
    run_until(services, TODAY, giving_back, lambda: own_ratio(sandbox) is None)
    run_until(services, before_reserves, {}, lambda: said() == [STORED])


def run_until(services: Services, version: Version, keys: dict[str, str], when: Callable[[], bool]) -> None:
    """Gateway and guard of one version, from when both run until ``when``."""
    running, watching = (
        services.gateway(version, {**BY_PERCENT, **keys}),
        services.guard(version, {**BY_PERCENT, **keys}),
    )
    eventually(lambda: watching.state()["gateway"]["up"])
    eventually(when)
    running.stop()
    watching.process.terminate()
    watching.process.wait(PATIENCE_SECONDS)
    assert {"error", "critical"}.isdisjoint(line["level"] for line in (*running.said(), *watching.said()))


def write_guard_config(sandbox: Sandbox, keys: dict[str, str]) -> Path:
    return write_config(sandbox, {**ENFORCING, "brimline.state.dir": str(state_dir(sandbox)), **BY_PERCENT, **keys})


def confirm(sandbox: Sandbox, running: RunningGateway, watching: RunningGuard) -> None:
    keys = {"brimline.disk.reserve": "on"}
    write_guard_config(sandbox, keys)
    write_gateway_config(sandbox, {**ENFORCING, **BY_PERCENT, **keys})
    for process in (running.process, watching.process):
        process.send_signal(signal.SIGHUP)


def own_ratio(sandbox: Sandbox) -> float | None:
    """``log.cleaner.min.cleanable.ratio`` of the broker, where it is not the default."""
    with admin_client(sandbox) as client:
        found = client.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")])["broker"]["1"]
    entry = found.get("log.cleaner.min.cleanable.ratio")
    return None if entry is None else float(entry["value"])


def test_a_pause_of_one_version_stops_the_other(sandbox: Sandbox, older: Version, tmp_path: Path) -> None:
    config = str(write_config(sandbox, {**NO_LIMIT, "brimline.state.dir": str(tmp_path)}))

    def reclaim(version: Version, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return brimline_inside(sandbox, "reclaim", *arguments, "--config", config, program=version.program)

    for pauses, deletes in ((older, TODAY), (TODAY, older)):
        assert reclaim(pauses, "pause", "--reason", "CHG-1").returncode == 0
        stopped = reclaim(deletes, "--apply", "--yes")
        assert (stopped.returncode, "paused by" in stopped.stderr) == (1, True)
        assert reclaim(deletes, "resume").returncode == 0
        # A file that only one of them knows stays behind: the pause goes on until that one resumes, too.
        assert reclaim(pauses, "resume").returncode == 0
        for version in (older, TODAY):
            going_on = reclaim(version, "--apply", "--yes")
            assert going_on.returncode == 0, going_on.stderr
    told = [
        json.loads(brimline_inside(sandbox, *command, program=version.program).stdout)
        for version in (older, TODAY)
        for command in [("ledger", "--config", config, "--output", "json")]
    ]
    assert told[0] == told[1]


def test_a_plan_of_another_version_is_read_or_refused_in_one_sentence(
    sandbox: Sandbox, older: Version, tmp_path: Path
) -> None:
    config = str(write_config(sandbox, {**NO_LIMIT, "brimline.state.dir": str(tmp_path)}))
    made: dict[str, Path] = {}
    for version in (older, TODAY):
        shown = brimline_inside(sandbox, "reclaim", "--config", config, "--output", "json", program=version.program)
        assert shown.returncode == 0, shown.stderr
        made[version.name] = tmp_path / f"plan-{version.name}.json"
        made[version.name].write_text(shown.stdout)
    is_same = len({json.loads(path.read_text())["version"] for path in made.values()}) == 1
    for reads, wrote in ((TODAY, older), (older, TODAY)):
        arguments = ["reclaim", "--config", config, "--apply", "--yes", "--plan", str(made[wrote.name])]
        done = brimline_inside(sandbox, *arguments, program=reads.program)
        assert done.returncode == (0 if is_same else 1), done.stderr
        assert is_same or (done.stdout, done.stderr.count("\n"), "version" in done.stderr) == ("", 1, True)


@pytest.mark.parametrize("is_older_landing", [True, False], ids=["older guard", "today's guard"])
def test_a_fleet_takes_in_snapshots_of_the_other_version(
    sandbox: Sandbox,
    services: Services,
    older: Version,
    tmp_path: Path,
    is_older_landing: bool,  # noqa: FBT001
) -> None:
    lands, takes_in = (older, TODAY) if is_older_landing else (TODAY, older)
    create_topic_in(sandbox, "landed", sandbox.broker(1).log_dirs[0])
    place = {"brimline.landing.uri": str(tmp_path / "landing"), "brimline.landing.interval.ms": "1000"}
    watching = services.guard(lands, {**BY_PERCENT, **place})
    eventually(lambda: watching.state()["landing"]["sent"] >= 2)
    watching.process.terminate()
    watching.process.wait(PATIENCE_SECONDS)
    places = ["--landing", str(tmp_path / "landing"), "--warehouse", str(tmp_path / "warehouse")]

    ran = subprocess.run(
        [*takes_in.program, "fleet", "run", *places], capture_output=True, text=True, timeout=SPARK_SECONDS, check=False
    )

    assert ran.returncode == 0, ran.stderr
    shown = brimline("fleet", "show", *places[2:], "volume_pressure", "--output", "json")
    rows = json.loads(shown.stdout)
    assert {row["log_dir"] for row in rows} == {str(log_dir) for log_dir in sandbox.broker(1).log_dirs}

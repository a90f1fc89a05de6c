"""Cordoned log dirs on real brokers: no new partition lands in a full one, and what an operator closed stays closed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from brimline import ClientConfig
from brimline.act.broker_setting import CORDONED, BrokerSetting
from brimline.act.ledger.entries import CordonEntry
from brimline.act.ledger.files import LedgerFiles
from brimline.act.ledger.story import Act, tell
from brimline.model import BrokerId
from brimline.sandbox import Sandbox
from tests.integration.cluster import create_topic
from tests.integration.full_disks import BY_PERCENT, admin_client, clean_up
from tests.integration.full_followers import RESTARTED, ROOM_LEFT, three_brokers
from tests.integration.gatewayed import ENFORCING, state_dir
from tests.integration.guarded import RunningGuard, guard
from tests.waiting import eventually

pytestmark = pytest.mark.integration

BROKER = 1


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(three_brokers("4.3.1", RESTARTED)) as running:
        yield running


@pytest.fixture(autouse=True)
def clean(sandbox: Sandbox) -> Iterator[None]:
    """What a test has filled or cordoned, another finds empty and open."""
    yield
    clean_up(sandbox)
    operator_sets(sandbox)


@contextmanager
def guarding(sandbox: Sandbox, logs: Path) -> Iterator[RunningGuard]:
    keys = {**ENFORCING, **BY_PERCENT, "brimline.state.dir": str(state_dir(sandbox, BROKER))}
    with guard(sandbox, logs / "guard.log", keys, broker=BROKER) as started:
        yield started


@pytest.fixture
def running(sandbox: Sandbox, tmp_path: Path) -> Iterator[RunningGuard]:
    with guarding(sandbox, tmp_path) as started:
        yield started


@pytest.fixture
def restarted_with(sandbox: Sandbox) -> Iterator[Callable[[str | None], None]]:
    """Restarts the broker with this value in its file."""

    def restart(value: str | None) -> None:
        sandbox.broker(BROKER).alter_properties({CORDONED: value})
        sandbox.broker(BROKER).restart()

    yield restart
    restart(None)


def dynamic_value(sandbox: Sandbox) -> str | None:
    setting = BrokerSetting(ClientConfig.from_properties(sandbox.admin_servers), BrokerId(BROKER), CORDONED)
    try:
        return setting.own_value()
    finally:
        setting.close()


def cordoned(sandbox: Sandbox) -> set[str]:
    """As the broker itself tells, in DescribeLogDirs."""
    with admin_client(sandbox) as client:
        described = client.describe_log_dirs()
    own = {str(path) for path in sandbox.broker(BROKER).log_dirs}
    return {
        each["log_dir"]
        for broker in described
        for each in broker["log_dirs"]
        if each["log_dir"] in own and each.get("is_cordoned")
    }


def operator_sets(sandbox: Sandbox, *log_dirs: Path) -> None:
    change = ("SET", ",".join(map(str, log_dirs))) if log_dirs else ("DELETE", None)
    with admin_client(sandbox) as client:
        resource = ConfigResource(ConfigResourceType.BROKER, str(BROKER), {CORDONED: change})
        client.alter_configs([resource], incremental=True, raise_on_unknown=False)
    eventually(lambda: cordoned(sandbox) == {str(path) for path in log_dirs})


def folders(sandbox: Sandbox, log_dir: Path, topic: str) -> int:
    return sum(entry.name.startswith(f"{topic}-") for entry in sandbox.outside(log_dir).iterdir())


def acts(sandbox: Sandbox) -> list[tuple[str, str]]:
    files = LedgerFiles(sandbox.outside(state_dir(sandbox, BROKER)), BROKER)
    if not files.current.exists():
        return []
    story = tell(files)
    told = [chapter.entry for chapter in story.chapters if isinstance(chapter, Act)]
    return [(each.act.value, each.log_dir) for each in told if isinstance(each, CordonEntry)]


def test_new_partitions_go_past_a_full_log_dir_until_it_has_room(sandbox: Sandbox, running: RunningGuard) -> None:
    full, other = sandbox.broker(BROKER).log_dirs
    before = len(acts(sandbox))
    foreign = sandbox.fill(full, leave_free=ROOM_LEFT)
    eventually(lambda: cordoned(sandbox) == {str(full)})
    create_topic(sandbox, "placed", assignment={n: [BROKER] for n in range(6)})
    assert (folders(sandbox, full, "placed"), folders(sandbox, other, "placed")) == (0, 6)
    eventually(lambda: running.state()["cordon"]["logDirs"] == [str(full)])

    sandbox.unfill(foreign)
    eventually(lambda: cordoned(sandbox) == set())
    eventually(lambda: "uncordoned" in running.events())
    assert acts(sandbox)[before:] == [("cordoned", str(full)), ("uncordoned", str(full))]
    assert running.events().count("cordoned") == running.events().count("uncordoned") == 1


@pytest.mark.long
def test_what_an_operator_has_cordoned_stays_so(sandbox: Sandbox, running: RunningGuard) -> None:
    full, other = sandbox.broker(BROKER).log_dirs
    operator_sets(sandbox, other)
    foreign = sandbox.fill(full, leave_free=ROOM_LEFT)
    eventually(lambda: cordoned(sandbox) == {str(full), str(other)})
    sandbox.unfill(foreign)
    eventually(lambda: cordoned(sandbox) == {str(other)})
    eventually(lambda: running.state()["cordon"]["logDirs"] == [])

    # A full one that the operator has closed is left alone from beginning to end.
    before = acts(sandbox)
    foreign = sandbox.fill(other, leave_free=ROOM_LEFT)
    eventually(lambda: running.states()["volume-1/log-dir-0"] == "full")
    eventually(lambda: running.state()["cordon"]["byOperator"] == [str(other)])
    sandbox.unfill(foreign)
    eventually(lambda: running.states()["volume-1/log-dir-0"] == "ok")
    assert cordoned(sandbox) == {str(other)}
    assert acts(sandbox) == before


@pytest.mark.long
def test_what_the_brokers_own_file_says_counts_all_the_time(
    sandbox: Sandbox, tmp_path: Path, restarted_with: Callable[[str | None], None]
) -> None:
    """A dynamic value hides the file's: so the file's goes into it, and in the end there is no dynamic value left."""
    full, other = sandbox.broker(BROKER).log_dirs
    restarted_with(str(other))
    with guarding(sandbox, tmp_path):
        foreign = sandbox.fill(full, leave_free=ROOM_LEFT)
        eventually(lambda: cordoned(sandbox) == {str(full), str(other)})
        sandbox.unfill(foreign)
        eventually(lambda: cordoned(sandbox) == {str(other)})
        eventually(lambda: dynamic_value(sandbox) is None)

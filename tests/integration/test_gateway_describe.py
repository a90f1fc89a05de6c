"""DescribeLogDirs through the gateway: everybody gets what they asked for, in their own layout, whatever the broker is.

A client of KIP-1187 gets remote sizes, Kafka's own clients of 4.3 get their version 5, and in front of brokers older
than 3.3 both get the volumes' bytes (KIP-827). Our own command and API say the same with a gateway and without.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from kafka.protocol.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from brimline import Admin, BrokerId, ClientConfig, DescribeLogDirsOptions
from brimline.model import Bytes, LogDirDescription, ReplicaInfo, TopicPartition
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from tests.integration.cluster import TIERED, brimline, create_topic, produce
from tests.integration.full_disks import NEVER_LATE
from tests.integration.gateway_clients.admins import ShownLogDir, describe_log_dirs
from tests.integration.gatewayed import gateway
from tests.integration.kip_1187_client import DescribedLogDir, Sizes, describe, describe_over
from tests.integration.raw_kafka import raw_connection, request
from tests.integration.test_remote_info import is_settled, local_segments, only_local_on_disk, remote_segments
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

VOLUME = VolumeSpec(size=Bytes(128 << 20))
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}
DESCRIBE_LOG_DIRS = 35
UNKNOWN = -1
Shown = TypeVar("Shown")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A broker with a gateway before it."""

    sandbox: Sandbox

    @property
    def through(self) -> str:
        return self.sandbox.bootstrap_servers

    @property
    def direct(self) -> str:
        """Not the client listener, which would send its clients to the gateway."""
        return self.sandbox.admin_servers


OLDER = [pytest.param(version, marks=pytest.mark.long) for version in ("3.9.2", "4.1.2")]


@pytest.fixture(scope="module", params=["4.3.1", *OLDER])
def tiered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    spec = SandboxSpec(version=request.param, volumes=(VOLUME,), tiered=True, fronted=True, properties=NEVER_LATE)
    with Sandbox(spec) as sandbox:
        create_topic(sandbox, "tiered", partitions=2, config=TIERED)
        create_topic(sandbox, "plain")
        produce(sandbox, "tiered", 4.3)
        produce(sandbox, "plain", 0.5)
        eventually(lambda: is_settled(sandbox, "tiered", 0, at_most=3))
        with gateway(sandbox, tmp_path_factory.mktemp("tiered") / "gateway.log", NOTHING_IS_FULL):
            yield Place(sandbox=sandbox)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Older than KIP-827: this broker does not know how large its volumes are."""
    with Sandbox(SandboxSpec(version="3.2.3", volumes=(VOLUME,), fronted=True, properties=NEVER_LATE)) as sandbox:
        create_topic(sandbox, "plain")
        produce(sandbox, "plain", 0.5)
        with gateway(sandbox, tmp_path_factory.mktemp("old") / "gateway.log", NOTHING_IS_FULL):
            yield Place(sandbox=sandbox)


def described(place: Place, *, include_remote_info: bool) -> DescribedLogDir:
    answer = describe(place.through, include_remote_info=include_remote_info)
    assert answer.error_code == 0
    (log_dir,) = answer.log_dirs
    assert (log_dir.error_code, log_dir.path) == (0, str(place.sandbox.broker(1).log_dirs[0]))
    return log_dir


def of_clients(log_dir: DescribedLogDir) -> dict[tuple[str, int], Sizes]:
    return {place: sizes for place, sizes in log_dir.partitions.items() if not place[0].startswith("__")}


def size_on_disk(place: Place, topic: str, partition: int = 0) -> int:
    return sum(local_segments(place.sandbox, topic, partition).values())


# --- a client of KIP-1187


def test_the_rpc_returns_remote_sizes_if_they_are_asked_for(tiered: Place) -> None:
    expected = really(tiered)

    assert expected["tiered", 0].remote > 0
    # Asked again: on a busy machine a worker may be too slow for whoever asks.
    eventually(lambda: of_clients(described(tiered, include_remote_info=True)) == expected)


def really(tiered: Place) -> dict[tuple[str, int], Sizes]:
    """By what is on disk and in remote storage."""
    plain = size_on_disk(tiered, "plain")
    return {
        ("tiered", 0): Sizes(
            local=size_on_disk(tiered, "tiered"),
            remote=sum(remote_segments(tiered.sandbox, "tiered", 0).values()),
            only_local=only_local_on_disk(tiered.sandbox, "tiered", 0),
        ),
        ("tiered", 1): Sizes(local=0, remote=0, only_local=0),
        ("plain", 0): Sizes(local=plain, remote=UNKNOWN, only_local=plain),
    }


def test_the_rpc_returns_the_default_sizes_if_not(tiered: Place) -> None:
    log_dir = described(tiered, include_remote_info=False)

    assert log_dir.partitions["tiered", 0].local == size_on_disk(tiered, "tiered")
    assert {(sizes.remote, sizes.only_local) for sizes in log_dir.partitions.values()} == {(UNKNOWN, UNKNOWN)}
    assert log_dir.total_bytes == VOLUME.size
    assert 0 < log_dir.usable_bytes < VOLUME.size


def test_the_very_first_question_is_answered_rightly(tiered: Place, tmp_path: Path) -> None:
    """Of a client that does not ask for the versions first, at a gateway that has not heard of its broker's yet."""
    expected = really(tiered)

    eventually(lambda: of_clients(first_answer(tiered.sandbox, tmp_path)) == expected)


@contextmanager
def apart(sandbox: Sandbox, directory: Path, added: Mapping[str, str] | None = None) -> Iterator[str]:
    """Another gateway before the same broker; its address."""
    (port,) = sandbox.reserve_ports(1)
    keys = {"brimline.gateway.listeners": f"CLIENT://127.0.0.1:{port}", "brimline.state.dir": str(directory)}
    with gateway(sandbox, directory / "gateway.log", {**NOTHING_IS_FULL, **keys, **(added or {})}):
        yield f"127.0.0.1:{port}"


def first_answer(sandbox: Sandbox, directory: Path) -> DescribedLogDir:
    """From another gateway, started for this one question."""
    with apart(sandbox, directory) as address, raw_connection(address) as connection:
        (log_dir,) = describe_over(connection, include_remote_info=True).log_dirs
    assert log_dir.total_bytes == VOLUME.size
    return log_dir


@pytest.mark.parametrize("include_remote_info", [False, True])
def test_an_old_broker_gets_the_same_question_answered(old: Place, *, include_remote_info: bool) -> None:
    log_dir = described(old, include_remote_info=include_remote_info)

    size = size_on_disk(old, "plain")
    only_local = size if include_remote_info else UNKNOWN
    assert log_dir.partitions["plain", 0] == Sizes(local=size, remote=UNKNOWN, only_local=only_local)
    assert log_dir.total_bytes == VOLUME.size
    assert 0 < log_dir.usable_bytes < VOLUME.size


# --- stock clients


def offered(address: str) -> dict[int, tuple[int, int]]:
    """API key → lowest and highest version."""
    with raw_connection(address) as connection:
        answer = connection.answers(request(ApiVersionsRequest(), 2))
    apis = ApiVersionsResponse.decode(answer, version=2, header=True).api_keys
    return {int(api.api_key): (int(api.min_version), int(api.max_version)) for api in apis}


def newest_offered(address: str) -> int:
    return offered(address)[DESCRIBE_LOG_DIRS][1]


def test_a_gateway_that_observes_answers_the_same_and_offers_nothing_else(old: Place, tmp_path: Path) -> None:
    sandbox, observing = old.sandbox, {"brimline.enforcement": "observe"}
    with apart(sandbox, tmp_path, observing) as address:
        through, direct = offered(address), offered(old.direct)
        with raw_connection(address) as connection:
            (log_dir,) = describe_over(connection, include_remote_info=True).log_dirs
        shown = shown_by_java(old, address)

    size = size_on_disk(old, "plain")
    assert through == {**direct, DESCRIBE_LOG_DIRS: (direct[DESCRIBE_LOG_DIRS][0], 5)}
    assert log_dir.partitions["plain", 0] == Sizes(local=size, remote=UNKNOWN, only_local=size)
    assert log_dir.total_bytes == shown.total_bytes == VOLUME.size


def shown_both_ways(place: Place, ask: Callable[[str], Shown]) -> Shown:
    """What is shown through the gateway and past it: the same. Asked again if something moved between the two."""
    shown: list[Shown] = []

    def through() -> Shown:
        shown.append(ask(place.through))
        return shown[-1]

    eventually(lambda: through() == ask(place.direct))
    return shown[-1]


def shown_by_java(place: Place, servers: str) -> ShownLogDir:
    (shown,) = describe_log_dirs("4.3.1", servers).values()
    assert shown.path == str(place.sandbox.broker(1).log_dirs[0])
    return shown


def test_a_stock_admin_sees_what_it_sees_without_a_gateway(tiered: Place) -> None:
    def ask(servers: str) -> ShownLogDir:
        shown = shown_by_java(tiered, servers)
        assert 0 < (shown.usable_bytes or 0) < VOLUME.size
        return replace(shown, usable_bytes=None)  # it moves by itself

    shown = shown_both_ways(tiered, ask)

    assert newest_offered(tiered.through) == 5
    assert shown.total_bytes == VOLUME.size
    assert shown.is_cordoned is False
    assert shown.sizes["tiered-0"] == size_on_disk(tiered, "tiered")


def test_a_stock_admin_learns_the_volumes_bytes_of_an_old_broker(old: Place) -> None:
    through, direct = shown_by_java(old, old.through), shown_by_java(old, old.direct)

    assert (newest_offered(old.direct), newest_offered(old.through)) == (3, 5)
    assert (direct.total_bytes, direct.usable_bytes) == (None, None)
    assert through.total_bytes == VOLUME.size
    assert 0 < (through.usable_bytes or 0) < VOLUME.size
    assert through.sizes == direct.sizes == {"plain-0": size_on_disk(old, "plain")}


@pytest.mark.parametrize("tiered", ["4.3.1"], indirect=True)
def test_both_versions_5_at_once_on_a_cordoned_log_dir(tiered: Place) -> None:
    """Only Kafka's own has a word for it; the other one is none the wiser, and not confused."""
    (log_dir,) = tiered.sandbox.broker(1).log_dirs
    cordon(tiered, str(log_dir))
    try:
        eventually(lambda: log_dir_of(tiered.direct, include_remote_info=False).is_cordoned is True)
        assert shown_by_java(tiered, tiered.through).is_cordoned is True
        eventually(lambda: described(tiered, include_remote_info=True).partitions["tiered", 0].remote > 0)
    finally:
        cordon(tiered, "")
    eventually(lambda: log_dir_of(tiered.through, include_remote_info=False).is_cordoned is False)


def cordon(place: Place, log_dirs: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changed = resource.AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=log_dirs)
    asked = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=4, resource_name="1", configs=[changed])], validate_only=False
    )
    with raw_connection(place.direct) as connection:
        answer = IncrementalAlterConfigsResponse.decode(connection.answers(request(asked, 1)), version=1, header=True)
    assert [each.error_code for each in answer.responses] == [0], answer


# --- our own


def shown_by_command(servers: str, *options: str) -> dict[str, Any]:
    """Without what differs from one look to the next: time, usable bytes, and the address that was asked.

    Brokers before 4.3 do not say whether a log dir is cordoned, because none is; a gateway says that.
    """
    patient = ("--timeout", str(int(PATIENCE_SECONDS)))
    done = brimline(
        "log-dirs", "--bootstrap-server", servers, "--output", "json", *patient, *options, timeout=2 * PATIENCE_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    for broker in document["brokers"]:
        del broker["observedAt"], broker["address"]
        for place in (*broker["volumes"], *broker["logDirs"]):
            assert place.pop("usableBytes") is not None
            place.pop("usedPercent", None)
        for log_dir in broker["logDirs"]:
            log_dir["isCordoned"] = bool(log_dir["isCordoned"])
    return document


@pytest.mark.parametrize("options", [[], ["--include-remote-info"], ["--include-remote-info", "--topic-list", "plain"]])
def test_the_command_shows_the_same(tiered: Place, options: list[str]) -> None:
    shown = shown_both_ways(tiered, lambda servers: shown_by_command(servers, *options))

    assert [len(broker["logDirs"]) for broker in shown["brokers"]] == [1]


def log_dir_of(servers: str, *, include_remote_info: bool) -> LogDirDescription:
    with Admin(ClientConfig.from_properties(servers)) as admin:
        patience = timedelta(seconds=PATIENCE_SECONDS)
        options = DescribeLogDirsOptions(include_remote_info=include_remote_info, timeout=patience)
        (log_dir,) = admin.describe_log_dirs(options=options)[BrokerId(1)].answer().values()
    return log_dir


@pytest.mark.parametrize("include_remote_info", [False, True])
def test_the_api_says_the_same(tiered: Place, *, include_remote_info: bool) -> None:
    def ask(servers: str) -> tuple[dict[TopicPartition, ReplicaInfo], object, object]:
        log_dir = log_dir_of(servers, include_remote_info=include_remote_info)
        return dict(log_dir.replica_infos), log_dir.total_bytes, log_dir.error

    shown, _, _ = shown_both_ways(tiered, ask)

    assert shown[TopicPartition("tiered", 0)].remote_size == (
        sum(remote_segments(tiered.sandbox, "tiered", 0).values()) if include_remote_info else None
    )


@pytest.mark.parametrize("include_remote_info", [False, True])
def test_the_api_knows_the_volumes_of_an_old_broker_from_its_gateway(old: Place, *, include_remote_info: bool) -> None:
    through, direct = (
        log_dir_of(servers, include_remote_info=include_remote_info) for servers in (old.through, old.direct)
    )

    assert dict(through.replica_infos) == dict(direct.replica_infos)
    assert (direct.total_bytes, direct.usable_bytes) == (None, None)
    assert through.total_bytes == VOLUME.size
    assert 0 < (through.usable_bytes or 0) < VOLUME.size


def test_the_command_knows_the_volumes_of_an_old_broker_from_its_gateway(old: Place) -> None:
    shown = shown_by_command(old.through)

    (log_dir,) = shown["brokers"][0]["logDirs"]
    assert log_dir["totalBytes"] == VOLUME.size

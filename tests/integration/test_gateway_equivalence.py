"""The same words to the broker and through the gateway get the same answer, byte for byte, but for what is documented.

Nothing is normalised: the frames are the same, correlation ids included, and so are the answers. Of a connection that
is closed only the end is compared, not the manner: a reset and an orderly end are both an end.

What a gateway that enforces changes on purpose: it adds its mark to ApiVersions. One that observes changes nothing.
(In front of brokers older than 4.3 both also offer a newer DescribeLogDirs: see ``test_gateway_describe``.)
"""

import struct
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, FindCoordinatorResponse

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from brimline.wire.api_versions import GATEWAY_API_KEY
from tests.integration.cluster import admin, create_topic, produce
from tests.integration.full_disks import NEVER_LATE
from tests.integration.gatewayed import gateway
from tests.integration.raw_kafka import byte_by_byte, framed, header, raw_connection, request
from tests.integration.repeatable_requests import BATCH, TOPIC, repeatable_requests, version_of
from tests.integration.test_same_answer_as_the_stock_tool import sorted_answer
from tests.waiting import eventually
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, encoded_request

pytestmark = pytest.mark.integration

PRODUCE, METADATA, API_VERSIONS = 0, 3, 18
FIRST_FLEXIBLE_API_VERSIONS = 3
COUNT_AT = 6
"""In an answer to ApiVersions: behind the correlation id and the error code."""
NOTHING_IS_FULL = {"disk.max.used.percent": "100", "disk.min.free.bytes": "0"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A broker that is left in peace, and a gateway before it."""

    sandbox: Sandbox
    is_enforcing: bool
    frames: dict[str, list[bytes]]

    @property
    def both_ways(self) -> tuple[str, str]:
        return self.sandbox.direct_servers, self.sandbox.bootstrap_servers


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    volume = VolumeSpec(size=Bytes(128 << 20))
    # Looking at a topic must not make it, and records from 1970 must stay
    at_rest = {"auto.create.topics.enable": "false", "log.retention.ms": "-1", **NEVER_LATE}
    with Sandbox(SandboxSpec(volumes=(volume, volume), fronted=True, properties=at_rest)) as running:
        create_topic(running, TOPIC, partitions=2)
        produce(running, TOPIC, 0.3)
        first = PlainRequest([PlainTopic(TOPIC, None, [Partition(1, BATCH)])])
        assert ask(running.direct_servers, framed(encoded_request(first, 9))) is not None
        # Whoever asks first for a coordinator has its topic made
        eventually(lambda: coordinator_is_known(running))
        yield running


@pytest.fixture(
    scope="module", params=["enforcing", "enforcing-with-a-fence", pytest.param("observing", marks=pytest.mark.long)]
)
def place(
    request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """With a fence somewhere else the gateway looks into every Produce request."""
    log = tmp_path_factory.mktemp("equivalence") / "gateway.log"
    is_enforcing = request.param != "observing"
    mode = {"brimline.enforcement": "gateway" if is_enforcing else "observe"}
    fence = {"topic": "somewhere-else", "reason": "to be looked at", "by": "test"}
    with gateway(sandbox, log, {**NOTHING_IS_FULL, **mode}) as running:
        if request.param != "enforcing":
            assert running.ask("fence", **fence)["ok"]
        yield Place(
            sandbox=sandbox,
            is_enforcing=is_enforcing,
            frames=dict(repeatable_requests(topic_id(sandbox))),
        )
        if request.param != "enforcing":
            assert running.ask("unfence", **fence)["ok"]


def topic_id(sandbox: Sandbox) -> UUID:
    with admin(sandbox) as client:
        found = client.topics([TOPIC])[TOPIC].topic_id
    assert found is not None
    return found


def coordinator_is_known(sandbox: Sandbox) -> bool:
    answer = ask(sandbox.direct_servers, request(FindCoordinatorRequest(key="group", key_type=0), 2))
    assert answer is not None
    return bool(FindCoordinatorResponse.decode(answer, version=2, header=True, framed=True).error_code == 0)


def ask(address: str, frame: bytes) -> bytes | None:
    with raw_connection(address) as connection:
        return connection.ask(frame)


@pytest.mark.parametrize("api", repeatable_requests(UUID(int=1)))
def test_every_version_of_an_api_is_answered_alike(place: Place, api: str) -> None:
    for frame in place.frames[api]:
        verify_answered_alike(place, frame)


def verify_answered_alike(place: Place, frame: bytes) -> None:
    """A broker's own figures may move between two looks: its metadata log grows, and so the usable bytes fall."""
    direct, through = place.both_ways
    eventually(lambda: (version_of(frame), ask(direct, frame)) == (version_of(frame), ask(through, frame)))


def test_a_conversation_at_once_and_in_single_bytes(place: Place) -> None:
    """Requests that come together are answered in their order; one that comes in the smallest pieces is understood."""
    frames = [
        frame
        for api in ("Metadata", "Produce", "ListOffsets", "Fetch", "OffsetFetch")
        for frame in place.frames[api]
        if ask(place.sandbox.direct_servers, frame) is not None
    ]
    numbered = [with_correlation_id(frame, number) for number, frame in enumerate(frames)]

    direct, through = (conversation(address, [b"".join(numbered)], len(frames)) for address in place.both_ways)
    in_pieces = conversation(place.sandbox.bootstrap_servers, byte_by_byte(b"".join(numbered[:20])), 20)

    assert len(frames) > 60
    assert None not in direct
    assert through == direct
    assert in_pieces == direct[:20]


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    return frame[:8] + struct.pack(">i", correlation_id) + frame[12:]


def conversation(address: str, pieces: Iterable[bytes], answers: int) -> list[bytes | None]:
    with raw_connection(address) as connection:
        for piece in pieces:
            connection.send(piece)
        return [connection.receive() for _ in range(answers)]


def test_without_acks_there_is_no_answer_and_after_a_mistake_no_connection(place: Place) -> None:
    duplicate, mistake = (
        framed(encoded_request(PlainRequest([PlainTopic(TOPIC, None, [Partition(number, BATCH)])], acks=0), 9))
        for number in (1, 77)
    )
    look = place.frames["Metadata"][9]

    direct, through = (conversation(address, [duplicate, look, mistake], 2) for address in place.both_ways)

    assert direct[0] is not None
    assert direct[1] is None
    assert through == direct


@pytest.mark.parametrize("version", range(5))
def test_api_versions_have_one_more_entry_and_are_equal_otherwise(place: Place, version: int) -> None:
    frame = request(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), version)

    def are_alike() -> bool:
        """The answer has the end of the metadata log in it (the epoch of features), and that may have grown."""
        direct, through = (ask(address, frame) for address in place.both_ways)
        assert direct is not None
        assert through is not None
        if place.is_enforcing:
            through = without_mark(through, is_flexible=version >= FIRST_FLEXIBLE_API_VERSIONS)
        return through == direct

    eventually(are_alike)


def without_mark(frame: bytes, *, is_flexible: bool) -> bytes:
    """Takes the one entry out again, and counts one less."""
    mark = struct.pack(">hhh", GATEWAY_API_KEY, 0, 0) + (b"\0" if is_flexible else b"")
    before, found, after = frame[4:].partition(mark)
    assert found
    count = struct.Struct(">b" if is_flexible else ">i")
    (entries,) = count.unpack_from(before, COUNT_AT)
    return framed(before[:COUNT_AT] + count.pack(entries - 1) + before[COUNT_AT + count.size :] + after)


def request_of(api_key: int, version: int, body: bytes) -> bytes:
    return framed(header(api_key, version, flexible=api_key == API_VERSIONS and version >= 3) + body)


BROKEN = {
    "ApiVersions of the future": request_of(API_VERSIONS, 99, b"\x04raw\x021\0"),
    "Metadata of the future": request_of(METADATA, 99, b"\0\0\0"),
    "an unknown API": request_of(999, 0, b""),
    "the gateway's mark as an API": request_of(GATEWAY_API_KEY, 0, b""),
    "a negative API": request_of(-5, 0, b""),
    "a negative version": request_of(METADATA, -1, b""),
    "Metadata that ends too soon": request_of(METADATA, 1, b"\0\0\0\x05"),
    "Produce that ends too soon": request_of(PRODUCE, 7, b"\xff\xff\xff"),
    "Produce with an absurd number of topics": request_of(PRODUCE, 7, b"\xff\xff\xff\xff\0\0\0\1\x7f\xff\xff\xff"),
    "ApiVersions without a name": request_of(API_VERSIONS, 3, b"\0\0\0"),
    "DescribeLogDirs of no layout": request_of(35, 5, b"\0\5\5\5"),
    "a head with a client id that is too long": framed(struct.pack(">hhih", METADATA, 1, 7, 500)),
    "half a head": framed(b"\0\3\0"),
    "an empty frame": framed(b""),
    "a negative length": struct.pack(">i", -1),
    "an absurd length": struct.pack(">i", 2**31 - 1),
    "another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_or_unknown_is_answered_or_ended_alike(place: Place, name: str) -> None:
    direct, through = (ask(address, BROKEN[name]) for address in place.both_ways)

    assert through == direct


def test_whoever_goes_away_in_the_middle_of_a_request_gets_nothing(place: Place) -> None:
    for address in place.both_ways:
        with raw_connection(address) as connection:
            connection.send(place.frames["Metadata"][9][:-3])
            connection.half_close()
            assert connection.receive() is None


@pytest.mark.parametrize("place", ["enforcing"], indirect=True)
def test_stock_tools_show_the_same(place: Place) -> None:
    """The direct way is the plain listener for the sandbox's owner: a client follows what its listener advertises."""
    sandbox = place.sandbox

    def output(asked: tuple[str, list[str]]) -> str:
        servers, (tool, *arguments) = asked
        done = sandbox.java_tool(tool, "--bootstrap-server", servers, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.replace(servers, "broker")

    ways = sandbox.admin_servers, sandbox.bootstrap_servers
    tools = ["topics", "--describe"], ["broker-api-versions"], ["log-dirs", "--describe"]
    with ThreadPoolExecutor(max_workers=2) as pool:
        topics, versions, log_dirs = (list(pool.map(output, [(way, tool) for way in ways])) for tool in tools)

    assert topics[0] == topics[1]
    assert TOPIC in topics[0]
    assert versions[1].count(f"UNKNOWN({GATEWAY_API_KEY}): 0") == 1
    assert versions[0] == versions[1].replace(f",\n\tUNKNOWN({GATEWAY_API_KEY}): 0", "")
    assert sorted_answer(log_dirs[0]) == sorted_answer(log_dirs[1])

"""Fetches through a forwarder on a listener over which followers fetch, as conversations of the three parties."""

import contextlib
import queue
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from brimline.decide.followers import SKIPPED_ERROR
from brimline.documents.orders import WithheldTopic
from brimline.gateway.counters import Counters, FetchCounters
from brimline.gateway.net.connection import Connection, Judge
from brimline.gateway.rules.fetch_rule import FetchRule, fetch_rules
from brimline.gateway.rules.follower_orders import FollowerSkips
from brimline.wire.fetch import MAX_VERSION, MIN_VERSION
from brimline.wire.request_stream import Request as CollectedRequest
from tests.gateway.peers import Backend, Client, frame, requests_from, running
from tests.waiting import PATIENCE_SECONDS
from tests.wire.fetch_messages import (
    Answer,
    AnsweredPartition,
    AnsweredTopic,
    Forgotten,
    Partition,
    Request,
    Topic,
    answer_in,
    answer_read_by_oracle,
    encoded_answer,
    encoded_request,
    request_in,
    request_read_by_oracle,
)

FETCH = 1
VERSION = 18
FULL_FOLLOWER, OTHER_FOLLOWER, CONSUMER = 2, 3, -1
TOPIC_ID = UUID("5e3c1f0a-7d0b-4a87-b4d4-c70616313919")
SKIPPED, HEALTHY = 0, 1
INVALID_EPOCH = 71


def topic(*partitions: Partition) -> Topic:
    return Topic("orders", TOPIC_ID, [*partitions])


def forgotten(*partitions: int) -> Forgotten:
    return Forgotten("orders", TOPIC_ID, [*partitions])


def answered(*partitions: AnsweredPartition) -> AnsweredTopic:
    return AnsweredTopic("orders", TOPIC_ID, [*partitions])


REFUSED = AnsweredPartition(SKIPPED, SKIPPED_ERROR, aborted=[])
EVERYTHING = Request(topics=[topic(Partition(SKIPPED, 40), Partition(HEALTHY, 70))])
NEXT = Request(session_id=9, session_epoch=1)
RECORDS = b"r" * 3000


class EverythingElsePasses:
    def wants(self, api_key: int, _version: int) -> bool:
        return api_key == 77

    def judge(self, connection: Connection, request: CollectedRequest) -> None:
        connection.answer(frame(request.correlation_id.to_bytes(4) + b"judged by the others"))


class Broker(Backend):
    """Answers every request with what it was told to answer, and shows the request as it came."""

    def __init__(self) -> None:
        self.answers: queue.Queue[bytes] = queue.Queue()
        self.requests: queue.Queue[bytes] = queue.Queue()
        super().__init__(self._answer)

    def _answer(self, sock: socket.socket) -> None:
        for request in requests_from(sock):
            self.requests.put(request)
            sock.sendall(self.answers.get(timeout=PATIENCE_SECONDS))


@dataclass
class Three:
    """A client, the gateway and the broker."""

    client: Client
    broker: Broker
    skips: FollowerSkips
    counters: FetchCounters
    version: int = VERSION
    asked: int = 0

    def skip(self, *partitions: int, follower: int = FULL_FOLLOWER) -> None:
        self.skips.put(
            {follower: [WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=partitions)]}, epoch=1, seconds=60
        )

    def release(self) -> None:
        self.skips.put({}, epoch=2, seconds=60)

    def say(self, request: Request, answer: Answer) -> tuple[Request, Answer]:
        """What the broker gets for the client's request, and the client for the broker's answer."""
        self.asked += 1
        payload = encoded_answer(answer, self.version, self.asked)
        self.broker.answers.put(frame(payload))
        self.client.send(frame(encoded_request(request, self.version, self.asked)))
        got = self.client.read_frame()
        sent = self.broker.requests.get(timeout=PATIENCE_SECONDS)
        return request_read_by_oracle(sent, self.version), answer_read_by_oracle(got, self.version)

    def passes(self, request: Request, answer: Answer) -> bool:
        """Whether this exchange is not changed."""
        wanted = request_in(self.version, request), answer_in(self.version, answer)
        return self.say(request, answer) == wanted

    def begin_session(self) -> None:
        """A full fetch: the skipped partition is probed."""
        self.say(
            EVERYTHING,
            Answer(
                [answered(AnsweredPartition(SKIPPED, 0, 99, records=RECORDS), AnsweredPartition(HEALTHY, 0, 70))],
                session_id=9,
            ),
        )


@pytest.fixture
def three() -> Iterator[Three]:
    skips = FollowerSkips()
    kept: list[FetchCounters] = []

    def rules(others: Judge, counters: Counters) -> Callable[[], Judge]:
        kept.append(counters.fetches)
        return fetch_rules(others, skips, counters.fetches)

    with (
        contextlib.closing(Broker()) as broker,
        running(broker.address, judge=lambda _loop, _counters: EverythingElsePasses(), connection_judge=rules) as gate,
        Client(gate.address) as client,
    ):
        yield Three(client, broker, skips, kept[0])


HAS_RECORDS = Answer([answered(AnsweredPartition(SKIPPED, 0, 99, records=RECORDS))], session_id=9)


def test_while_nothing_is_skipped_everything_passes(three: Three) -> None:
    assert three.passes(EVERYTHING, HAS_RECORDS)


@pytest.mark.parametrize("who", [CONSUMER, OTHER_FOLLOWER])
@pytest.mark.parametrize("version", range(12, 19))
def test_somebody_elses_fetches_pass(three: Three, who: int, version: int) -> None:
    three.version = version
    three.skip(SKIPPED)

    assert three.passes(replace(EVERYTHING, replica_id=who), HAS_RECORDS)
    assert three.passes(replace(NEXT, replica_id=who), HAS_RECORDS)
    assert three.counters == FetchCounters()


@pytest.mark.parametrize("version", range(12, 19))
def test_the_skipped_partition_is_let_through_without_its_records(three: Three, version: int) -> None:
    three.version = version
    three.skip(SKIPPED)
    skipped = AnsweredPartition(SKIPPED, 0, 99, 98, 55, records=RECORDS)
    healthy = AnsweredPartition(HEALTHY, 0, 80, 79, 3, records=RECORDS)

    asked, got = three.say(EVERYTHING, Answer([answered(skipped, healthy)], session_id=9))

    assert asked == request_in(
        version, replace(EVERYTHING, topics=[topic(Partition(SKIPPED, 40, max_bytes=1), Partition(HEALTHY, 70))])
    )
    emptied = replace(skipped, records=b"", log_start_offset=40)
    assert got == answer_in(version, Answer([answered(emptied, healthy)], session_id=9))
    assert three.counters.withheld_bytes == len(RECORDS)


def test_then_it_is_refused_until_the_follower_asks_anew(three: Three) -> None:
    three.skip(SKIPPED)
    three.begin_session()
    healthy = answered(AnsweredPartition(HEALTHY, 0, 90, records=RECORDS))

    asked, got = three.say(NEXT, Answer([healthy], session_id=9))
    assert asked == request_in(VERSION, replace(NEXT, forgotten=[forgotten(SKIPPED)]))
    assert got == answer_in(
        VERSION, Answer([replace(healthy, partitions=[*healthy.partitions, REFUSED])], session_id=9)
    )

    backed_off = replace(NEXT, session_epoch=2, forgotten=[forgotten(SKIPPED)])
    assert three.passes(backed_off, Answer([healthy], session_id=9))

    anew = replace(NEXT, session_epoch=3, topics=[topic(Partition(SKIPPED, 40))])
    asked, got = three.say(anew, HAS_RECORDS)
    assert asked == request_in(VERSION, replace(anew, topics=[topic(Partition(SKIPPED, 40, max_bytes=1))]))
    assert got == answer_in(VERSION, Answer([answered(AnsweredPartition(SKIPPED, 0, 99))], session_id=9))
    assert (three.counters.probed, three.counters.skipped, three.counters.rewritten) == (2, 1, 3)


def test_an_answer_without_anything_gets_the_refusal(three: Three) -> None:
    three.skip(SKIPPED)
    three.begin_session()

    _, got = three.say(NEXT, Answer(session_id=9))

    assert got == answer_in(VERSION, Answer([answered(REFUSED)], session_id=9))


def test_a_session_that_began_unseen_is_ended_by_way_of_the_broker(three: Three) -> None:
    assert three.passes(EVERYTHING, HAS_RECORDS)
    three.skip(SKIPPED)
    refused = Answer(error_code=INVALID_EPOCH)

    asked, got = three.say(NEXT, refused)

    assert asked == request_in(VERSION, replace(NEXT, session_epoch=2))
    assert got == answer_in(VERSION, refused)
    assert three.counters.restarted == 1


def test_a_released_partition_passes_and_the_connection_is_left_alone(three: Three) -> None:
    three.skip(SKIPPED)
    three.begin_session()
    three.say(NEXT, Answer(session_id=9))
    three.release()

    assert three.passes(replace(NEXT, session_epoch=2, forgotten=[forgotten(SKIPPED)]), Answer(session_id=9))
    anew = replace(NEXT, session_epoch=3, topics=[topic(Partition(SKIPPED, 40))])
    assert three.passes(anew, HAS_RECORDS)
    assert three.passes(replace(NEXT, session_epoch=4), HAS_RECORDS)


def test_a_release_right_after_the_probe_takes_back_the_limit_of_one_byte(three: Three) -> None:
    three.skip(SKIPPED)
    three.begin_session()
    three.release()

    asked, got = three.say(NEXT, Answer(session_id=9))

    assert asked == request_in(VERSION, replace(NEXT, forgotten=[forgotten(SKIPPED)]))
    assert got == answer_in(VERSION, Answer([answered(REFUSED)], session_id=9))


def test_a_fetch_of_which_nothing_is_left_is_answered_by_the_broker_all_the_same(three: Three) -> None:
    three.skip(SKIPPED)
    alone = Request(topics=[topic(Partition(SKIPPED, 40))])
    three.say(alone, HAS_RECORDS)

    asked, got = three.say(alone, Answer())

    assert asked == request_in(VERSION, Request(session_epoch=-1))
    assert got == answer_in(VERSION, Answer([answered(REFUSED)]))


def test_an_error_of_the_whole_answer_passes(three: Three) -> None:
    three.skip(SKIPPED)
    three.begin_session()
    gone = Answer(error_code=70)

    _, got = three.say(NEXT, gone)

    assert got == answer_in(VERSION, gone)


def test_many_large_records_arrive_whole(three: Three) -> None:
    three.skip(SKIPPED)
    large = [AnsweredPartition(number, 0, 1, records=bytes([number]) * (1 << 20)) for number in range(1, 6)]

    _, got = three.say(EVERYTHING, Answer([answered(AnsweredPartition(SKIPPED, 0, 9, records=RECORDS), *large)]))

    assert got.topics[0].partitions[0].records == b""
    assert got.topics[0].partitions[1:] == large


def test_after_an_answer_that_cannot_be_read_the_follower_begins_anew_and_is_left_alone(three: Three) -> None:
    three.skip(SKIPPED)
    three.asked += 1
    garbage = frame((1).to_bytes(4) + bytes(7) + b"garbage")
    three.broker.answers.put(garbage)
    three.client.send(frame(encoded_request(EVERYTHING, VERSION, 1)))
    assert three.client.read_frame() == garbage
    three.broker.requests.get(timeout=PATIENCE_SECONDS)

    asked, _ = three.say(NEXT, Answer(error_code=INVALID_EPOCH))
    assert asked.session_epoch == 2
    assert three.passes(EVERYTHING, HAS_RECORDS)
    assert three.counters.not_understood == 1


def test_a_request_that_cannot_be_read_passes(three: Three) -> None:
    three.skip(SKIPPED)
    odd = frame(encoded_request(EVERYTHING, VERSION, 1) + b"\0")
    three.broker.answers.put(frame((1).to_bytes(4) + b"whatever"))

    three.client.send(odd)

    assert three.client.read_frame() == frame((1).to_bytes(4) + b"whatever")
    assert three.broker.requests.get(timeout=PATIENCE_SECONDS) == odd
    assert three.counters.passed_unread == 1


@pytest.mark.parametrize("version", [MIN_VERSION - 1, MAX_VERSION + 1])
def test_a_version_that_is_not_known_passes_and_is_counted_while_something_is_skipped(
    three: Three, version: int
) -> None:
    later = frame(b"\0\1" + version.to_bytes(2) + (1).to_bytes(4) + b"\xff\xff" + b"of another version")
    counted = []
    for is_skipped in (False, True):
        if is_skipped:
            three.skip(SKIPPED)
        three.broker.answers.put(frame((1).to_bytes(4) + b"whatever"))
        three.client.send(later)
        assert three.client.read_frame() == frame((1).to_bytes(4) + b"whatever")
        assert three.broker.requests.get(timeout=PATIENCE_SECONDS) == later
        counted.append(three.counters.passed_unread)

    assert counted == [0, 1]


def test_everything_but_fetch_is_judged_as_on_any_listener(three: Three) -> None:
    three.skip(SKIPPED)
    three.client.send(frame(b"\0\x4d\0\0" + (5).to_bytes(4) + b"\xff\xff"))

    assert three.client.read_frame().endswith(b"judged by the others")


class TestWhatIsLookedAt:
    """``wants`` decides it, with every request: what it refuses passes uncollected."""

    @pytest.fixture
    def skips(self) -> FollowerSkips:
        return FollowerSkips()

    @pytest.fixture
    def rule(self, skips: FollowerSkips) -> FetchRule:
        return FetchRule(EverythingElsePasses(), skips, FetchCounters())

    def test_nothing_while_nothing_is_skipped(self, rule: FetchRule) -> None:
        assert not rule.wants(FETCH, VERSION)

    def test_only_versions_that_are_understood(self, rule: FetchRule, skips: FollowerSkips) -> None:
        skips.put({2: [WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=(0,))]}, epoch=1, seconds=60)

        assert [version for version in range(25) if rule.wants(FETCH, version)] == list(range(12, 19))

    def test_no_connection_of_a_consumer_after_its_first_fetch(self, rule: FetchRule, skips: FollowerSkips) -> None:
        skips.put({2: [WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=(0,))]}, epoch=1, seconds=60)
        assert rule.wants(FETCH, VERSION)

        rule.judge(_Sink(), _collected(replace(EVERYTHING, replica_id=CONSUMER)))  # type: ignore[arg-type]

        assert not rule.wants(FETCH, VERSION)

    def test_no_connection_of_a_follower_with_room_after_its_first_fetch(
        self, rule: FetchRule, skips: FollowerSkips
    ) -> None:
        skips.put({2: [WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=(0,))]}, epoch=1, seconds=60)
        rule.judge(_Sink(), _collected(replace(EVERYTHING, replica_id=3)))  # type: ignore[arg-type]
        assert not rule.wants(FETCH, VERSION)

        skips.put({3: [WithheldTopic(topic="orders", topic_id=TOPIC_ID, partitions=(0,))]}, epoch=2, seconds=60)
        assert rule.wants(FETCH, VERSION)


class _Sink:
    def forward(self, *_: object) -> None:
        pass


def _collected(request: Request) -> CollectedRequest:
    return CollectedRequest(FETCH, VERSION, 7, bytearray(frame(encoded_request(request, VERSION))))

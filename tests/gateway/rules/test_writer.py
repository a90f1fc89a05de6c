"""Who may change what is remembered of refused producers: only whom the broker lets write."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from brimline.decide.sequences import RefusedSequence
from brimline.gateway.rules import writer
from brimline.gateway.rules.sequence_memory import SequenceMemory, key_of
from brimline.wire import produce
from brimline.wire.produce_response import Refusal, refusing_response
from tests.gateway.peers import Client, Clock, Running, answer_of, frame, requests_from
from tests.gateway.test_hostile import FREE_ID, FULL_ID, INVALID_RECORD, real_rules
from tests.waiting import PATIENCE_SECONDS, eventually
from tests.wire.produce_messages import (
    Partition,
    PlainRequest,
    PlainTopic,
    answer_read_by_oracle,
    batch,
    encoded_request,
)

TOPIC_AUTHORIZATION_FAILED, OUT_OF_ORDER, KAFKA_STORAGE_ERROR = 29, 45, 56
BY_NAME, BY_ID = 9, 13
TOKEN = 36
IDS = {"full": FULL_ID, "free": FREE_ID}


class Broker:
    """Turns whole topics away; takes everything else that has records. ``saw`` is what came, as bytes of records."""

    def __init__(self, turns_away: Mapping[str, int] | None = None) -> None:
        self._codes = turns_away or {}
        self.saw: list[dict[str, int]] = []

    def __call__(self, sock: socket.socket) -> None:
        for asked in requests_from(sock):
            self.answer(sock, asked)

    def answer(self, sock: socket.socket, asked: bytes) -> None:
        version = int.from_bytes(asked[6:8])
        index = produce.index_produce(memoryview(asked)[4:], version)
        names = {topic_id: name for name, topic_id in IDS.items()}
        topics = {part: part.topic or names[part.topic_id or FREE_ID] for part in index.parts}
        self.saw.append({f"{topics[part]}-{part.partition}": part.records_bytes for part in index.parts})
        says = [
            Refusal(part, self._codes.get(topics[part], 0 if part.records_bytes else INVALID_RECORD), None)
            for part in index.parts
        ]
        if index.acks:
            with suppress(OSError):  # whoever asked may have gone
                sock.sendall(refusing_response(version, int.from_bytes(asked[8:12]), says))

    @property
    def looks(self) -> int:
        return sum(not any(parts.values()) for parts in self.saw)


@contextmanager
def rules(tmp_path: Path, serve: Callable[[socket.socket], None]) -> Iterator[tuple[Running, SequenceMemory]]:
    memory = SequenceMemory(tmp_path / "sequences.map", now=0, capacity=1_000)
    with real_rules(tmp_path, serve=serve, memory=memory) as gateway:
        yield gateway, memory


def produced(
    *parts: tuple[str, int], producer_id: int = 5, sequence: int = 3, version: int = BY_NAME, acks: int = -1
) -> bytes:
    records = batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    topics = [PlainTopic(name, IDS[name], [Partition(number, records)]) for name, number in parts]
    return frame(encoded_request(PlainRequest(topics=topics, acks=acks), version))


def codes(client: Client, version: int = BY_NAME) -> list[int]:
    answer = answer_read_by_oracle(client.read_frame(), version)
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_whoever_is_let_in_is_remembered_after_one_look(tmp_path: Path, version: int) -> None:
    broker = Broker()
    with rules(tmp_path, broker) as (gateway, memory), Client(gateway.address) as client:
        for sequence in (3, 4, 5):
            client.send(produced(("full", 0), sequence=sequence, version=version))
            assert codes(client, version) == [KAFKA_STORAGE_ERROR]
        assert memory.get(key_of(5, "full", 0)) == RefusedSequence(epoch=0, sequence=3, refused_at=0)

    assert broker.saw == [{"full-0": 0}]


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_whoever_is_turned_away_is_not_remembered_and_hears_the_broker(tmp_path: Path, version: int) -> None:
    broker = Broker({"full": TOPIC_AUTHORIZATION_FAILED})
    with rules(tmp_path, broker) as (gateway, memory), Client(gateway.address) as client:
        for _ in range(2):
            client.send(produced(("full", 0), ("free", 1), version=version))
            assert sorted(codes(client, version)) == [0, TOPIC_AUTHORIZATION_FAILED]
        assert memory.is_empty
        assert not gateway.counters.refused.rows

    assert broker.looks == 2  # that there is no right is not believed for long
    assert all(parts.get("full-0", 0) == 0 for parts in broker.saw)


def test_whoever_is_turned_away_frees_nothing_that_is_held_back(tmp_path: Path) -> None:
    broker = Broker({"free": TOPIC_AUTHORIZATION_FAILED})
    entry = RefusedSequence(epoch=0, sequence=3, refused_at=0)
    with rules(tmp_path, broker) as (gateway, memory), Client(gateway.address) as client:
        memory.put(key_of(5, "free", 0), entry)
        for sequence in (3, 0, 4):
            client.send(produced(("free", 0), sequence=sequence))
            assert codes(client) == [TOPIC_AUTHORIZATION_FAILED]
        client.send(produced(("free", 0), acks=0))
        eventually(lambda: len(broker.saw) == 6)
        assert memory.get(key_of(5, "free", 0)) == entry


def test_the_producer_himself_frees_it(tmp_path: Path) -> None:
    broker = Broker()
    with rules(tmp_path, broker) as (gateway, memory), Client(gateway.address) as client:
        memory.put(key_of(5, "free", 0), RefusedSequence(epoch=0, sequence=3, refused_at=0))
        client.send(produced(("free", 0), sequence=3) + produced(("free", 0), sequence=4))
        assert [codes(client), codes(client)] == [[0], [0]]
        assert memory.is_empty

    assert broker.looks == 1


def test_what_is_sent_behind_waits_its_turn(tmp_path: Path) -> None:
    """Also behind a request that waits twice: for the folders, since nobody has seen its second partition, and then."""
    broker = Broker()
    with rules(tmp_path, broker) as (gateway, _), Client(gateway.address) as client:
        client.send(produced(("full", 0), ("free", 9)) + produced(("free", 0)) + produced(("full", 1), ("free", 1)))
        assert [codes(client) for _ in range(3)] == [[0, 56], [0], [0, 56]]

    assert [set(parts) for parts in broker.saw] == [{"full-0"}, {"free-9"}, {"free-0"}, {"free-1"}]


def test_a_broker_that_closes_instead_of_answering(tmp_path: Path) -> None:
    """As it does to whoever has not logged in."""

    def close_after_one(sock: socket.socket) -> None:
        next(requests_from(sock))

    with rules(tmp_path, close_after_one) as (gateway, memory), Client(gateway.address) as client:
        client.send(produced(("full", 0)))
        assert client.read_frame() == b""
        eventually(lambda: gateway.forwarder.all_open == 0)
        assert memory.is_empty


class SlowBroker(Broker):
    """Is asked, and answers only when it may. Tokens it answers at once."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def __call__(self, sock: socket.socket) -> None:
        for asked in requests_from(sock):
            if asked[4:6] == TOKEN.to_bytes(2):
                sock.sendall(answer_of(asked))
            else:
                self.is_asked.set()
                self.may_answer.wait(PATIENCE_SECONDS)
                self.answer(sock, asked)


def test_a_client_that_goes_while_the_broker_is_asked(tmp_path: Path) -> None:
    broker = SlowBroker()
    with rules(tmp_path, broker) as (gateway, memory):
        with Client(gateway.address) as client:
            client.send(produced(("full", 0)) + produced(("free", 0)) * 1_000)
            assert broker.is_asked.wait(PATIENCE_SECONDS)
            client.reset()
        eventually(lambda: gateway.forwarder.all_open == 0)
        assert gateway.forwarder.kept_bytes == 0
        broker.may_answer.set()
        with Client(gateway.address) as client:
            client.send(produced(("free", 0)))
            assert codes(client) == [0]
        assert memory.is_empty


def test_whoever_has_logged_in_waits_for_the_broker_as_long_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that tells of his rights is not his; but the one to his token was."""
    clock, broker = Clock(), SlowBroker()
    monkeypatch.setattr("brimline.gateway.net.forwarder._SWEEP_SECONDS", 0.1)
    for module in ("forwarder", "connection", "lifetime", "held"):
        monkeypatch.setattr(f"brimline.gateway.net.{module}.time", clock)
    with (
        real_rules(tmp_path, serve=broker, login_timeout=100.0) as gateway,
        Client(gateway.address) as client,
        Client(gateway.address) as stranger,
    ):
        client.ask(TOKEN)
        client.send(produced(("full", 0)))
        assert broker.is_asked.wait(PATIENCE_SECONDS)
        stranger.send(produced(("full", 0)))
        gateway.let_pass(101.0, clock)
        eventually(lambda: gateway.closed == {"not-logged-in": 1})
        broker.may_answer.set()
        assert codes(client) == [KAFKA_STORAGE_ERROR]


def test_a_connection_has_its_bound_and_ends_beyond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MOST_ENTRIES", 2)
    with rules(tmp_path, Broker()) as (gateway, memory), Client(gateway.address) as client:
        for producer_id in (1, 2):
            client.send(produced(("full", 0), producer_id=producer_id))
            assert codes(client) == [KAFKA_STORAGE_ERROR]
        client.send(produced(("full", 0), producer_id=3))
        assert client.read_frame() == b""
        eventually(lambda: gateway.closed == {"too-many-producers": 1})
        assert memory.held == 2


def test_a_request_without_acks_changes_nothing(tmp_path: Path) -> None:
    with rules(tmp_path, Broker()) as (gateway, memory), Client(gateway.address) as client:
        client.send(produced(("full", 0), acks=0))
        assert client.read_frame() == b""
        assert memory.is_empty


def test_of_kafkajs_nothing_passes_if_a_part_is_refused(tmp_path: Path) -> None:
    """It would take what was stored for failed, and its next record under that sequence would be lost."""
    broker = Broker()
    with rules(tmp_path, broker) as (gateway, memory), Client(gateway.address) as client:
        client.send(produced(("full", 0), ("free", 0), version=7))
        assert codes(client, 7) == [KAFKA_STORAGE_ERROR] * 2
        client.send(produced(("free", 0), sequence=4, version=7))
        assert codes(client, 7) == [OUT_OF_ORDER]
        client.send(produced(("free", 0), version=7))
        assert codes(client, 7) == [0]
        assert memory.held == 1
        assert {row.client for row in gateway.counters.refused.rows} == {"kafkajs"}

    assert [set(parts) for parts in broker.saw] == [{"full-0", "free-0"}, {"free-0"}]
    assert [sum(parts.values()) > 0 for parts in broker.saw] == [False, True]


def test_without_acks_kafkajs_loses_only_what_is_refused(tmp_path: Path) -> None:
    broker = Broker()
    with rules(tmp_path, broker) as (gateway, _), Client(gateway.address) as client:
        client.send(produced(("full", 0), ("free", 0), version=7, acks=0))
        assert client.read_frame() == b""
        eventually(lambda: [set(parts) for parts in broker.saw] == [{"free-0"}])

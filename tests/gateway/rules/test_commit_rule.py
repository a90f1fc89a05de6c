"""Which commits the gateway answers in the broker's stead, and what passes."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.protocol.consumer import OffsetCommitResponse

from brimline.decide.commits import OFFSETS_TOPIC, OffsetsTopic
from brimline.gateway.net.connection import Connection
from brimline.gateway.rules.commit_rule import MOST_GROUPS, SPELL, CommitCount, CommitRule
from brimline.gateway.rules.fences import Fences
from brimline.gateway.rules.follower_orders import FencedFollower
from brimline.gateway.rules.placement import Placement
from brimline.wire.request_header import OFFSET_COMMIT
from brimline.wire.request_stream import Request
from tests.gateway.peers import PASSES, Backend, Client, Running, frame, request, requests_from, running
from tests.waiting import eventually
from tests.wire.offset_commits import VERSIONS, offset_commit

OFFSETS = OffsetsTopic(partitions=3, led=(0, 1))
FULL, ELSEWHERE, FREE = "a", "b", "c"
"""Groups by their partitions: 97, 98 and 99 modulo 3 are 1, 2 and 0."""
PLACEMENT = Placement(log_dirs={(OFFSETS_TOPIC, 1): "/full", (OFFSETS_TOPIC, 0): "/free", (OFFSETS_TOPIC, 2): "/full"})


class CommitsOnly:
    """The rule alone; everything else passes."""

    def __init__(self, rule: CommitRule) -> None:
        self._rule = rule

    def wants(self, api_key: int, _version: int) -> bool:
        return api_key == OFFSET_COMMIT and self._rule.wants

    def judge(self, connection: Connection, asked: Request) -> None:
        self._rule.judge(connection, asked)


def pass_all(sock: socket.socket) -> None:
    for asked in requests_from(sock):
        sock.sendall(passed(asked))


def passed(asked: bytes) -> bytes:
    return frame(asked[8:12] + b"passed")


@pytest.fixture
def fences(tmp_path: Path) -> Fences:
    return Fences(state_dir=tmp_path, node_id=1, log_dirs=["/full", "/free"])


@pytest.fixture
def rule(fences: Fences) -> CommitRule:
    made = CommitRule(fences, lambda: PLACEMENT, lambda: OFFSETS)
    made.is_on, made.past_line = True, frozenset({"/full"})
    return made


@contextlib.contextmanager
def ruled(rule: CommitRule, *, needs_login: bool = False) -> Iterator[tuple[Running, Client]]:
    with (
        contextlib.closing(Backend(pass_all)) as backend,
        running(backend.address, judge=lambda _loop, _counters: CommitsOnly(rule), needs_login=needs_login) as gateway,
        Client(gateway.address) as client,
    ):
        yield gateway, client


def commit(group: str, version: int = 9) -> bytes:
    return frame(offset_commit(version, group))


def is_passed(client: Client, asked: bytes) -> bool:
    client.send(asked)
    return client.read_frame() == passed(asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_refused_are_groups_whose_log_is_past_its_line(rule: CommitRule, version: int) -> None:
    with ruled(rule) as (_, client):
        client.send(commit(FULL, version))
        answer = OffsetCommitResponse.decode(client.read_frame()[4:], version=version, header=True)
        passed_on = [is_passed(client, commit(group, version)) for group in (FREE, ELSEWHERE)]

    assert {each.error_code for topic in answer.topics for each in topic.partitions} == {14}
    assert passed_on == [True, True]
    assert rule.count.requests == 1


def test_answers_keep_the_order_of_their_questions(rule: CommitRule) -> None:
    asked = [commit(FREE), request(PASSES, 1), commit(FULL), request(PASSES, 2), commit(FULL), commit(FREE)]
    with ruled(rule) as (_, client):
        client.send(b"".join(asked))
        answers = [client.read_frame() for _ in asked]

    assert [answer == passed(sent) for sent, answer in zip(asked, answers, strict=True)] == [
        sent != commit(FULL) for sent in asked
    ]
    assert [answer[4:8] for answer in answers] == [sent[8:12] for sent in asked]


def test_a_follower_past_its_line_counts_too_and_only_for_what_is_led_here(rule: CommitRule, fences: Fences) -> None:
    rule.past_line = frozenset()
    partitions = tuple((OFFSETS_TOPIC, number) for number in (0, 2))
    with ruled(rule) as (_, client):
        before = [is_passed(client, commit(group)) for group in (FULL, FREE, ELSEWHERE)]
        fences.lease_followers([FencedFollower(broker=2, reason="full", partitions=partitions)], epoch=1, seconds=60)
        after = [is_passed(client, commit(group)) for group in (FULL, FREE, ELSEWHERE)]

    assert before == [True, True, True]
    assert after == [True, False, True]


def off(rule: CommitRule) -> None:
    rule.is_on = False


def has_room(rule: CommitRule) -> None:
    rule.past_line = frozenset()


@pytest.mark.parametrize("nothing_is_refused", [off, has_room])
def test_otherwise_no_commit_is_looked_at(rule: CommitRule, nothing_is_refused: Callable[[CommitRule], None]) -> None:
    nothing_is_refused(rule)

    assert not rule.wants


def test_where_groups_commit_is_not_guessed(fences: Fences) -> None:
    rule = CommitRule(fences, lambda: PLACEMENT, lambda: None)
    rule.is_on, rule.past_line = True, frozenset({"/full"})
    with ruled(rule) as (_, client):
        assert is_passed(client, commit(FULL))


def test_one_that_cannot_be_read_ends_its_connection_after_what_came_before(rule: CommitRule) -> None:
    sound = commit(FREE)
    broken = frame(offset_commit(9, FULL)[:-5])
    with ruled(rule) as (gateway, client):
        client.send(sound + broken + sound)
        answers = client.read_to_end()
        eventually(lambda: gateway.closed == {"unreadable-commit": 1})

    assert answers == passed(sound)


def test_who_has_not_logged_in_is_the_brokers_to_answer(rule: CommitRule) -> None:
    with ruled(rule, needs_login=True) as (_, client):
        assert is_passed(client, commit(FULL))


def test_the_largest_committers_of_a_spell_are_named() -> None:
    count = CommitCount()
    for number in range(3 * MOST_GROUPS):
        count.add("large", 1000, 0.0)
        count.add(f"small-{number}", 10, 0.0)
    count.add("with\nlines", 50_000, 1.0)

    state = count.state(SPELL)
    assert [each.group for each in state.largest[:2]] == ["large", "with?lines"]
    assert state.largest[0].bytes == 3000 * MOST_GROUPS
    assert state.requests == 6 * MOST_GROUPS + 1
    assert len(count.groups) <= MOST_GROUPS

    over = count.state(1.0 + SPELL + 1)
    assert (over.largest, over.requests) == ((), state.requests)
    count.add("next", 1, 1.0 + SPELL + 1)
    assert [each.group for each in count.state(1.0 + SPELL + 1).largest] == ["next"]

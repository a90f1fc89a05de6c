"""What the doctor says of followers: the action and why, what is in the way, whose disks cannot be seen, cordons."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from brimline.act.replica_throttle import Held
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.guard.followers.findings import explain_followers, explain_throttle
from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind
from tests.decide.test_peer_disks import SILENCE, answer, described, silence
from tests.guard.files import config
from tests.settings.test_layout import FRONTED

ENFORCING = "brimline.enforcement=gateway\ndisk.max.used.percent=90\ndisk.min.free.bytes=0\n"
REPLICATING = FRONTED.replace("inter.broker.listener.name=ADMIN", "inter.broker.listener.name=CLIENT")
THROUGH_IT = f"{ENFORCING}brimline.gateway.listeners=CLIENT://:9092\nbrimline.admin.listener=ADMIN\n"
DIRECT = FRONTED.replace("127.0.0.1:19092", "0.0.0.0:9092")
OWN = BrokerId(7)
OTHERS = {OWN: answer(described(500)), BrokerId(2): answer(described(500))}


def said(findings: Iterable[Finding], *words: str) -> Weight:
    (found,) = (each for each in findings if all(word in each.sentence for word in words))
    return found.weight


def explained(
    added: str = ENFORCING, answers: dict[BrokerId, BrokerLogDirs] | Failure | None = None, broker: str = FRONTED
) -> list[Finding]:
    return list(explain_followers(config(added, broker), OTHERS if answers is None else answers))


def test_a_reserve_where_followers_fetch_past_the_gateway() -> None:
    assert said(explained(), "reserve, because followers do not fetch through the gateway") is Weight.FINE


def test_skip_where_they_fetch_through_it() -> None:
    assert (
        said(explained(THROUGH_IT, broker=REPLICATING), "skip, because followers fetch through the gateway")
        is Weight.FINE
    )


@pytest.mark.parametrize(
    ("added", "broker", "why"),
    [
        (f"{ENFORCING}brimline.follower.action=skip\n", FRONTED, "add the replication listener"),
        (f"{ENFORCING}brimline.follower.action=fence\n", DIRECT, "no listener of this broker goes through a gateway"),
    ],
)
def test_a_wish_that_cannot_be_granted_is_a_problem(added: str, broker: str, why: str) -> None:
    findings = explained(added, broker=broker)

    assert said(findings, "brimline.follower.action says so", "this cannot be done", why) is Weight.PROBLEM


def test_one_that_observes_says_what_it_would_do() -> None:
    assert (
        said(explained(""), "with brimline.enforcement=gateway, when a follower's disk is full: reserve") is Weight.NOTE
    )


def test_a_broker_alone_has_no_followers() -> None:
    assert explained("", {OWN: answer(described(500))}) == []
    assert list(explain_followers(config("", FRONTED), None)) == []


def test_whose_disks_are_seen_and_whose_are_not() -> None:
    findings = explained(
        answers={
            OWN: answer(described(500)),
            BrokerId(2): answer(described(500)),
            BrokerId(3): answer(described(50)),
            BrokerId(4): silence(),
            BrokerId(5): answer(described(None)),
        }
    )

    assert said(findings, "the disks of brokers 2, 3 are known") is Weight.FINE
    assert said(findings, "broker 3 has no room: log dir /a is 95.0 % used") is Weight.WARNING
    assert said(findings, "disks of broker 4 unknown", "did not answer in time") is Weight.WARNING
    assert said(findings, "the disks of broker 5 are unknown") is Weight.WARNING


def test_nobody_answers() -> None:
    assert said(explained(answers=SILENCE), "other brokers' disks are unknown") is Weight.PROBLEM
    refusal = Failure(kind=FailureKind.NOT_AUTHORIZED, message="this principal needs DESCRIBE on the cluster")
    assert said(explained(answers=refusal), "needs DESCRIBE") is Weight.PROBLEM


def test_what_becomes_of_full_log_dirs_where_new_replicas_are_concerned() -> None:
    new = {**OTHERS, OWN: answer(described(500, cordoned=False), described(500, "/b", cordoned=True))}

    assert said(explained(), "cordoning needs Kafka 4.3") is Weight.NOTE
    assert said(explained(answers=new), "is cordoned: no new replicas while it is full") is Weight.FINE
    assert said(explained(answers=new), "cordoned now: /b") is Weight.NOTE
    assert said(explained(f"{ENFORCING}brimline.cordon=false\n", new), "brimline.cordon=false") is Weight.NOTE


def test_a_throttle_on_record_is_named_with_the_command_that_takes_it_away() -> None:
    held = Held(topics={"orders": (0,)}, since=datetime(2026, 1, 1, tzinfo=UTC))

    assert said(explain_throttle(OWN, held), "since 2026-01-01", "--entity-name 7 --delete-config") is Weight.NOTE
    assert list(explain_throttle(OWN, None)) == []


def test_shedding_is_told_where_it_is_switched_on_and_where_it_does_nothing() -> None:
    on = f"{ENFORCING}brimline.follower.shed=on\n"

    assert said(explained(on), "in-sync replicas are removed from the full disk") is Weight.NOTE
    assert (
        said(explained(f"{on}brimline.follower.action=fence\n"), "brimline.follower.shed=on has no effect", "fence")
        is Weight.WARNING
    )
    assert not any("shed" in each.sentence for each in explained())

"""What the doctor says of full followers: what would be done, why, what is in the way, and whose disks can be seen.

Pure: facts in, sentences out.
"""

from collections.abc import Iterator, Mapping

from brimline.act.replica_throttle import OUR_RATE, Held
from brimline.decide.disk_state import DiskLimits
from brimline.decide.followers import FollowerAction
from brimline.decide.peer_disks import Peer, PeerState, heard
from brimline.documents.notices import Weight
from brimline.guard.feature import Finding
from brimline.guard.followers.report import follower_choice, why_peer_is_full
from brimline.guard.followers.words import named_brokers
from brimline.model import BrokerId, BrokerLogDirs, Failure
from brimline.model.times import time_text
from brimline.observe.cluster.replication_throttle import RATE
from brimline.settings import keys
from brimline.settings.config import GuardConfig

TOPIC = "followers"
_WHAT = {
    FollowerAction.SKIP: "it is not sent the partitions it has no room for, leaves the ISR and catches up later",
    FollowerAction.FENCE: "Produce is refused for those partitions, so no replica falls behind",
    FollowerAction.RESERVE: ("an alert; Produce is refused only at its last reserve (brimline.follower.reserve.bytes)"),
}


def explain_followers(
    config: GuardConfig, answers: Mapping[BrokerId, BrokerLogDirs] | Failure | None
) -> Iterator[Finding]:
    """``answers``: what every broker, this one included, says of its volumes; ``None``: nobody was asked."""
    own = config.node_id
    if isinstance(answers, Failure):
        yield _finding(Weight.PROBLEM, f"other brokers' disks are unknown: {answers}")
    described = answers if isinstance(answers, Mapping) else {}
    others = {broker: answer for broker, answer in described.items() if broker != own}
    if others or config.is_enforcing:
        yield _action(config)
        yield from _shed(config)
    if others:
        yield from _others(others, config.limits)
    if own in described and described[own].failure is None:
        yield from _cordon(config, described[own])


def explain_throttle(broker: BrokerId, held: Held | None) -> Iterator[Finding]:
    """``held``: what is on record, by a guard that runs or by one that was killed."""
    if held is not None:
        yield _finding(
            Weight.NOTE,
            f"the guard has set {RATE}={OUR_RATE} on this broker since {time_text(held.since)}, to hold lagging "
            "replicas on full disks; it is removed when they have room. If no guard will run here again: "
            "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type brokers "
            f"--entity-name {broker} --delete-config {RATE}",
        )


def _action(config: GuardConfig) -> Finding:
    choice = follower_choice(config)
    action = f"when a follower's disk is full: {choice.action.value}, because {choice.why}: {_WHAT[choice.action]}"
    if not config.is_enforcing:
        return _finding(Weight.NOTE, f"with {keys.ENFORCEMENT.name}=gateway, {action}")
    if choice.obstacle is not None:
        return _finding(Weight.PROBLEM, f"{action}; but this cannot be done: {choice.obstacle}")
    return _finding(Weight.FINE, action)


def _shed(config: GuardConfig) -> Iterator[Finding]:
    if config.text(keys.FOLLOWER_SHED) != keys.ON:
        return
    action = follower_choice(config).action
    if action is not FollowerAction.RESERVE:
        yield _finding(
            Weight.WARNING, f"{keys.FOLLOWER_SHED.name}=on has no effect: the action is {action.value}, not reserve"
        )
    else:
        yield _finding(
            Weight.NOTE,
            f"at that reserve in-sync replicas are removed from the full disk ({keys.FOLLOWER_SHED.name}=on), so "
            "that Produce goes on, as long as min.insync.replicas and at least two stay in sync; you must put them "
            "back",
        )


def _others(others: Mapping[BrokerId, BrokerLogDirs], limits: DiskLimits) -> Iterator[Finding]:
    peers = [heard(Peer(broker=broker), answer, limits, 0.0, 1.0) for broker, answer in others.items()]
    told = [peer.broker for peer in peers if peer.state is PeerState.FRESH]
    if told:
        yield _finding(
            Weight.FINE,
            f"the disks of {named_brokers(told)} are known; the limits of this file apply to them: use the same on "
            "every broker",
        )
    for peer in peers:
        if peer.failure is not None:
            yield _finding(
                Weight.WARNING,
                f"disks of broker {peer.broker} unknown, nothing is held back for it: {peer.failure}",
            )
        for log_dir in peer.full:
            yield _finding(Weight.WARNING, f"broker {peer.broker} has no room: {why_peer_is_full(log_dir, limits)}")
    old = [peer.broker for peer in peers if peer.state is PeerState.NO_VOLUMES]
    if old:
        yield _finding(
            Weight.WARNING,
            f"the disks of {named_brokers(old)} are unknown (Kafka before 3.3): nothing is held back for them",
        )


def _cordon(config: GuardConfig, own: BrokerLogDirs) -> Iterator[Finding]:
    if not config.is_enforcing:
        return
    if not config.settings[keys.CORDON.name].value:
        yield _finding(Weight.NOTE, f"a full log dir is not cordoned ({keys.CORDON.name}=false)")
    elif any(each.is_cordoned is not None for each in own.log_dirs.values()):
        yield _finding(Weight.FINE, "a full log dir is cordoned: no new replicas while it is full")
    else:
        yield _finding(Weight.NOTE, "a full log dir can get new replicas: cordoning needs Kafka 4.3")
    operators = sorted(path for path, each in own.log_dirs.items() if each.is_cordoned)
    if operators:
        yield _finding(Weight.NOTE, f"cordoned now: {', '.join(operators)}")


def _finding(weight: Weight, sentence: str) -> Finding:
    return Finding(topic=TOPIC, weight=weight, sentence=sentence)

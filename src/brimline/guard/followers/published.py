"""The parts of ``/v1/state`` about the other brokers' disks, and about what is cordoned here.

The other brokers' disks, full followers and cordoned log dirs as families of the catalogue. Pure.
"""

from brimline.decide.peer_disks import PeerState
from brimline.documents.guard_state import (
    CordonDocument,
    FailureDocument,
    FollowerDocument,
    FollowersDocument,
    UnansweredPeer,
)
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.guard.followers.words import WHAT_TO_DO, action_sentence, follower_sentence
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily


def follower_document(peers: PeerReport, orders: OrderReport, seconds: float) -> FollowersDocument | None:
    """``None`` where there is no other broker. ``seconds``: now, on the clock of the readings."""
    if not peers.peers and peers.failure is None:
        return None
    return FollowersDocument(
        action=orders.choice.action.value,
        why=action_sentence(orders),
        possible=orders.choice.obstacle is None,
        in_force=None if orders.action is None else orders.action.value,
        patience_seconds=peers.patience,
        failure=FailureDocument.of(orders.failure or peers.failure),
        peers={state.value: peers.count(state) for state in PeerState},
        unanswered=tuple(
            UnansweredPeer(
                broker=peer.broker,
                state=peer.state.value,
                age_seconds=None if peer.answered is None else round(seconds - peer.answered, 1),
                failure=FailureDocument.of(peer.failure),
            )
            for peer in peers.peers
            if peer.state is not PeerState.FRESH
        ),
        full=tuple(_follower(each, orders) for each in orders.followers),
    )


def _follower(follower: FullFollower, orders: OrderReport) -> FollowerDocument:
    return FollowerDocument(
        broker=follower.broker,
        log_dirs=follower.log_dirs,
        partitions=follower.partitions,
        held_back=orders.action is not None and follower.partitions > 0,
        failure=FailureDocument.of(follower.failure),
        does=follower_sentence(follower, orders),
        what_to_do=WHAT_TO_DO,
    )


def cordon_document(report: CordonReport) -> CordonDocument:
    return CordonDocument(
        wanted=report.is_wanted,
        supported=report.is_supported,
        log_dirs=tuple(sorted(report.cordoned.ours)),
        by_operator=tuple(sorted(report.cordoned.theirs)),
        kept_open=tuple(sorted(report.kept_open)),
        failure=FailureDocument.of(report.failure),
    )


def peer_families(report: PeerReport) -> list[MetricFamily]:
    """Of the brokers only those with a full disk have rows of their own: a cluster of 150 has 150 guards."""
    asked = sorted(report.questions.items())
    return [
        catalogue.PEERS.family(
            tuple((state.value,) for state in PeerState), [report.count(state) for state in PeerState]
        ),
        catalogue.PEER_FULL_LOG_DIRS.family(
            tuple((str(each.broker),) for each in report.full), [len(each.log_dirs) for each in report.full]
        ),
        catalogue.PEER_QUESTIONS.family(tuple((kind,) for kind, _ in asked), [count for _, count in asked]),
    ]


def order_families(report: OrderReport) -> list[MetricFamily]:
    rows = tuple((str(each.broker), report.choice.action.value) for each in report.followers)
    is_done = report.action is not None
    return [
        catalogue.FOLLOWER_PARTITIONS.family(rows, [each.partitions for each in report.followers]),
        catalogue.FOLLOWER_HELD_BACK.family(rows, [each.partitions if is_done else 0 for each in report.followers]),
        catalogue.FOLLOWER_ACTION_POSSIBLE.single(int(report.is_enforced and report.choice.obstacle is None)),
    ]


def cordon_families(report: CordonReport) -> list[MetricFamily]:
    rows = [
        *((path, "guard") for path in sorted(report.cordoned.ours)),
        *((path, "operator") for path in sorted(report.cordoned.theirs)),
    ]
    return [catalogue.CORDONED.family(tuple(rows), [1] * len(rows))]

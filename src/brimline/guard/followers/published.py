"""The parts of ``/v1/state`` about the other brokers' disks, and about what is cordoned here.

The other brokers' disks, full followers and cordoned log dirs as families of the catalogue. Pure.
"""

from collections.abc import Mapping

from brimline.decide.peer_disks import PeerState
from brimline.documents.parts import failure_document
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.report import FullFollower, OrderReport, PeerReport
from brimline.guard.followers.words import WHAT_TO_DO, action_sentence, follower_sentence
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily

Json = Mapping[str, object]


def follower_document(peers: PeerReport, orders: OrderReport, seconds: float) -> Json | None:
    """``None`` where there is no other broker. ``seconds``: now, on the clock of the readings."""
    if not peers.peers and peers.failure is None:
        return None
    return {
        "action": orders.choice.action.value,
        "why": action_sentence(orders),
        "possible": orders.choice.obstacle is None,
        "inForce": None if orders.action is None else orders.action.value,
        "patienceSeconds": peers.patience,
        "failure": failure_document(orders.failure or peers.failure),
        "peers": {state.value: peers.count(state) for state in PeerState},
        "unanswered": [
            {
                "broker": peer.broker,
                "state": peer.state.value,
                "ageSeconds": None if peer.answered is None else round(seconds - peer.answered, 1),
                "failure": failure_document(peer.failure),
            }
            for peer in peers.peers
            if peer.state is not PeerState.FRESH
        ],
        "full": [_follower(each, orders) for each in orders.followers],
    }


def _follower(follower: FullFollower, orders: OrderReport) -> Json:
    return {
        "broker": follower.broker,
        "logDirs": list(follower.log_dirs),
        "partitions": follower.partitions,
        "heldBack": orders.action is not None and follower.partitions > 0,
        "failure": failure_document(follower.failure),
        "does": follower_sentence(follower, orders),
        "whatToDo": WHAT_TO_DO,
    }


def cordon_document(report: CordonReport) -> Json:
    return {
        "wanted": report.is_wanted,
        "supported": report.is_supported,
        "logDirs": sorted(report.cordoned.ours),
        "byOperator": sorted(report.cordoned.theirs),
        "keptOpen": sorted(report.kept_open),
        "failure": failure_document(report.failure),
    }


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

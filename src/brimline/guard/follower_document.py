"""The parts of ``/v1/state`` about the other brokers' disks, and about what is cordoned here."""

from collections.abc import Mapping

from brimline.decide.peer_disks import PeerState
from brimline.guard.cordon_task import CordonReport
from brimline.guard.follower_report import FullFollower, OrderReport, PeerReport
from brimline.guard.follower_sentences import WHAT_TO_DO, action_sentence, follower_sentence
from brimline.guard.gateway_document import failure_document

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

"""The other brokers' disks, full followers and cordoned log dirs as families of the catalogue. Pure."""

from brimline.decide.peer_disks import PeerState
from brimline.guard.cordon_task import CordonReport
from brimline.guard.follower_report import OrderReport, PeerReport
from brimline.metrics import catalogue
from brimline.model.samples import MetricFamily


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

"""What a guard knows at one moment, without its tasks; and the document of it, made by the features' own functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from brimline.disks.task import DiskReport
from brimline.guard.ballast.feature import ballast_document
from brimline.guard.ballast.task import BallastStatus
from brimline.guard.disks.published import volumes_document
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.feature import cordon_document, follower_document
from brimline.guard.followers.report import OrderReport, PeerReport
from brimline.guard.followers.shed_words import shed_document
from brimline.guard.followers.shedding import SheddingReport
from brimline.guard.gateway_link.feature import gateway_document
from brimline.guard.gateway_link.task import GatewayReport
from brimline.guard.landing.feature import landing_document
from brimline.guard.landing.task import LandingReport
from brimline.guard.moves.feature import move_document
from brimline.guard.moves.task import MoveReport
from brimline.guard.percent.feature import largest_topics, retention_document
from brimline.guard.percent.task import PercentReport
from brimline.guard.reclaim.published import reclaim_document
from brimline.guard.reclaim.report import ReclaimReport
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.state_document import guard_state
from brimline.guard.state_document import state_document as whole_document
from brimline.model import Bytes
from brimline.settings import keys
from brimline.settings.config import GuardConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    now: datetime
    seconds: float
    started_at: datetime
    config: GuardConfig
    disks: DiskReport
    percents: PercentReport
    mount_points: Mapping[str, str]
    gateway: GatewayReport
    moves: MoveReport
    peers: PeerReport
    orders: OrderReport
    cordon: CordonReport
    shed: SheddingReport = field(default_factory=SheddingReport)
    ballasts: Sequence[BallastStatus] = ()
    reclaims: Sequence[ReclaimReport] = ()
    landing: LandingReport | None = None


def state_document(state: GuardState) -> bytes:
    config, seconds, enforced = state.config, state.seconds, state.gateway.is_wanted
    servers = config.admin_access.servers
    members = {
        "moves": move_document(state.moves, config.node_id, servers, enforced=config.is_enforcing),
        "followers": follower_document(state.peers, state.orders, seconds, shed=shed_document(state.shed, servers)),
        "cordon": cordon_document(state.cordon),
        "ballast": ballast_document(state.ballasts, Bytes(config.number(keys.BALLAST_BYTES))),
        "reclaim": reclaim_document(state.reclaims, ReclaimSettings.of(config), seconds),
        "gateway": gateway_document(state.gateway, config.path),
        "retention": retention_document(state.percents, seconds),
        "topics": largest_topics(state.percents),
        "landing": landing_document(state.landing, config.text(keys.LANDING_URI), seconds),
    }
    whole = guard_state(
        config,
        state.disks,
        state.percents,
        [members],
        now=state.now,
        started_at=state.started_at,
        mount_points=state.mount_points,
    )
    volumes = volumes_document(state.disks, state.mount_points, enforced=enforced)
    return whole_document(replace(whole, volumes=volumes))

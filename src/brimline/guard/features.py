"""Every feature of the guard, in the order of ``/v1/state``. A new one is a folder here and a line below."""

from brimline.guard.ballast.feature import Ballasts
from brimline.guard.cleaner import CleanerHold
from brimline.guard.feature import Feature
from brimline.guard.followers.feature import Followers
from brimline.guard.gateway_link.feature import GatewayLink
from brimline.guard.interception.feature import Interceptions
from brimline.guard.landing.feature import Landing
from brimline.guard.moves.feature import Moves
from brimline.guard.offline import Offline
from brimline.guard.percent.feature import Percentages
from brimline.guard.reclaim.feature import Reclaims
from brimline.guard.reserve import Reserve
from brimline.guard.scans import Scans

FEATURES: tuple[type[Feature], ...] = (
    Offline,
    Reserve,
    CleanerHold,
    Moves,
    Followers,
    Ballasts,
    Reclaims,
    GatewayLink,
    Interceptions,
    Percentages,
    Scans,
    Landing,
)

"""What the guard knows of its followers' disks, and what it has its gateway do about them: the shapes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brimline.decide.admission import why_full
from brimline.decide.disk_state import DiskLimits
from brimline.decide.followers import Choice, FollowerAction, choose_action
from brimline.decide.peer_disks import Peer, PeerLogDir, PeerState
from brimline.decide.reserve import Depth
from brimline.model import BrokerId, Bytes, Failure
from brimline.observe.cluster.log_dirs import LedTopic
from brimline.settings import keys
from brimline.settings.config import GuardConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class FullFollower:
    """A broker with a full log dir, and the partitions in it that this broker leads."""

    broker: BrokerId
    reason: str
    """How full which of its log dirs is."""
    log_dirs: tuple[str, ...] = ()
    topics: tuple[LedTopic, ...] = ()
    depths: Mapping[str, Depth] = field(default_factory=dict)
    """Log dir → how deep it is in what its limit leaves free."""
    reserve: Bytes | None = None
    """The smallest of its log dirs'."""
    lacking: Mapping[str, Bytes] = field(default_factory=dict)
    """Log dir down to its reserve → what must come back until it is no longer full; only while its broker answers."""
    held: tuple[LedTopic, ...] = ()
    """What is held back for it, or would be: all, or with ``reserve`` a part."""
    past_line: frozenset[str] = frozenset()
    """Log dirs with so little left that groups' commits are refused for it, too (``decide.commits``)."""
    failure: Failure | None = None
    """Why it is not known which partitions there are led here; ``topics`` are then those known before."""

    @property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics)

    @property
    def held_partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerReport:
    """After one look at the other brokers. ``own`` is this broker as it answers itself."""

    peers: tuple[Peer, ...] = ()
    own: Peer | None = None
    full: tuple[FullFollower, ...] = ()
    failure: Failure | None = None
    """Why nobody could be asked."""
    patience: float = 0.0
    counts_until: float = 0.0
    """On the clock of the readings: if there is no later report by then, this one counts for nothing."""
    questions: Mapping[str, int] = field(default_factory=dict)
    """How many were asked since the start, by kind."""

    def count(self, state: PeerState) -> int:
        return sum(peer.state is state for peer in self.peers)

    @property
    def others_have_room(self) -> bool:
        return any(peer.has_room for peer in self.peers)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReport:
    """What the gateway was told last. ``action`` is what is in force there; ``None``: nothing."""

    choice: Choice
    is_enforced: bool
    action: FollowerAction | None = None
    followers: tuple[FullFollower, ...] = ()
    failure: Failure | None = None
    leaks: bool = False
    """Fetches passed the gateway unread, so that nobody knows whether what is skipped is held back."""

    @property
    def holds(self) -> bool:
        return self.action is not None and not self.leaks


def why_peer_is_full(log_dir: PeerLogDir, limits: DiskLimits) -> str:
    assert log_dir.space is not None
    return why_full(log_dir.path, log_dir.space, limits)


def follower_choice(config: GuardConfig) -> Choice:
    fronted = config.layout.fronted
    return choose_action(
        config.text(keys.FOLLOWER_ACTION),
        carries_replication=any(each.carries_replication for each in fronted),
        carries_clients=bool(fronted),
        skips_itself=config.skips_own_fetches,
    )


def follower_reserve(config: GuardConfig) -> Bytes | None:
    """What the operator wants kept; ``None``: whatever is right."""
    wish = config.number(keys.FOLLOWER_RESERVE)
    return None if wish < 0 else Bytes(wish)

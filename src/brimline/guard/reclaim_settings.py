"""What the reclaim of a broker's devices goes by, from the properties file."""

from dataclasses import dataclass

from brimline.act.trim_pace import TrimPace
from brimline.decide.reclaim_bound import ReclaimDelays
from brimline.guard import keys
from brimline.guard.config import GuardConfig
from brimline.model import Bytes
from brimline.model.reclaim import CEILING_OFF, ReclaimPolicy

_LARGEST_BATCH = 256 << 20
_BATCHES_PER_VOLUME = 25
_BETWEEN_BATCHES = 0.25
_LOOKS_APART = 2.0
"""So many times as long as a look takes is waited between two of them: a large broker is not kept busy by it."""
_PATIENCE = 120.0
_SOONEST_LOOK, _LATEST_LOOK = 0.5, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimSettings:
    """``is_applied``: what is planned is done, and not only said. Times in seconds."""

    policy: ReclaimPolicy
    is_applied: bool
    interval: float
    retention_check: float
    delete_delay: float

    @classmethod
    def of(cls, config: GuardConfig) -> "ReclaimSettings":
        return cls(
            policy=config.reclaim_policy,
            is_applied=config.text(keys.RECLAIM_MODE) == keys.APPLY,
            interval=config.seconds(keys.RECLAIM_INTERVAL),
            retention_check=config.broker.retention_check_interval,
            delete_delay=config.broker.segment_delete_delay,
        )

    @property
    def is_off(self) -> bool:
        return self.policy.ceiling_percent >= CEILING_OFF

    @property
    def delays(self) -> ReclaimDelays:
        return ReclaimDelays(cycle=self.interval, retention_check=self.retention_check, delete_delay=self.delete_delay)

    def pace(self, total_bytes: Bytes, look_took: float = 0.0) -> TrimPace:
        """Up to 1 GiB a second, or 16 % of a small volume: before every batch it is looked if it is needed."""
        until_gone = self.retention_check + self.delete_delay
        return TrimPace(
            space_patience=2 * until_gone + _PATIENCE,
            bytes_per_batch=Bytes(min(_LARGEST_BATCH, total_bytes // _BATCHES_PER_VOLUME)),
            between_batches=max(_BETWEEN_BATCHES, _LOOKS_APART * look_took),
            between_looks=min(max(until_gone / 4, _SOONEST_LOOK), _LATEST_LOOK),
        )

"""How fast trims are sent, how often they are looked after, and how long is waited for what."""

from dataclasses import dataclass

from brimline.model import Bytes

_BYTES_PER_BATCH = Bytes(1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPace:
    """Times in seconds. ``space_patience`` covers the broker's retention check and delete delay, with time to spare."""

    space_patience: float
    trims_per_batch: int = 20
    bytes_per_batch: Bytes = _BYTES_PER_BATCH
    """A single trim may be larger than that; then it is a batch of its own."""
    between_batches: float = 1.0
    between_looks: float = 5.0
    check_again: float = 15.0
    """How often the log start of what was asked for is read again: a broker may have forgotten it."""
    retry: float = 5.0
    patience: float = 120.0
    """How long a problem may last that could pass by itself, such as a missing leader."""
    most_requests: int = 5

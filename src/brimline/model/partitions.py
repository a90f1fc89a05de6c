"""What a partition is called, and what a topic's configuration says about how much of it is kept."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


USE_RETENTION_BYTES = -2
"""``local.retention.bytes`` of -2 means: as much as ``retention.bytes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRetention:
    """Limits in bytes; 0 or less is no limit."""

    retention_bytes: int
    local_retention_bytes: int = USE_RETENTION_BYTES
    is_tiered: bool = False
    is_copy_disabled: bool = False

    @property
    def effective_local_bytes(self) -> int:
        return self.retention_bytes if self.local_retention_bytes == USE_RETENTION_BYTES else self.local_retention_bytes

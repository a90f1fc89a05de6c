"""Which fields a DescribeLogDirs message has: by its version, and for version 5 by whose version 5 it is.

Two layouts share the number 5. Kafka 4.3 ships one (every log dir has IsCordoned), KIP-1187 sketches the other (the
request has IncludeRemoteInfo; every partition has RemoteLogSize and OnlyLocalLogSize; no IsCordoned). So a number alone
never names a layout here.
"""

from dataclasses import dataclass

API_KEY = 35
MIN_VERSION = 1
MAX_VERSION = 5
FIRST_FLEXIBLE_VERSION = 2
_FIRST_VERSION_WITH_ERROR_CODE = 3
_FIRST_VERSION_WITH_VOLUME_BYTES = 4
_FIRST_VERSION_WITH_CORDONED = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """A version as Kafka ships it, or with ``has_remote_sizes`` as KIP-1187 has it."""

    version: int
    has_remote_sizes: bool = False

    @property
    def is_flexible(self) -> bool:
        return self.version >= FIRST_FLEXIBLE_VERSION

    @property
    def has_error_code(self) -> bool:
        return self.version >= _FIRST_VERSION_WITH_ERROR_CODE

    @property
    def has_volume_bytes(self) -> bool:
        return self.version >= _FIRST_VERSION_WITH_VOLUME_BYTES

    @property
    def has_cordoned(self) -> bool:
        return self.version >= _FIRST_VERSION_WITH_CORDONED and not self.has_remote_sizes


KIP_1187 = Layout(5, has_remote_sizes=True)

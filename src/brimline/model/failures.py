"""What can go wrong: failures as values, errors, and Kafka's codes.

Kafka's codes are here as far as Brimline meets them in answers. ``Failure`` is the value that stands in an observation
instead of an answer; ``ObservationFailed`` is the same thing raised, where a caller asked for the answer or nothing.

::

    BrimlineError
    ├── BadInput              what the caller gave cannot be used (property, option, file)
    └── ObservationFailed     the cluster, or one broker of it, gave no answer; carries the Failure
"""

from dataclasses import dataclass
from enum import Enum

from brimline.model.secrets import without_login

# code: (protocol name, class in org.apache.kafka.common.errors)
_KNOWN = {
    -1: ("UNKNOWN_SERVER_ERROR", "UnknownServerException"),
    1: ("OFFSET_OUT_OF_RANGE", "OffsetOutOfRangeException"),
    3: ("UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopicOrPartitionException"),
    5: ("LEADER_NOT_AVAILABLE", "LeaderNotAvailableException"),
    6: ("NOT_LEADER_OR_FOLLOWER", "NotLeaderOrFollowerException"),
    7: ("REQUEST_TIMED_OUT", "TimeoutException"),
    12: ("OFFSET_METADATA_TOO_LARGE", "OffsetMetadataTooLarge"),
    14: ("COORDINATOR_LOAD_IN_PROGRESS", "CoordinatorLoadInProgressException"),
    15: ("COORDINATOR_NOT_AVAILABLE", "CoordinatorNotAvailableException"),
    16: ("NOT_COORDINATOR", "NotCoordinatorException"),
    17: ("INVALID_TOPIC_EXCEPTION", "InvalidTopicException"),
    29: ("TOPIC_AUTHORIZATION_FAILED", "TopicAuthorizationException"),
    30: ("GROUP_AUTHORIZATION_FAILED", "GroupAuthorizationException"),
    31: ("CLUSTER_AUTHORIZATION_FAILED", "ClusterAuthorizationException"),
    35: ("UNSUPPORTED_VERSION", "UnsupportedVersionException"),
    41: ("NOT_CONTROLLER", "NotControllerException"),
    42: ("INVALID_REQUEST", "InvalidRequestException"),
    44: ("POLICY_VIOLATION", "PolicyViolationException"),
    56: ("KAFKA_STORAGE_ERROR", "KafkaStorageException"),
    57: ("LOG_DIR_NOT_FOUND", "LogDirNotFoundException"),
    74: ("FENCED_LEADER_EPOCH", "FencedLeaderEpochException"),
    75: ("UNKNOWN_LEADER_EPOCH", "UnknownLeaderEpochException"),
    78: ("OFFSET_NOT_AVAILABLE", "OffsetNotAvailableException"),
}

CLUSTER_AUTHORIZATION_FAILED = 31
TOPIC_AUTHORIZATION_FAILED = 29
KAFKA_STORAGE_ERROR = 56


@dataclass(frozen=True, slots=True)
class KafkaError:
    """An error code that a broker put into an answer; never 0."""

    code: int

    @property
    def name(self) -> str:
        return _KNOWN[self.code][0] if self.code in _KNOWN else f"ERROR_{self.code}"

    @property
    def java_class(self) -> str:
        """What the Java client makes of it; an unknown code becomes UnknownServerException there."""
        simple_name = _KNOWN[self.code if self.code in _KNOWN else -1][1]
        return f"org.apache.kafka.common.errors.{simple_name}"

    def __str__(self) -> str:
        return self.name


class FailureKind(Enum):
    """Why there is no answer. The value is the stable name in JSON and CSV."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed-out"
    TLS_FAILED = "tls-failed"
    NOT_AUTHENTICATED = "not-authenticated"
    NOT_AUTHORIZED = "not-authorized"
    UNSUPPORTED = "unsupported"
    NOT_KAFKA = "not-kafka"
    KAFKA_ERROR = "kafka-error"
    STALLED = "stalled"
    UNREADABLE = "unreadable"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", without_login(self.message))

    def __str__(self) -> str:
        return self.message


class BrimlineError(Exception):
    """Everything Brimline raises on purpose. Its text is one sentence for the person who reads it, without logins."""

    def __init__(self, *words: object) -> None:
        super().__init__(*(without_login(word) if isinstance(word, str) else word for word in words))


class BadInput(BrimlineError):
    """A property, option or file that cannot be used as given."""


class ObservationFailed(BrimlineError):
    """No answer where one was required."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure

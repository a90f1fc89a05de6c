"""Kafka's error codes, as far as Brimline meets them in answers."""

from dataclasses import dataclass

# code: (protocol name, class in org.apache.kafka.common.errors)
_KNOWN = {
    -1: ("UNKNOWN_SERVER_ERROR", "UnknownServerException"),
    1: ("OFFSET_OUT_OF_RANGE", "OffsetOutOfRangeException"),
    3: ("UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopicOrPartitionException"),
    5: ("LEADER_NOT_AVAILABLE", "LeaderNotAvailableException"),
    6: ("NOT_LEADER_OR_FOLLOWER", "NotLeaderOrFollowerException"),
    7: ("REQUEST_TIMED_OUT", "TimeoutException"),
    17: ("INVALID_TOPIC_EXCEPTION", "InvalidTopicException"),
    29: ("TOPIC_AUTHORIZATION_FAILED", "TopicAuthorizationException"),
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

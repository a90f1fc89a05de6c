"""The nouns: frozen, typed, and the same in every room."""

from brimline.model.failures import BadInput, BrimlineError, Failure, FailureKind, KafkaError, ObservationFailed
from brimline.model.log_dirs import BrokerLogDirs, LogDirDescription, Reason, ReplicaColumns, ReplicaInfo
from brimline.model.partitions import TopicPartition
from brimline.model.quantities import (
    BrokerId,
    Bytes,
    Offset,
    Percent,
    counted,
    human_bytes,
    human_count,
    human_percent,
    human_span,
    parse_bytes,
    used_percent,
)
from brimline.model.volumes import ClusterTotals, Volume, totals_of, volumes_of

__all__ = [
    "BadInput",
    "BrimlineError",
    "BrokerId",
    "BrokerLogDirs",
    "Bytes",
    "ClusterTotals",
    "Failure",
    "FailureKind",
    "KafkaError",
    "LogDirDescription",
    "ObservationFailed",
    "Offset",
    "Percent",
    "Reason",
    "ReplicaColumns",
    "ReplicaInfo",
    "TopicPartition",
    "Volume",
    "counted",
    "human_bytes",
    "human_count",
    "human_percent",
    "human_span",
    "parse_bytes",
    "totals_of",
    "used_percent",
    "volumes_of",
]

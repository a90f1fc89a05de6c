"""Brimline keeps Apache Kafka disks below the brim.

The names below are the Python API. They are imported on first use, so that ``import brimline`` costs nothing.
"""

TYPE_CHECKING = False  # as typing's, without importing it: every command begins here
if TYPE_CHECKING:
    from brimline.model import (
        BrimlineError,
        BrokerId,
        BrokerLogDirs,
        LogDirDescription,
        ObservationFailed,
        ReplicaInfo,
        TopicPartition,
    )
    from brimline.observe.client.config import ClientConfig
    from brimline.observe.cluster.admin import Admin, DescribeLogDirsOptions, DescribeLogDirsResult

_HOMES = {
    "Admin": "brimline.observe.cluster.admin",
    "BrimlineError": "brimline.model",
    "BrokerId": "brimline.model",
    "BrokerLogDirs": "brimline.model",
    "ClientConfig": "brimline.observe.client.config",
    "DescribeLogDirsOptions": "brimline.observe.cluster.admin",
    "DescribeLogDirsResult": "brimline.observe.cluster.admin",
    "LogDirDescription": "brimline.model",
    "ObservationFailed": "brimline.model",
    "ReplicaInfo": "brimline.model",
    "TopicPartition": "brimline.model",
}

__all__ = [
    "Admin",
    "BrimlineError",
    "BrokerId",
    "BrokerLogDirs",
    "ClientConfig",
    "DescribeLogDirsOptions",
    "DescribeLogDirsResult",
    "LogDirDescription",
    "ObservationFailed",
    "ReplicaInfo",
    "TopicPartition",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'brimline' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

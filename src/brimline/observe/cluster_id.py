"""Which cluster is it? Two that happen to have a broker 1 must not be taken for one."""

from collections.abc import Iterable
from pathlib import Path

from kafka.protocol.metadata import MetadataRequest

from brimline.model import BadInput, Failure, FailureKind, ObservationFailed
from brimline.observe.connection import Connection, Deadline
from brimline.observe.java_properties import load_properties
from brimline.observe.volumes import META_PROPERTIES


def cluster_id(connection: Connection, deadline: Deadline) -> str:
    """Raises ``ObservationFailed``: when nobody answers, and when nobody knows (before Kafka 0.10.1)."""
    answer = connection.ask_any(lambda: MetadataRequest(topics=[], allow_auto_topic_creation=False), deadline)
    if not answer.cluster_id:
        raise ObservationFailed(
            Failure(kind=FailureKind.KAFKA_ERROR, message="the cluster does not tell its id: it is older than 0.10.1")
        )
    return str(answer.cluster_id)


def written_cluster_id(log_dirs: Iterable[str]) -> str | None:
    """As the broker wrote it into its log dirs; ``None`` where none of them can be read, or none is formatted yet."""
    for log_dir in log_dirs:
        try:
            written = load_properties(Path(log_dir, META_PROPERTIES))
        except BadInput:
            continue  # not formatted yet, or not ours to read: the next one may tell
        if written.get("cluster.id"):
            return written["cluster.id"]
    return None

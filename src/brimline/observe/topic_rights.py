"""What this principal may do to topics, as the cluster itself says: asked with Metadata, so nothing is tried out.

A cluster without an authorizer allows everything, and says so. A topic that may not even be described is missing.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial

from kafka.protocol.metadata import MetadataRequest

from brimline.observe.connection import Connection, Deadline

_DELETE = 6
"""``AclOperation.DELETE``: what DeleteRecords takes."""
_TOPICS_AT_ONCE = 500


def may_delete_records(connection: Connection, names: Iterable[str], timeout: timedelta) -> Mapping[str, bool]:
    """Of every topic that may be described. Raises ``ObservationFailed``."""
    wanted, deadline = sorted(names), Deadline(timeout)
    found: dict[str, bool] = {}
    for start in range(0, len(wanted), _TOPICS_AT_ONCE):
        some = wanted[start : start + _TOPICS_AT_ONCE]
        answer = connection.ask_any(partial(_request, some), deadline.renewed())
        known = [topic for topic in answer.topics if not topic.error_code]
        found.update((topic.name, _DELETE in topic.authorized_operations) for topic in known)
    return found


def _request(names: list[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )

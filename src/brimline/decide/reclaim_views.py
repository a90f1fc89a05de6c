"""Do the files and the broker's answer tell the same story of a replica?

**Invariant.** A log is trimmed only if both views are there and nothing in one contradicts the other. The scan comes
first and the broker is asked after it, so between the two looks a log may only have grown at its end:

- the broker describes the replica in this log dir, and the scan could read its folder;
- both know the topic id, and it is the same: offsets of a topic that was deleted and made anew mean nothing;
- the broker counts at least the bytes of the closed segments above its log start. Fewer means that some of them have
  gone since; the next cycle will see them gone. More is what was appended since. What is below the log start is on its
  way out, and may be there or not;
- the broker's high watermark is not below where the files begin, and its log start not above the high watermark;
- the cluster would let it be trimmed by whoever plans. Planned for, it would be refused in every cycle anew, and
  nothing would come back, however much of others may go.
"""

from dataclasses import dataclass
from uuid import UUID

from brimline.model import Bytes, Offset
from brimline.model.reclaim import Views


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """What the cluster says about a replica that this broker holds; ``None`` is not known.

    Size and place are this broker's word. The offsets are the leader's, who is also the one that is asked to trim.
    """

    size: Bytes
    topic_id: UUID | None
    log_start_offset: Offset | None
    """Of a tiered topic: where the local log begins."""
    high_watermark: Offset | None
    log_end_offset: Offset | None = None
    highest_remote_offset: Offset | None = None
    is_forbidden: bool = False
    """Whoever plans may not delete its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderView:
    """What the scan says about the replica's folder."""

    is_read: bool
    topic_id: UUID | None
    first_base_offset: Offset | None
    closed_bytes: Bytes
    """Of closed segments with records at or above the log start."""


def compare_views(folder: FolderView, broker: BrokerView | None) -> Views:
    if not folder.is_read:
        return Views.NOT_READABLE
    if broker is None:
        return Views.NOT_DESCRIBED
    if folder.topic_id is None or broker.topic_id is None:
        return Views.TOPIC_ID_UNKNOWN
    if folder.topic_id != broker.topic_id:
        return Views.OTHER_TOPIC_ID
    if broker.size < folder.closed_bytes:
        return Views.SEGMENTS_MISSING
    if not _offsets_fit(folder, broker):
        return Views.OTHER_OFFSETS
    return Views.NO_PERMISSION if broker.is_forbidden else Views.AGREE


def _offsets_fit(folder: FolderView, broker: BrokerView) -> bool:
    if broker.high_watermark is None:
        return True  # left out all the same, for a reason of its own
    begins_below = folder.first_base_offset is None or folder.first_base_offset <= broker.high_watermark
    return begins_below and (broker.log_start_offset is None or broker.log_start_offset <= broker.high_watermark)

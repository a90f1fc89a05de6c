"""Is it kafkajs that sends a Produce request? It tells nobody its name, and needs to be known.

If one partition of a request fails, kafkajs takes the whole request for failed. It sends all of it again, and sets the
sequences of all its partitions back, of those that were stored, too. What it sends next under such a sequence the
broker takes for a copy, and acknowledges without storing it. So nothing of a request may be stored if a part of it is
refused.

It is known by what no other client does: it speaks version 7, and asks for ApiVersions in version 2, or not at all on a
connection after its first. Its batches have 0 for a leader epoch, and its requests a timeout of 30 s unless it is told
another one. Without idempotence its batches have no producer id, yet an epoch and a sequence, both 0.

aiokafka asks for ApiVersions in version 0, Java's clients of that time wrote -1 for a leader epoch, sarama's had a
timeout of 10 s. Newer ones tell their names.
"""

from struct import Struct

from brimline.wire.produce import ProduceIndex

KAFKAJS = "kafkajs"

_VERSION = 7
_API_VERSIONS = (None, 2)
_TIMEOUT_MS = 30_000
_NO_PRODUCER = (-1, 0, 0)
_LEADER_EPOCH = Struct(">20xi")
"""Behind the partition's number, the length of its records, and the batch's first offset and length."""


def is_kafkajs(payload: memoryview, index: ProduceIndex, asked_api_versions: int | None) -> bool:
    """``asked_api_versions`` is the version of the connection's last ApiVersions request, if there was one."""
    if index.version != _VERSION or asked_api_versions not in _API_VERSIONS or not index.parts:
        return False
    for part in index.parts:
        if part.producer_id < 0:
            if (part.producer_id, part.producer_epoch, part.base_sequence) != _NO_PRODUCER:
                return False
        elif index.timeout_ms != _TIMEOUT_MS or _LEADER_EPOCH.unpack_from(payload, part.start)[0] != 0:
            return False
    return True

"""OffsetCommit requests of every version, as kafka-python writes them."""

from uuid import UUID

from kafka.protocol.consumer import OffsetCommitRequest

VERSIONS = range(11)
FIRST_FLEXIBLE = 8
TOPIC_ID = UUID("5e3c1f0a-7d0b-4a87-b4d4-c70616313919")
CORRELATION_ID = 77


def offset_commit(
    version: int, group: str = "group", *, partitions: int = 2, topics: int = 2, metadata: str | None = "why"
) -> bytes:
    """A payload."""
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    of_partition = of_topic.OffsetCommitRequestPartition
    asked = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=3,
        member_id="member",
        group_instance_id="instance" if version >= 7 else None,
        retention_time_ms=-1,
        topics=[
            of_topic(
                name=f"topic-{number}",
                topic_id=TOPIC_ID,
                partitions=[
                    of_partition(partition_index=each, committed_offset=2**40, committed_metadata=metadata)
                    for each in range(partitions)
                ],
            )
            for number in range(topics)
        ],
        version=version,
    )
    asked.with_header(correlation_id=CORRELATION_ID, client_id="client")
    return bytes(asked.encode(header=True))

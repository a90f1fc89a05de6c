"""Requests that change nothing and get the same answer however often they are asked, in every version there is.

So: only looks, trials (``validate_only``), mistakes, and a batch that the broker already has.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.sasl import SaslHandshakeRequest

from tests.integration.raw_kafka import framed, request
from tests.wire.produce_messages import Partition, PlainRequest, PlainTopic, batch, encoded_request

TOPIC = "asked-about"
BATCH = batch(producer_id=1 << 40, producer_epoch=0, base_sequence=0)
"""Of an idempotent producer. Stored once, every later one is a duplicate, and is answered as the first one was."""
PRODUCE_VERSIONS = range(14)
_FIRST_WITH_NEW_ID = 7
"""Of CreateTopics: from then on even a trial is answered with the id that the topic would have, a new one each time."""

_FetchTopic = FetchRequest.FetchTopic
_OffsetsTopic = ListOffsetsRequest.ListOffsetsTopic
_EpochTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_AlteredResource = IncrementalAlterConfigsRequest.AlterConfigsResource
_DescribedResource = DescribeConfigsRequest.DescribeConfigsResource
_OffsetFetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup


def repeatable_requests(topic_id: UUID) -> Mapping[str, list[bytes]]:
    """API → frames."""
    frames = {name: list(_in_every_version(message)) for name, message in _messages(topic_id).items()}
    frames["CreateTopics"] = [frame for frame in frames["CreateTopics"] if version_of(frame) < _FIRST_WITH_NEW_ID]
    return {"Produce": list(produce_requests(topic_id)), **frames}


def version_of(frame: bytes) -> int:
    return int.from_bytes(frame[6:8])


def produce_requests(topic_id: UUID) -> Iterator[bytes]:
    """In every version, of which brokers have long dropped the first: a duplicate, mistakes, and both in one."""
    known = Partition(1, BATCH)
    damaged = Partition(0, BATCH[:-1] + bytes([BATCH[-1] ^ 1]))
    nowhere = Partition(77, BATCH)
    unheard_of = PlainTopic("unheard-of", UUID(int=77), [Partition(0, BATCH)])
    for version in PRODUCE_VERSIONS:
        for partitions in ([known], [known, damaged, nowhere], []):
            asked = PlainRequest([PlainTopic(TOPIC, topic_id, partitions), unheard_of])
            yield framed(encoded_request(asked, version))
        yield framed(encoded_request(PlainRequest([PlainTopic(TOPIC, topic_id, [known])], acks=5), version))


def _in_every_version(message: Any) -> Iterator[bytes]:  # kafka-python is not typed
    for version in range(message.min_version, message.max_version + 1):
        yield request(message, version)


def _messages(topic_id: UUID) -> dict[str, Any]:
    return {
        "Metadata": MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(topic_id=None, name=name) for name in (TOPIC, "unheard-of")],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        ),
        "Fetch": _fetch(topic_id),
        "ListOffsets": ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                _OffsetsTopic(
                    name=TOPIC,
                    partitions=[
                        _OffsetsTopic.ListOffsetsPartition(
                            partition_index=0, current_leader_epoch=-1, timestamp=-1, max_num_offsets=1
                        )
                    ],
                )
            ],
            timeout_ms=1000,
        ),
        "OffsetForLeaderEpoch": OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                _EpochTopic(
                    topic=TOPIC,
                    partitions=[
                        _EpochTopic.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
                    ],
                )
            ],
        ),
        "FindCoordinator": FindCoordinatorRequest(key="group", key_type=0, coordinator_keys=["group", "another"]),
        "OffsetFetch": OffsetFetchRequest(
            group_id="group",
            topics=[],
            groups=[_OffsetFetchGroup(group_id="group", member_id=None, member_epoch=-1, topics=None)],
            require_stable=False,
        ),
        "Heartbeat": HeartbeatRequest(group_id="group", generation_id=3, member_id="nobody", group_instance_id=None),
        "DescribeGroups": DescribeGroupsRequest(groups=["group"], include_authorized_operations=True),
        "ListGroups": ListGroupsRequest(states_filter=[], types_filter=[]),
        "CreateTopics": CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
                )
                for name in ("only-tried", TOPIC, "no/such/name")
            ],
            timeout_ms=10_000,
            validate_only=True,
        ),
        "CreatePartitions": CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=5, assignments=None)],
            timeout_ms=10_000,
            validate_only=True,
        ),
        "DeleteTopics": DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name="unheard-of", topic_id=None)],
            topic_names=["unheard-of"],
            timeout_ms=10_000,
        ),
        "DescribeConfigs": DescribeConfigsRequest(
            resources=[
                _DescribedResource(resource_type=kind, resource_name=name, configuration_keys=None)
                for kind, name in ((2, TOPIC), (4, "1"))
            ],
            include_synonyms=True,
            include_documentation=True,
        ),
        "IncrementalAlterConfigs": IncrementalAlterConfigsRequest(
            resources=[
                _AlteredResource(
                    resource_type=2,
                    resource_name=TOPIC,
                    configs=[_AlteredResource.AlterableConfig(name="retention.ms", config_operation=0, value="1000")],
                )
            ],
            validate_only=True,
        ),
        "DescribeCluster": DescribeClusterRequest(
            include_cluster_authorized_operations=True, endpoint_type=1, include_fenced_brokers=False
        ),
        "DescribeTopicPartitions": DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=TOPIC)], response_partition_limit=10, cursor=None
        ),
        "DescribeProducers": DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])]
        ),
        "DescribeLogDirs": DescribeLogDirsRequest(topics=None),
        "DescribeAcls": DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
        "DescribeClientQuotas": DescribeClientQuotasRequest(components=[], strict=False),
        "ListPartitionReassignments": ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None),
        "SaslHandshake": SaslHandshakeRequest(mechanism="PLAIN"),
    }


def _fetch(topic_id: UUID) -> Any:  # kafka-python is not typed
    """All there is, without a session."""
    wanted = _FetchTopic.FetchPartition(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=0,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[_FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=[wanted])],
        forgotten_topics_data=[],
        rack_id="",
    )

"""First questions of every client: versions, nodes, topics."""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class ApiVersionsRequest(Message, kind="request", key=18, versions=(0, 5), flexible=3):
    """Asks what the server speaks; may come in a version that it does not.

    `cluster_id` and `node_id` say whom the client means to ask: both, or none (KIP-1242).
    """

    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)
    cluster_id: str | None = string(since=5, nullable=5, default=None, ignorable=True)
    node_id: int = int32(since=5, default=-1, ignorable=True)


class ApiVersionsResponse(Message, kind="response", key=18, versions=(0, 5), flexible=3):
    """Apis with their versions, and the features of the cluster (KIP-584)."""

    class ApiVersion(Struct):
        api_key: int = int16(key=True)
        min_version: int = int16()
        max_version: int = int16()

    class SupportedFeatureKey(Struct):
        name: str = string(key=True)
        min_version: int = int16()
        max_version: int = int16()

    class FinalizedFeatureKey(Struct):
        name: str = string(key=True)
        max_version_level: int = int16()
        min_version_level: int = int16()

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, since=3, tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64(since=3, tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean(since=3, tag=3, ignorable=True)


class DescribeClusterRequest(Message, kind="request", key=60, versions=(0, 2)):
    """Asks for the nodes of one kind: endpoint type 1 brokers, 2 controllers."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


class DescribeClusterResponse(Message, kind="response", key=60, versions=(0, 2)):
    """The nodes and the one that is the controller."""

    class DescribeClusterBroker(Struct):
        broker_id: int = int32(key=True)
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=0, default=None)
        is_fenced: bool = boolean(since=2)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-(2**31))


class MetadataRequest(Message, kind="request", key=3, versions=(0, 13), flexible=9):
    """Asks a broker for topics (null: all) and where their partitions are led."""

    class MetadataRequestTopic(Struct):
        topic_id: Uuid = uuid(since=10, ignorable=True)
        name: str | None = string(nullable=10)

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


class MetadataResponse(Message, kind="response", key=3, versions=(0, 13), flexible=9):
    """Brokers and topics; offsets and leaders are those that the broker knows."""

    class MetadataResponseBroker(Struct):
        node_id: int = int32(key=True)
        host: str = string()
        port: int = int32()
        rack: str | None = string(since=1, nullable=0, default=None, ignorable=True)

    class MetadataResponseTopic(Struct):
        class MetadataResponsePartition(Struct):
            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32(since=7, default=-1, ignorable=True)
            replica_nodes: list[int] = array("int32")
            isr_nodes: list[int] = array("int32")
            offline_replicas: list[int] = array("int32", since=5, ignorable=True)

        error_code: int = int16()
        name: str | None = string(nullable=12, key=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        is_internal: bool = boolean(since=1, ignorable=True)
        partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
        topic_authorized_operations: int = int32(since=8, default=-(2**31))

    throttle_time_ms: int = int32(since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable=0, default=None, ignorable=True)
    controller_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=-(2**31))
    error_code: int = int16(since=13, ignorable=True)

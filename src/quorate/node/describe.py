"""What a controller says of the cluster and of the quorum: DescribeCluster, DescribeQuorum.

Error codes and texts are those of `ControllerApis` and `KafkaRaftClient`.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, ZERO_UUID
from quorate.node.raft_rpc_inbound import request_from_wire
from quorate.node.request_context import NodeView
from quorate.node.requests import Call
from quorate.raft.describe import QuorumDescription, ReplicaDescription
from quorate.security.acl import AclOperation
from quorate.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from quorate.wire.schema import Message

CONTROLLERS: Final = 2
"""DescribeCluster's endpoint type; 1 is brokers."""
_NOT_ASKED_FOR: Final = -(2**31)
_NO_METADATA_VERSION: Final = (
    "There is no finalized MetadataVersion, so direct-to-controller communication is not supported."
)
_OLD_METADATA_VERSION: Final = (
    "Direct-to-controller communication is not supported with the current MetadataVersion."
)
_ALL_OPERATIONS: Final = sum(
    1 << operation
    for operation in (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    )
)
"""What Kafka knows to do with a cluster; without an authorizer every client may."""
_WITH_DIRECTORIES: Final = 2
"""The version of DescribeQuorum that has directory ids and nodes."""


def ask_core(host: NodeView, call: Call) -> Message | None:
    """Hand a raft request to the core; its response comes later."""
    request = request_from_wire(call.message, call.request.version, host.cluster_id)
    if isinstance(request, Message):
        return request
    host.ask_core(call, request)
    return None


def without_registrations(host: NodeView) -> Message | None:
    """Refuse DescribeCluster where controllers do not register (`ControllerApis.handleDescribeCluster`)."""
    version = host.image.features.metadata_version
    if version is not None and version.controller_registration:
        return None
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message=_NO_METADATA_VERSION if version is None else _OLD_METADATA_VERSION,
    )


def describe_cluster(host: NodeView, call: Call) -> Message:
    message = call.message
    assert isinstance(message, DescribeClusterRequest)
    if message.endpoint_type != CONTROLLERS:
        return _wrong_endpoint_type(message.endpoint_type, call.request.version)
    nodes = []
    for controller_id, controller in sorted(host.image.cluster.controllers.items()):
        for endpoint in controller.listeners:
            if endpoint.name.upper() == call.listener:
                nodes.append(
                    DescribeClusterResponse.DescribeClusterBroker(
                        broker_id=controller_id, host=endpoint.host, port=endpoint.port
                    )
                )
    known = any(node.broker_id == host.leader_id for node in nodes)
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=host.cluster_id,
        controller_id=host.leader_id if known else -1,
        brokers=nodes,
        cluster_authorized_operations=_ALL_OPERATIONS
        if message.include_cluster_authorized_operations
        else _NOT_ASKED_FOR,
    )


def _wrong_endpoint_type(endpoint_type: int, version: int) -> Message:
    if endpoint_type == 1:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        text = (
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of "
            "type BROKER"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        text = f"Unsupported endpoint type {endpoint_type}"
    if version == 0:
        error = ErrorCode.INVALID_REQUEST
    return DescribeClusterResponse(error_code=error, error_message=text)


def describe_quorum(host: NodeView, call: Call) -> Message:
    message = call.message
    assert isinstance(message, DescribeQuorumRequest)
    topics = message.topics
    ours = (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and [partition.partition_index for partition in topics[0].partitions] == [0]
    )
    if not ours:
        return _quorum_errors(message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    found = host.describe()
    if found is None:
        return _quorum_errors(message, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    whole = call.request.version >= _WITH_DIRECTORIES
    topic = DescribeQuorumResponse.TopicData
    partition = topic.PartitionData(
        leader_id=found.leader_id,
        leader_epoch=found.epoch,
        high_watermark=found.high_watermark,
        current_voters=[_replica_state(host, found, state, whole) for state in found.voters],
        observers=[_replica_state(host, found, state, whole) for state in found.observers],
    )
    node = DescribeQuorumResponse.Node
    return DescribeQuorumResponse(
        topics=[topic(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[
            node(
                node_id=voter.key.id,
                listeners=[
                    node.Listener(name=end.name, host=end.host, port=end.port)
                    for end in voter.listeners
                ],
            )
            for voter in (found.nodes if whole else ())
        ],
    )


def _replica_state(
    host: NodeView, found: QuorumDescription, state: ReplicaDescription, whole: bool
) -> DescribeQuorumResponse.TopicData.PartitionData.ReplicaState:
    """Times on the wire are ms since 1970; -1 for never. The leader's own are the present."""
    since_1970 = host.now.wall_ms - host.now.monotonic_ms

    def wall(time_ms: int) -> int:
        if state.key.id == found.leader_id:
            return host.now.wall_ms
        return time_ms + since_1970 if time_ms >= 0 else -1

    return DescribeQuorumResponse.TopicData.PartitionData.ReplicaState(
        replica_id=state.key.id,
        replica_directory_id=state.key.directory_id if whole else ZERO_UUID,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=wall(state.last_fetch_ms),
        last_caught_up_timestamp=wall(state.last_caught_up_ms),
    )


def _quorum_errors(message: DescribeQuorumRequest, error: ErrorCode) -> Message:
    topic = DescribeQuorumResponse.TopicData
    return DescribeQuorumResponse(
        topics=[
            topic(
                topic_name=asked.topic_name,
                partitions=[
                    topic.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=error,
                        error_message=error.message,
                    )
                    for partition in asked.partitions
                ],
            )
            for asked in message.topics
        ]
    )

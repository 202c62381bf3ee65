"""What a controller answers: one function for each api that this node serves.

A handler returns the answer, or None when it comes later. Which api may be passed on inside an
Envelope, and the texts of errors, are those of `ControllerApis` and `QuorumController`.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, ZERO_UUID, Uuid
from quorate.formats.records import RegisterControllerRecord, encode_record
from quorate.metadata.cluster import SECURITY_PROTOCOLS
from quorate.node import features
from quorate.node.calls import ENVELOPE, Call
from quorate.node.host import Done, Handler, Host
from quorate.node.replica import Committed
from quorate.node.translate import request_from_wire
from quorate.raft.describe import QuorumDescription, ReplicaDescription
from quorate.raft.ready import Refused
from quorate.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from quorate.wire.registry import APIS, CONTROLLER_API_VERSIONS
from quorate.wire.schema import Message

__all__ = ["FORWARDABLE", "HANDLERS", "Done", "Handler", "Host", "served"]

CONTROLLERS: Final = 2
"""DescribeCluster's endpoint type; 1 is brokers."""
_NOT_ASKED_FOR: Final = -(2**31)
_ALL_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""What may be done to a cluster (`AclOperation`), and without an authorizer by everybody."""
_WITH_DIRECTORIES: Final = 2
"""The version of DescribeQuorum that tells directory ids and nodes."""


def _ask_core(host: Host, call: Call) -> Message | None:
    request = request_from_wire(call.message, call.request.version, host.cluster_id)
    if isinstance(request, Message):
        return request
    host.ask_core(call, request)
    return None


# -- versions and nodes -------------------------------------------------------------------------
def _api_versions(host: Host, call: Call) -> Message:
    message = call.request.message
    if message is None:
        low, high = CONTROLLER_API_VERSIONS[18]
        own = ApiVersionsResponse.ApiVersion(api_key=18, min_version=low, max_version=high)
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    assert isinstance(message, ApiVersionsRequest)
    version = call.request.version
    if version >= 3 and not (
        _is_name(message.client_software_name) and _is_name(message.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return features.api_versions(
        served(),
        version,
        host.image,
        host.image_offset,
        host.applied_control.kraft_version,
        host.unstable_features,
    )


def _is_name(text: str) -> bool:
    """KIP-511: letters, digits, `.` and `-`, neither first nor last a sign."""
    return (
        bool(text)
        and all(char.isascii() and (char.isalnum() or char in ".-") for char in text)
        and text[0].isalnum()
        and text[-1].isalnum()
    )


def _describe_cluster(host: Host, call: Call) -> Message:
    message = call.message
    assert isinstance(message, DescribeClusterRequest)
    version = host.image.features.metadata_version
    if version is None or not version.controller_registration:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="Direct-to-controller communication is not supported with the current "
            "MetadataVersion.",
        )
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


# -- the quorum ---------------------------------------------------------------------------------
def _describe_quorum(host: Host, call: Call) -> Message:
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
    host: Host, found: QuorumDescription, state: ReplicaDescription, whole: bool
) -> DescribeQuorumResponse.TopicData.PartitionData.ReplicaState:
    """Times on the wire are since 1970; -1 for never. The leader's own are the present."""
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


# -- what the active controller writes ----------------------------------------------------------
def _register_controller(host: Host, call: Call) -> Message | None:
    message = call.message
    assert isinstance(message, ControllerRegistrationRequest)
    if not host.is_active:
        return ControllerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER)
    version = host.image.features.metadata_version
    if version is None or not version.controller_registration:
        return ControllerRegistrationResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="The current MetadataVersion is too old to support controller "
            "registrations.",
        )
    wrong = [why for end in message.listeners if (why := _listener_problem(end))]
    if wrong:  # Kafka's: UNKNOWN_SERVER_ERROR
        return ControllerRegistrationResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message=wrong[0]
        )
    record = RegisterControllerRecord(
        controller_id=message.controller_id,
        incarnation_id=Uuid(message.incarnation_id),
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=end.name,
                host=end.host,
                port=end.port,
                security_protocol=end.security_protocol,
            )
            for end in message.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=item.name,
                min_supported_version=item.min_supported_version,
                max_supported_version=item.max_supported_version,
            )
            for item in message.features
        ],
    )

    def done(outcome: Committed | Refused) -> Message:
        if isinstance(outcome, Refused):
            return ControllerRegistrationResponse(
                error_code=outcome.error, error_message=outcome.message
            )
        return ControllerRegistrationResponse()

    host.submit(call, [encode_record(record, 0)], done)
    return None


def _listener_problem(end: ControllerRegistrationRequest.Listener) -> str | None:
    """Why a listener must not be registered: once committed, no node could apply an unknown
    protocol, at any start, and DescribeCluster would send admin clients to no address."""
    if end.security_protocol not in SECURITY_PROTOCOLS:
        return f"Unknown security protocol {end.security_protocol} in listener {end.name}"
    if end.port == 0:
        return f"Listener {end.name} has the port 0, which is no address"
    return None if end.host else f"Listener {end.name} has no host, which is no address"


def _not_a_whole_controller(host: Host, call: Call) -> Message:
    """Brokers look for another controller, until a node leads that can serve them (a Java one)."""
    answer = APIS[call.request.api_key].response()
    answer.error_code = ErrorCode.NOT_CONTROLLER  # type: ignore[attr-defined]
    return answer


BROKERS_ASK: Final = frozenset({56, 62, 63, 67, 73})
"""What brokers ask the active controller of their own accord, and no Quorate node serves."""

HANDLERS: Final[dict[int, Handler]] = {
    **dict.fromkeys(BROKERS_ASK, _not_a_whole_controller),
    1: _ask_core,
    18: _api_versions,
    52: _ask_core,
    53: _ask_core,
    54: _ask_core,
    55: _describe_quorum,
    59: _ask_core,
    60: _describe_cluster,
    70: _register_controller,
    80: _ask_core,
    81: _ask_core,
    82: _ask_core,
}
"""By api key, for any node; ENVELOPE is unwrapped before it comes here."""

ALTER_CLIENT_QUOTAS: Final = 49
UPDATE_FEATURES: Final = 57
"""Both served by a controller alone (`quota_handler`, `feature_handler`)."""

FORWARDABLE: Final = frozenset({ALTER_CLIENT_QUOTAS, 55, UPDATE_FEATURES, 80, 81})
"""Those that a broker may pass on in an Envelope."""


@cache
def served() -> tuple[tuple[int, int, int], ...]:
    """(api key, lowest, highest version) of everything this node answers, by key."""
    return tuple(
        (key, *CONTROLLER_API_VERSIONS[key])
        for key in sorted({*HANDLERS, ALTER_CLIENT_QUOTAS, UPDATE_FEATURES, ENVELOPE})
    )

"""The one table of APIs: what a controller serves, how, to whom, and within which limits.

ApiVersions, Envelope, quotas, the limits of requests, the audit trail and `docs/apis.md` are derived
from it. The columns are in `quorate.node.api_row`. A new API is a row here and, where it writes, a
WriteOperation of its domain in `quorate.controller`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.controller import features, reassignments
from quorate.controller.acls import CREATE_ACLS, DELETE_ACLS
from quorate.controller.brokers import BROKER_REGISTRATION, UNREGISTER_BROKER
from quorate.controller.building import Building
from quorate.controller.configs import (
    ALTER_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    IncrementalAlterConfigs,
)
from quorate.controller.context import ControllerConfig
from quorate.controller.delegation_tokens import (
    CREATE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from quorate.controller.directories import ASSIGN_REPLICAS_TO_DIRS
from quorate.controller.elections import ELECT_LEADERS
from quorate.controller.heartbeats import BROKER_HEARTBEAT
from quorate.controller.isr import ALTER_PARTITION
from quorate.controller.new_partitions import CREATE_PARTITIONS
from quorate.controller.producer_ids import ALLOCATE_PRODUCER_IDS
from quorate.controller.quota_reads import describe_quotas
from quorate.controller.quotas import ALTER_CLIENT_QUOTAS
from quorate.controller.registration import CONTROLLER_REGISTRATION, UNREGISTER_CONTROLLER
from quorate.controller.result import WriteOperation
from quorate.controller.scram_credentials import ALTER_USER_SCRAM_CREDENTIALS, describe_scram
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.controller.topics import CREATE_TOPICS
from quorate.metadata.image import Image
from quorate.node.api_row import (
    ALL_PARTITIONS_BYTES,
    ALTER,
    ALTER_ALL_CONFIGS,
    ALTER_THEIR_CONFIGS,
    BULK_REQUEST_BYTES,
    CLUSTER_ACTION,
    CREATE_TOKENS,
    DESCRIBE,
    DESCRIBE_ALL_CONFIGS,
    DESCRIBE_THEIR_CONFIGS,
    SMALL_REQUEST_BYTES,
    AclRule,
    ApiRow,
    Arrival,
    Audit,
    Kind,
    topic_rule,
)
from quorate.node.describe import (
    ask_core,
    describe_cluster,
    describe_quorum,
    without_registrations,
)
from quorate.node.read_handlers import (
    change_loggers,
    describe_acls,
    describe_configs,
    describe_tokens,
    describe_topic_partitions,
    list_config_resources,
    record_contact,
)
from quorate.node.request_context import NodeView
from quorate.node.requests import ENVELOPE, Call
from quorate.security.acl import AclOperation, AclResource
from quorate.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from quorate.wire.registry import APIS
from quorate.wire.schema import Message


def _api_versions(host: NodeView, call: Call) -> Message:
    message = call.request.message
    if message is None:
        _, low, high = next(api for api in served() if api[0] == call.request.api_key)
        own = ApiVersionsResponse.ApiVersion(
            api_key=call.request.api_key, min_version=low, max_version=high
        )
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    assert isinstance(message, ApiVersionsRequest)
    version = call.request.version
    if not _is_valid(message, version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return features.api_versions(
        served(),
        version,
        host.image,
        host.image_offset,
        host.applied_control.kraft_version,
        host.unstable_features,
    )


def _sasl_handshake(host: NodeView, call: Call) -> Message:
    """The listener handles logins; what comes here has no place in one (`ControllerApis`)."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def _sasl_authenticate(host: NodeView, call: Call) -> Message:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def _is_valid(message: ApiVersionsRequest, version: int) -> bool:
    """Is the request valid? It names cluster and node together or not at all.

    `ApiVersionsRequest.isValid`.

    A controller does not compare them with its own: only brokers answer REBOOTSTRAP_REQUIRED.
    """
    if version >= 5 and (message.cluster_id is None) != (message.node_id == -1):
        return False
    return version < 3 or (
        _is_name(message.client_software_name) and _is_name(message.client_software_version)
    )


def _is_name(text: str) -> bool:
    """KIP-511: letters, digits, `.` and `-`; the first and the last are letters or digits."""
    return (
        bool(text)
        and all(char.isascii() and (char.isalnum() or char in ".-") for char in text)
        and text[0].isalnum()
        and text[-1].isalnum()
    )


def _raft(
    key: int, name: str, acl: AclRule = CLUSTER_ACTION, *, carries_data: bool = False
) -> ApiRow:
    return ApiRow(
        key,
        name,
        Kind.RAFT,
        ask_core,
        None,
        SMALL_REQUEST_BYTES,
        acl,
        carries_data=carries_data,
        throttled=False,  # the quorum depends on them
    )


def _voter_change(key: int, name: str) -> ApiRow:
    """Return the row of a voter change: of an administrator, through any broker; the raft core answers."""
    return replace(_raft(key, name, ALTER), forwardable=True, audit=Audit.CHANGES)


def _read(
    key: int,
    name: str,
    answer: Callable[[Image, Any], Building[Message]],
    acl: AclRule,
    *,
    max_bytes: int = BULK_REQUEST_BYTES,
    forwardable: bool = False,
) -> ApiRow:
    """answer: from the committed image and the request, in steps."""

    def handle(host: NodeView, call: Call) -> Building[Message]:
        return answer(host.image, call.message)

    return ApiRow(key, name, Kind.READ, handle, None, max_bytes, acl, forwardable=forwardable)


def _write(  # noqa: PLR0913  # a column each
    key: int,
    operation: WriteOperation[Any, Any],
    acl: AclRule | None,
    max_bytes: int,
    *,
    on_arrival: Arrival | None = None,
    timeout_ms: Callable[[ControllerConfig], int] | None = None,
    prepare: Callable[[NodeView, Call], Building[Any]] | None = None,
    forwardable: bool = True,
    throttled: bool = True,
    strict_since: int | None = None,
    audit: Audit = Audit.CHANGES,
    reason: str = "",
) -> ApiRow:
    return ApiRow(
        key,
        operation.name,
        Kind.WRITE,
        None,
        operation,
        max_bytes,
        acl,
        on_arrival=on_arrival,
        timeout_ms=timeout_ms,
        prepare=prepare,
        forwardable=forwardable,
        throttled=throttled,
        strict_since=strict_since,
        audit=audit,
        reason=reason,
    )


def denied(row: ApiRow, call: Call) -> Message | Building[Message]:
    """The response to a requester without the permission that the API needs on the cluster, or what builds
    it in steps."""
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return refused(row, call.message, error, None if row.operation is not None else error.message)


def refused(
    row: ApiRow, message: Message, error: ErrorCode, text: str | None
) -> Message | Building[Message]:
    """The response that refuses a whole request, or what builds it in steps."""
    if row.operation is not None:
        request: object = message
        if isinstance(message, IncrementalAlterConfigsRequest):  # not prepared
            request = IncrementalAlterConfigs(message)
        failed: Message | Building[Message] = row.operation.failed(request, error, text)
        return failed
    if isinstance(message, ListPartitionReassignmentsRequest):
        return reassignments.not_listed(message, error, text)
    response = APIS[row.key].response()
    # `entries` are those of DescribeClientQuotas: null, as in its `getErrorResponse`.
    values = (("error_code", error), ("error_message", text), ("entries", None))
    for name, value in values:
        if hasattr(response, name):
            setattr(response, name, value)
    return response


ROWS: Final[tuple[ApiRow, ...]] = (
    _raft(1, "Fetch", carries_data=True),
    ApiRow(17, "SaslHandshake", Kind.CONNECTION, _sasl_handshake, None, SMALL_REQUEST_BYTES, None),
    ApiRow(18, "ApiVersions", Kind.CONNECTION, _api_versions, None, SMALL_REQUEST_BYTES, None),
    _write(19, CREATE_TOPICS, topic_rule(AclOperation.CREATE), BULK_REQUEST_BYTES, strict_since=6),
    _write(20, DELETE_TOPICS, topic_rule(AclOperation.DELETE), BULK_REQUEST_BYTES, strict_since=5),
    ApiRow(29, "DescribeAcls", Kind.READ, describe_acls, None, SMALL_REQUEST_BYTES, DESCRIBE),
    _write(30, CREATE_ACLS, ALTER, BULK_REQUEST_BYTES),
    _write(31, DELETE_ACLS, ALTER, BULK_REQUEST_BYTES),
    ApiRow(
        32,
        "DescribeConfigs",
        Kind.READ,
        describe_configs,
        None,
        SMALL_REQUEST_BYTES,  # an answer is a hundred times its request, and is made at once
        DESCRIBE_THEIR_CONFIGS,
    ),
    _write(33, ALTER_CONFIGS, ALTER_THEIR_CONFIGS, BULK_REQUEST_BYTES),
    ApiRow(
        36,
        "SaslAuthenticate",
        Kind.CONNECTION,
        _sasl_authenticate,
        None,
        SMALL_REQUEST_BYTES,
        None,
    ),
    _write(
        37, CREATE_PARTITIONS, topic_rule(AclOperation.ALTER), BULK_REQUEST_BYTES, strict_since=3
    ),
    _write(38, CREATE_DELEGATION_TOKEN, CREATE_TOKENS, SMALL_REQUEST_BYTES),
    _write(39, RENEW_DELEGATION_TOKEN, None, SMALL_REQUEST_BYTES),
    _write(40, EXPIRE_DELEGATION_TOKEN, None, SMALL_REQUEST_BYTES),
    ApiRow(
        41,
        "DescribeDelegationToken",
        Kind.READ,
        describe_tokens,
        None,
        SMALL_REQUEST_BYTES,
        AclRule(AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN),
    ),
    _write(43, ELECT_LEADERS, ALTER, BULK_REQUEST_BYTES),
    _write(
        44,
        INCREMENTAL_ALTER_CONFIGS,
        ALTER_THEIR_CONFIGS,
        BULK_REQUEST_BYTES,
        prepare=change_loggers,
    ),
    _write(45, reassignments.ALTER_PARTITION_REASSIGNMENTS, ALTER, BULK_REQUEST_BYTES),
    _read(
        46,
        "ListPartitionReassignments",
        reassignments.list_reassignments,
        DESCRIBE,
        forwardable=True,
    ),
    _read(48, "DescribeClientQuotas", describe_quotas, DESCRIBE_ALL_CONFIGS),
    _write(49, ALTER_CLIENT_QUOTAS, ALTER_ALL_CONFIGS, BULK_REQUEST_BYTES),
    _read(
        50,
        "DescribeUserScramCredentials",
        describe_scram,
        DESCRIBE,
        max_bytes=SMALL_REQUEST_BYTES,  # an answer is ten times its request, and is made at once
    ),
    _write(51, ALTER_USER_SCRAM_CREDENTIALS, ALTER, BULK_REQUEST_BYTES),
    _raft(52, "Vote"),
    _raft(53, "BeginQuorumEpoch"),
    _raft(54, "EndQuorumEpoch"),
    ApiRow(
        55,
        "DescribeQuorum",
        Kind.RAFT,
        describe_quorum,
        None,
        SMALL_REQUEST_BYTES,
        DESCRIBE,
        forwardable=True,
        throttled=False,
    ),
    _write(
        56,
        ALTER_PARTITION,
        CLUSTER_ACTION,
        ALL_PARTITIONS_BYTES,
        forwardable=False,
        throttled=False,
        audit=Audit.ROUTINE,
        reason="the leader changed the ISR",
    ),
    _write(57, features.UPDATE_FEATURES, ALTER, SMALL_REQUEST_BYTES),
    ApiRow(ENVELOPE, "Envelope", Kind.CONNECTION, None, None, BULK_REQUEST_BYTES, CLUSTER_ACTION),
    _raft(59, "FetchSnapshot", carries_data=True),
    ApiRow(
        60,
        "DescribeCluster",
        Kind.READ,
        describe_cluster,
        None,
        SMALL_REQUEST_BYTES,
        ALTER,
        refused_by=without_registrations,
    ),
    _write(62, BROKER_REGISTRATION, CLUSTER_ACTION, SMALL_REQUEST_BYTES, forwardable=False),
    _write(
        63,
        BROKER_HEARTBEAT,
        CLUSTER_ACTION,
        SMALL_REQUEST_BYTES,
        on_arrival=record_contact,
        timeout_ms=lambda config: config.heartbeat_interval_ms // 2,
        forwardable=False,
        audit=Audit.ROUTINE,
        reason="the state of the broker or of its directories changed",
    ),
    _write(64, UNREGISTER_BROKER, ALTER, SMALL_REQUEST_BYTES),
    _write(67, ALLOCATE_PRODUCER_IDS, CLUSTER_ACTION, SMALL_REQUEST_BYTES, audit=Audit.ROUTINE),
    _write(70, CONTROLLER_REGISTRATION, CLUSTER_ACTION, SMALL_REQUEST_BYTES, forwardable=False),
    _write(
        73,
        ASSIGN_REPLICAS_TO_DIRS,
        CLUSTER_ACTION,
        ALL_PARTITIONS_BYTES,
        forwardable=False,
        audit=Audit.ROUTINE,
    ),
    ApiRow(
        74,
        "ListConfigResources",
        Kind.READ,
        list_config_resources,
        None,
        SMALL_REQUEST_BYTES,
        DESCRIBE_ALL_CONFIGS,
    ),
    ApiRow(
        75,
        "DescribeTopicPartitions",
        Kind.READ,
        describe_topic_partitions,
        None,
        BULK_REQUEST_BYTES,
        topic_rule(AclOperation.DESCRIBE),
    ),
    _voter_change(80, "AddRaftVoter"),
    _voter_change(81, "RemoveRaftVoter"),
    _raft(82, "UpdateRaftVoter"),
    _write(94, UNREGISTER_CONTROLLER, ALTER, SMALL_REQUEST_BYTES),
)

API_TABLE: Final[dict[int, ApiRow]] = {row.key: row for row in ROWS}
"""By API key."""


@cache
def served() -> tuple[tuple[int, int, int], ...]:
    """(API key, lowest, highest version) of every row, by key: what ApiVersions advertises."""
    found = (APIS[key] for key in sorted(API_TABLE))
    return tuple((api.key, api.min_version, api.max_version) for api in found)

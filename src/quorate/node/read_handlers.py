"""Handlers that ask whether the requester may see or change each resource, and one for heartbeats."""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.controller import acls, config_reads, delegation_tokens, topic_reads
from quorate.controller.building import Building, each
from quorate.controller.configs import IncrementalAlterConfigs
from quorate.controller.liveness import Liveness
from quorate.controller.result import ApiError
from quorate.node import loggers
from quorate.node.request_context import NodeView
from quorate.node.requests import Call
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import CLUSTER_NAME
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeConfigsRequest,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListConfigResourcesRequest,
)
from quorate.wire.schema import Message


def describe_acls(host: NodeView, call: Call) -> Message | Building[Message]:
    """Answer DescribeAcls, which needs an authorizer."""
    message = call.message
    assert isinstance(message, DescribeAclsRequest)
    if not host.has_authorizer:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
        )
    return acls.describe_acls(host.image, message)


def record_contact(liveness: Liveness, request: BrokerHeartbeatRequest, now_ms: int) -> None:
    """Record the contact when a heartbeat arrives: the queue may be long."""
    liveness.contact(request.broker_id, request.broker_epoch, now_ms)


def change_loggers(host: NodeView, call: Call) -> Building[IncrementalAlterConfigs]:
    """Set the levels of this node's loggers, and return what is left for the active controller."""
    is_allowed = host.may(call, AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME)
    return loggers.change_loggers(host.loggers, host.node_id, call.message, is_allowed=is_allowed)


def describe_configs(host: NodeView, call: Call) -> Building[Message]:
    """Answer DescribeConfigs for the resources that the requester may describe."""
    message = call.message
    assert isinstance(message, DescribeConfigsRequest)

    def may(resource: AclResource, name: str) -> bool:
        return host.may(call, AclOperation.DESCRIBE_CONFIGS, resource, name)

    return config_reads.describe_configs(
        host.image, message, host.configs, host.loggers.levels(), may
    )


def describe_topic_partitions(host: NodeView, call: Call) -> Building[Message]:
    """Answer DescribeTopicPartitions for the topics that the requester may describe."""
    message = call.message
    assert isinstance(message, DescribeTopicPartitionsRequest)

    def may(name: str) -> bool:
        return host.may(call, AclOperation.DESCRIBE, AclResource.TOPIC, name)

    try:
        return (yield from topic_reads.describe_topic_partitions(host.image, message, may))
    except ApiError as error:
        return (yield from _failed_topics(message, error))


def _failed_topics(
    request: DescribeTopicPartitionsRequest, error: ApiError
) -> Building[DescribeTopicPartitionsResponse]:
    """The response has no error of its own: each topic has one (`getErrorResponse`)."""
    topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    topics = yield from each(
        request.topics, lambda asked: topic(name=asked.name, error_code=error.error)
    )
    return DescribeTopicPartitionsResponse(topics=topics)


def describe_tokens(host: NodeView, call: Call) -> Message | Building[Message]:
    """Answer DescribeDelegationToken: Kafka's controllers do not serve it, and KIP-919 names it."""
    message = call.message
    assert isinstance(message, DescribeDelegationTokenRequest)
    if not host.may_use_tokens(call):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return DescribeDelegationTokenResponse(error_code=error)

    def may(operation: AclOperation, resource: AclResource, name: str) -> bool:
        return host.may(call, operation, resource, name)

    return delegation_tokens.describe_tokens(
        host.image, message, host.tokens, host.token_secrets, call.principal, may
    )


def list_config_resources(host: NodeView, call: Call) -> Building[Message]:
    """Answer ListConfigResources."""
    message = call.message
    assert isinstance(message, ListConfigResourcesRequest)
    return config_reads.list_config_resources(host.image, message, call.request.version)

"""Any write API of the table asked of a cluster, and what may come back.

A new API needs a row in ERRORS, and one in ROWS_OF where its response has a result for each item.
"""

from types import SimpleNamespace

from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.result import ApiError
from quorate.node.apis import ROWS
from quorate.node.loggers import NoLoggers
from quorate.node.long_texts import shorten_error_messages
from quorate.node.old_versions import in_version
from quorate.wire.codec import decode, encode
from quorate.wire.errors import EncodeError
from quorate.wire.messages import AlterClientQuotasRequest, AlterPartitionRequest
from quorate.wire.registry import APIS

WRITES = [row for row in ROWS if row.operation is not None]
E = ErrorCode
_CONFIGS = {
    *(E.INVALID_CONFIG, E.INVALID_REQUEST, E.UNSUPPORTED_VERSION, E.POLICY_VIOLATION),
    *(E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION, E.BROKER_ID_NOT_REGISTERED),
    *(E.TOPIC_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED, E.CLUSTER_AUTHORIZATION_FAILED),
}
_TOKENS = {
    *(E.DELEGATION_TOKEN_NOT_FOUND, E.DELEGATION_TOKEN_EXPIRED, E.DELEGATION_TOKEN_OWNER_MISMATCH),
    *(E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, E.UNSUPPORTED_VERSION),
}
ERRORS = {
    "CreateTopics": {
        *(E.INVALID_REQUEST, E.TOPIC_AUTHORIZATION_FAILED, E.POLICY_VIOLATION, E.INVALID_CONFIG),
        *(E.INVALID_TOPIC_EXCEPTION, E.TOPIC_ALREADY_EXISTS, E.INVALID_REPLICATION_FACTOR),
        *(E.INVALID_PARTITIONS, E.INVALID_REPLICA_ASSIGNMENT),
    },
    "DeleteTopics": {
        *(E.INVALID_REQUEST, E.TOPIC_AUTHORIZATION_FAILED, E.UNKNOWN_TOPIC_ID),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    },
    "CreateAcls": {E.INVALID_REQUEST, E.UNSUPPORTED_VERSION},
    "DeleteAcls": {E.INVALID_REQUEST},
    "AlterConfigs": _CONFIGS,
    "CreatePartitions": {
        *(E.INVALID_REQUEST, E.TOPIC_AUTHORIZATION_FAILED, E.POLICY_VIOLATION),
        *(E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_PARTITIONS, E.INVALID_REPLICA_ASSIGNMENT),
        E.INVALID_REPLICATION_FACTOR,
    },
    "CreateDelegationToken": {
        *(E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, E.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
        *(E.UNSUPPORTED_VERSION, E.INVALID_PRINCIPAL_TYPE, E.INVALID_REQUEST),
        E.UNKNOWN_SERVER_ERROR,  # to an owner with a name and no type: Kafka has no other code
    },
    "RenewDelegationToken": _TOKENS,
    "ExpireDelegationToken": _TOKENS,
    "ElectLeaders": {
        *(E.INVALID_REQUEST, E.UNKNOWN_TOPIC_OR_PARTITION, E.ELECTION_NOT_NEEDED),
        *(E.PREFERRED_LEADER_NOT_AVAILABLE, E.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    },
    "IncrementalAlterConfigs": _CONFIGS,
    "AlterPartitionReassignments": {
        *(E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_REPLICA_ASSIGNMENT),
        *(E.INVALID_REPLICATION_FACTOR, E.NO_REASSIGNMENT_IN_PROGRESS),
    },
    "AlterClientQuotas": {E.INVALID_REQUEST},
    "AlterUserScramCredentials": {
        *(E.UNSUPPORTED_VERSION, E.UNACCEPTABLE_CREDENTIAL, E.UNSUPPORTED_SASL_MECHANISM),
        *(E.RESOURCE_NOT_FOUND, E.DUPLICATE_RESOURCE),
    },
    "AlterPartition": {
        *(E.STALE_BROKER_EPOCH, E.UNKNOWN_TOPIC_ID, E.UNKNOWN_TOPIC_OR_PARTITION),
        *(E.NOT_CONTROLLER, E.FENCED_LEADER_EPOCH, E.INVALID_REQUEST, E.INVALID_UPDATE_VERSION),
        *(E.INELIGIBLE_REPLICA, E.NEW_LEADER_ELECTED),
    },
    "UpdateFeatures": {E.INVALID_UPDATE_VERSION},
    "BrokerRegistration": {
        *(E.INCONSISTENT_CLUSTER_ID, E.DUPLICATE_BROKER_REGISTRATION, E.BROKER_ID_NOT_REGISTERED),
        *(E.INVALID_REGISTRATION, E.UNSUPPORTED_VERSION),
    },
    "BrokerHeartbeat": {E.STALE_BROKER_EPOCH},
    "UnregisterBroker": {E.BROKER_ID_NOT_REGISTERED},
    "AllocateProducerIds": {E.STALE_BROKER_EPOCH},
    "ControllerRegistration": {E.UNSUPPORTED_VERSION, E.INVALID_REQUEST},
    "AssignReplicasToDirs": {
        *(E.UNSUPPORTED_VERSION, E.STALE_BROKER_EPOCH, E.UNKNOWN_TOPIC_ID),
        *(E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_LEADER_OR_FOLLOWER),
    },
    "UnregisterController": {
        *(E.INVALID_REQUEST, E.UNSUPPORTED_VERSION, E.CONTROLLER_ID_NOT_REGISTERED),
    },
}
"""What a client may be answered, by API: what its decision refuses a request with."""


def _entity(entry):
    return tuple(
        sorted({part.entity_type: part.entity_name for part in entry.entity}.items(), key=str)
    )


def _placed(topics):
    return [(topic.topic_id, [p.partition_index for p in topic.partitions]) for topic in topics]


def _resources(resources):
    return {(resource.resource_type, resource.resource_name) for resource in resources}


_CONFIG_ROWS = (lambda q: _resources(q.resources), lambda r: _resources(r.responses))
ROWS_OF = {
    "CreateTopics": (
        lambda q: sorted({topic.name for topic in q.topics}),
        lambda r: sorted(topic.name for topic in r.topics),
    ),
    "CreatePartitions": (
        lambda q: sorted({topic.name for topic in q.topics}),
        lambda r: sorted(topic.name for topic in r.results),
    ),
    "AlterConfigs": _CONFIG_ROWS,
    "IncrementalAlterConfigs": _CONFIG_ROWS,
    "CreateAcls": (lambda q: len(q.creations), lambda r: len(r.results)),
    "DeleteAcls": (lambda q: len(q.filters), lambda r: len(r.filter_results)),
    "AlterPartitionReassignments": (
        lambda q: [(t.name, [p.partition_index for p in t.partitions]) for t in q.topics],
        lambda r: [(t.name, [p.partition_index for p in t.partitions]) for t in r.responses],
    ),
    "AlterClientQuotas": (
        lambda q: {_entity(entry) for entry in q.entries},
        lambda r: {_entity(entry) for entry in r.entries},
    ),
    "AlterUserScramCredentials": (
        lambda q: sorted({item.name for item in (*q.deletions, *q.upsertions)}),
        lambda r: sorted(result.user for result in r.results),
    ),
    "AlterPartition": (lambda q: _placed(q.topics), lambda r: _placed(r.topics)),
    "AssignReplicasToDirs": (
        lambda q: [(each.id, _placed(each.topics)) for each in q.directories],
        lambda r: [(each.id, _placed(each.topics)) for each in r.directories],
    ),
}
"""By API with a result for each item: what a request names, and what the response answers."""


def may_change_though_refused(message, codes):
    """Whether a response without a success may come with records, as Kafka's does."""
    if isinstance(
        message, AlterClientQuotasRequest
    ):  # of an entity named twice the first change is made
        return len({_entity(entry) for entry in message.entries}) < len(message.entries)
    return isinstance(message, AlterPartitionRequest) and E.NEW_LEADER_ELECTED in codes


_HOST = SimpleNamespace(loggers=NoLoggers(), node_id=3000, may=lambda *asked: True)
"""The node that was asked."""


def leaf_codes(item):
    """The error code of the request, or that of each of its items."""
    own = getattr(item, "error_code", None)
    if own:
        return [E(own)]
    items = [
        each
        for field in item.schema.fields
        if field.type_name == "array" and field.holds_structs
        for each in getattr(item, field.name) or ()
    ]
    found = [code for each in items for code in leaf_codes(each)]
    return found or ([] if own is None else [E.NONE])


def encoded(response, version):
    """The bytes of the response, which a client can decode."""
    response = in_version(response, version)
    try:
        body = encode(response, version)
    except EncodeError:
        assert shorten_error_messages(response)
        body = encode(response, version)
    assert encode(decode(type(response), version, body), version) == body
    return body


def request_of(row, message):
    """What the operation takes: the message, or what the row prepares from it."""
    if row.prepare is None:
        return message
    return at_once(row.prepare(_HOST, SimpleNamespace(message=message)))


def refusal(row, request, refused):
    """The response to a request that is refused as a whole."""
    response = row.operation.failed(request, refused.error, str(refused))
    return response if isinstance(response, APIS[row.key].response) else at_once(response)


def ask(cluster, row, message, version):
    """The response of the API; the records are in the image and in `cluster.records`."""
    request = request_of(row, message)
    cluster.records = []
    response = row.operation.empty(request)
    if response is not None:
        return response
    try:
        return cluster.decide(row.operation, request, version)
    except ApiError as refused:
        return refusal(row, request, refused)

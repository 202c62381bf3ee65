"""Lines of `kafka.request.logger` at DEBUG: each request with body, response and principal.

Kafka's `RequestChannel` writes `Completed request:{...}` when it has sent the response. Of a
forwarded request both nodes write one: the broker with the client's connection, the active
controller with `isForwarded`, the same principal and client id, and the broker's connection.

The time of a line is the end of the request by the clock of its node; it began `totalTimeMs`
earlier. The time of a metadata record is by the clock of the active controller. So only the active
controller's own lines (all with `isForwarded`) compare with records without clock skew.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from quorate.metadata import settings
from quorate.spark.decode.facts import ACL_RESOURCES
from quorate.spark.tables.kinds import (
    HIDDEN,
    MECHANISMS,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    config_type,
    quota_key,
    word,
)
from quorate.spark.tables.secrets import is_secret_config
from quorate.spark.who.keys import ANY, BODY, key
from quorate.spark.who.messages import EvidenceKey

PREFIX: Final = "Completed request:"
_NAME: Final = re.compile(r'"requestApiKeyName":"(\w+)"')
_SECRET: Final = re.compile(r'"(salt|saltedPassword|hmac)":"[^"]*"')
_TEXT_BYTES: Final = 600
Json = dict[str, Any]


class CompletedRequest(NamedTuple):
    """A completed request that may have changed metadata."""

    request: str
    """Its name as the authorizer logs it: `CreateTopics`."""
    principal: str
    host: str | None
    """Of the client; None in the line of a controller, which has the broker's connection."""
    client_id: str | None
    forwarded: bool
    total_ms: int
    """Duration in ms, rounded up, since the times of lines are truncated to the ms."""
    keys: tuple[str, ...]
    """Keys of what it changed: the parts that were answered without an error."""


def is_request(message: str) -> bool:
    return message.startswith(PREFIX)


def is_interesting(text: str) -> bool:
    """Whether the line may be of a request that can change metadata.

    A cheap look at the beginning: nearly all lines are of FETCH and the like.
    """
    found = _NAME.search(text, 0, 2000)
    return found is None or found[1] in READERS


def parse_request(message: str) -> CompletedRequest | None:
    """A completed request; None for one that cannot change metadata.

    Raises ValueError when it is not the JSON that Kafka writes.
    """
    try:
        entry = json.loads(message.removeprefix(PREFIX))
        header = entry["requestHeader"]
        reader = READERS.get(header["requestApiKeyName"])
        if reader is None:
            return None
        name, read = reader
        body, answer = entry["request"], entry["response"]
        if not isinstance(answer, dict) or body.get("validateOnly"):
            return None
        keys = () if answer.get("errorCode") else tuple(read(body, answer))
        forwarded = bool(entry.get("isForwarded"))
        return CompletedRequest(
            name,
            entry["principal"],
            None if forwarded else _client(entry["connection"]),
            header.get("clientId"),
            forwarded,
            math.ceil(entry["totalTimeMs"]),
            tuple(key(name, *words) for words in keys),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a request of Kafka: {error!r}") from None


def request_evidence(request: CompletedRequest) -> Iterator[EvidenceKey]:
    """The keys for which a request is evidence."""
    for one in request.keys:
        yield EvidenceKey(one, BODY)


def shown(text: str) -> str:
    """The line as shown: truncated, and without secrets (SCRAM salts and keys, token HMACs)."""
    return _SECRET.sub(rf'"\1":"{HIDDEN}"', text)[:_TEXT_BYTES]


def _client(connection: str) -> str | None:
    """The client's host in `server:port-client:port-processor-number`."""
    found = re.search(r":\d+-(.+):\d+-\d+(?:-\d+)?$", connection)
    return found[1].strip("[]") if found else None


def _ok(answers: list[Json], *names: str) -> set[Any]:
    """The values of these fields of each result without an error."""
    return {tuple(one.get(name) for name in names) for one in answers if not one["errorCode"]}


Keys = Iterator[tuple[Any, ...]]


def _create_topics(_body: Json, answer: Json) -> Keys:
    for (name,) in _ok(answer["topics"], "name"):
        yield "topic", name


def _delete_topics(_body: Json, answer: Json) -> Keys:
    for (name,) in _ok(answer["responses"], "name"):
        yield "topic", name


def _create_partitions(_body: Json, answer: Json) -> Keys:
    for (name,) in _ok(answer["results"], "name"):
        yield "topic", name


def _shown_value(resource_type: int, name: str, value: Any) -> Any:
    """A config's value; ANY for a secret one, which the line or the tables hide."""
    secret = value is not None and is_secret_config(resource_type, name)
    return ANY if secret or value == HIDDEN else value


def _incremental_alter_configs(body: Json, answer: Json) -> Keys:
    good = _ok(answer["responses"], "resourceType", "resourceName")
    for resource in body["resources"]:
        about = resource["resourceType"], resource["resourceName"]
        for one in resource["configs"] if about in good else ():
            operation = one.get("configOperation", 0)
            value = (one["value"], None, ANY, ANY)[operation]
            shown = _shown_value(about[0], one["name"], value)
            yield "config", config_type(about[0]), about[1], one["name"], shown


def _alter_configs(body: Json, answer: Json) -> Keys:
    """AlterConfigs deletes every config that it does not set."""
    good = _ok(answer["responses"], "resourceType", "resourceName")
    for resource in body["resources"]:
        about = resource["resourceType"], resource["resourceName"]
        if about in good:
            yield "config", config_type(about[0]), about[1], ANY, None
            for one in resource["configs"]:
                value = _shown_value(about[0], one["name"], one["value"])
                yield "config", config_type(about[0]), about[1], one["name"], value


def _alter_client_quotas(body: Json, answer: Json) -> Keys:
    good = {_entity(one["entity"]) for one in answer["entries"] if not one["errorCode"]}
    for entry in body["entries"]:
        entity = _entity(entry["entity"])
        for one in entry["ops"] if entity in good else ():
            value = None if one["remove"] else float(one["value"])
            yield "quota", entity, one["key"], value


def _entity(parts: list[Json]) -> str:
    names = {part["entityType"]: part["entityName"] for part in parts}
    return str(quota_key(settings.quota_entity(names), "")[0])


def _acl(one: Json, pattern: str) -> tuple[Any, ...]:
    return (
        "acl",
        word(ACL_RESOURCES, one["resourceType"]),
        one["resourceName"],
        word(PATTERNS, one[pattern]),
        one["principal"],
        one["host"],
        word(OPERATIONS, one["operation"]),
        word(PERMISSIONS, one["permissionType"]),
    )


def _create_acls(body: Json, answer: Json) -> Keys:
    for one, result in zip(body["creations"], answer["results"], strict=False):
        if not result["errorCode"]:
            yield _acl(one, "resourcePatternType")


def _delete_acls(_body: Json, answer: Json) -> Keys:
    for result in answer["filterResults"]:
        for one in result["matchingAcls"]:
            if not one["errorCode"]:
                yield _acl(one, "patternType")


def _alter_scram(body: Json, answer: Json) -> Keys:
    good = _ok(answer["results"], "user")
    for one in body["upsertions"]:
        if (one["name"],) in good:
            yield "scram", one["name"], word(MECHANISMS, one["mechanism"]), one["iterations"]
    for one in body["deletions"]:
        if (one["name"],) in good:
            yield "scram", one["name"], word(MECHANISMS, one["mechanism"]), None


def _update_features(body: Json, answer: Json) -> Keys:
    bad = {one["feature"] for one in answer.get("results") or () if one["errorCode"]}
    for one in body["featureUpdates"]:
        if one["feature"] not in bad:
            yield "feature", one["feature"], one["maxVersionLevel"] or None


def _reassign(body: Json, answer: Json) -> Keys:
    good = {
        (topic["name"], one["partitionIndex"])
        for topic in answer["responses"]
        for one in topic["partitions"]
        if not one["errorCode"]
    }
    for topic in body["topics"]:
        for one in topic["partitions"]:
            if (topic["name"], one["partitionIndex"]) in good:
                yield "partition", topic["name"], one["partitionIndex"]


def _elect_leaders(_body: Json, answer: Json) -> Keys:
    for topic in answer["replicaElectionResults"]:
        for (number,) in _ok(topic["partitionResult"], "partitionId"):
            yield "partition", topic["topic"], number


def _unregister_broker(body: Json, _answer: Json) -> Keys:
    yield "broker", body["brokerId"]


def _unregister_controller(body: Json, _answer: Json) -> Keys:
    yield "controller", body["controllerId"]


def _voter(body: Json, _answer: Json) -> Keys:
    yield "voter", body["voterId"]


def _token(_body: Json, answer: Json) -> Keys:
    yield "token", answer["tokenId"]


def _token_expiry(_body: Json, answer: Json) -> Keys:
    yield "token expiry", answer["expiryTimestampMs"]


READERS: Final[dict[str, tuple[str, Callable[[Json, Json], Keys]]]] = {
    "CREATE_TOPICS": ("CreateTopics", _create_topics),
    "DELETE_TOPICS": ("DeleteTopics", _delete_topics),
    "CREATE_PARTITIONS": ("CreatePartitions", _create_partitions),
    "INCREMENTAL_ALTER_CONFIGS": ("IncrementalAlterConfigs", _incremental_alter_configs),
    "ALTER_CONFIGS": ("AlterConfigs", _alter_configs),
    "ALTER_CLIENT_QUOTAS": ("AlterClientQuotas", _alter_client_quotas),
    "CREATE_ACLS": ("CreateAcls", _create_acls),
    "DELETE_ACLS": ("DeleteAcls", _delete_acls),
    "ALTER_USER_SCRAM_CREDENTIALS": ("AlterUserScramCredentials", _alter_scram),
    "UPDATE_FEATURES": ("UpdateFeatures", _update_features),
    "ALTER_PARTITION_REASSIGNMENTS": ("AlterPartitionReassignments", _reassign),
    "ELECT_LEADERS": ("ElectLeaders", _elect_leaders),
    "UNREGISTER_BROKER": ("UnregisterBroker", _unregister_broker),
    "UNREGISTER_CONTROLLER": ("UnregisterController", _unregister_controller),
    "ADD_RAFT_VOTER": ("AddRaftVoter", _voter),
    "REMOVE_RAFT_VOTER": ("RemoveRaftVoter", _voter),
    "CREATE_DELEGATION_TOKEN": ("CreateDelegationToken", _token),
    "RENEW_DELEGATION_TOKEN": ("RenewDelegationToken", _token_expiry),
    "EXPIRE_DELEGATION_TOKEN": ("ExpireDelegationToken", _token_expiry),
}
"""By the name in the request log: the requests that change metadata, their names in the authorizer's
log, and a reader of what they changed."""

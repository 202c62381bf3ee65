"""Schemas of what `--json` prints: `quorate TOOL --json-schema`.

A schema has one definition for each command of the tool; `-line` in a name: the command prints a line
of JSON for each step. Its version is in `$id`. Within a version,
properties may be added, but none is removed or changes its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_VERSION: Final = 1

Schema = dict[str, Any]


def _object(**properties: Schema) -> Schema:
    """An object with all of these properties, and perhaps others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _with_optional(schema: Schema, **properties: Schema) -> Schema:
    """The object may also have these properties."""
    return {**schema, "properties": {**schema["properties"], **properties}}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "integer"}
QUANTITY: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
_IDS: Final = _list(NUMBER)
_MAYBE_TEXT: Final = _or_null(TEXT)
_PARTITION: Final = {"topic": TEXT, "partition": NUMBER}
_OUTCOMES: Final = _list(_object(topic=TEXT, error=_MAYBE_TEXT))
_ACL: Final = _object(
    resourceType=TEXT,
    resourceName=TEXT,
    patternType=TEXT,
    principal=TEXT,
    host=TEXT,
    operation=TEXT,
    permissionType=TEXT,
)
_TOKEN: Final = _object(
    tokenId=TEXT,
    hmac=TEXT,
    owner=TEXT,
    requester=TEXT,
    renewers=_list(TEXT),
    issueTimestamp=NUMBER,
    expiryTimestamp=NUMBER,
    maxTimestamp=NUMBER,
)
_EXPIRY: Final = _object(expiryTimestamp=NUMBER)
_EVENT: Final = _object(
    time=TEXT, node=NUMBER, epoch=NUMBER, request=TEXT, principal=_MAYBE_TEXT, result=TEXT
)
"""Those fields of the audit trail that every entry has; docs/operations.md describes all."""
_UNREGISTERED: Final = _object(id=NUMBER, unregistered=FLAG)
_NODE: Final = {"id": NUMBER, "host": TEXT, "port": NUMBER, "rack": _MAYBE_TEXT}
_PLAN: Final = _object(
    version=NUMBER,
    partitions=_list(_object(**_PARTITION, replicas=_IDS, log_dirs=_list(TEXT))),
)
_MOVING: Final = _list(_object(**_PARTITION))
_REPLICA: Final = {"id": NUMBER}

_COMMANDS: Final[Mapping[str, Mapping[str, Schema]]] = {
    "metadata-shell": {
        "diff": _list(_object(path=TEXT, before=_MAYBE_TEXT, after=_MAYBE_TEXT)),
    },
    "topics": {
        "list": _list(TEXT),
        "describe": _list(
            _object(
                topic=TEXT,
                topicId=TEXT,
                internal=FLAG,
                partitionCount=NUMBER,
                replicationFactor=NUMBER,
                configs=_map(_MAYBE_TEXT),
                partitions=_list(
                    _object(
                        partition=NUMBER,
                        leader=_or_null(NUMBER),
                        leaderEpoch=NUMBER,
                        replicas=_IDS,
                        isr=_IDS,
                        offlineReplicas=_IDS,
                        addingReplicas=_IDS,
                        removingReplicas=_IDS,
                        eligibleLeaderReplicas=_or_null(_IDS),
                        lastKnownEligibleLeaderReplicas=_or_null(_IDS),
                    )
                ),
            )
        ),
        "create": _object(
            topic=TEXT, topicId=TEXT, partitionCount=NUMBER, replicationFactor=NUMBER
        ),
        "alter": _OUTCOMES,
        "delete": _OUTCOMES,
    },
    "configs": {
        "describe": _list(
            _object(
                entityType=TEXT,
                entityName=_MAYBE_TEXT,
                configs=_list(
                    _object(
                        name=TEXT,
                        value=_MAYBE_TEXT,
                        source=TEXT,
                        sensitive=FLAG,
                        readOnly=FLAG,
                        synonyms=_list(_object(name=TEXT, value=_MAYBE_TEXT, source=TEXT)),
                    )
                ),
            )
        ),
        "describe-users": _object(
            quotas=_list(_object(entity=_map(_MAYBE_TEXT), quotas=_map(QUANTITY))),
            scramCredentials=_list(
                _object(user=TEXT, credentials=_list(_object(mechanism=TEXT, iterations=NUMBER)))
            ),
        ),
        "alter": _object(
            entities=_list(_object(entityType=TEXT, entityName=_MAYBE_TEXT)),
            set=_list(TEXT),
            deleted=_list(TEXT),
        ),
    },
    "acls": {
        "list": _list(_ACL),
        "add": _object(added=_list(_ACL)),
        "remove": _object(removed=_list(_ACL)),
    },
    "cluster": {
        "cluster-id": _object(clusterId=TEXT),
        "list-endpoints": _list(_object(**_NODE, endpointType=_one_of("broker", "controller"))),
        "registrations": _list(
            _object(
                id=NUMBER,
                kind=_one_of("broker", "controller"),
                host=TEXT,
                port=NUMBER,
                state=_one_of("active", "fenced", "voter", "observer", "silent", "ghost"),
                lastFetchTimestamp=NUMBER,
                remedy=_MAYBE_TEXT,
            )
        ),
        "events": _list(_EVENT),
        "events-line": _EVENT,
        "unregister": _UNREGISTERED,
        "unregister-controller": _UNREGISTERED,
        "api-versions": _list(
            _object(
                **_NODE,
                fenced=FLAG,
                error=_MAYBE_TEXT,
                apis=_list(
                    _object(key=NUMBER, name=_MAYBE_TEXT, minVersion=NUMBER, maxVersion=NUMBER)
                ),
            )
        ),
    },
    "leader-election": {
        "election": _list(
            _object(
                **_PARTITION, result=_one_of("elected", "not needed", "failed"), error=_MAYBE_TEXT
            )
        )
    },
    "reassign-partitions": {
        "generate": _object(current=_PLAN, proposed=_PLAN),
        "execute": _object(before=_PLAN, started=_MOVING),
        "verify": _object(
            partitions=_list(
                _object(**_PARTITION, currentReplicas=_IDS, targetReplicas=_IDS, done=FLAG)
            ),
            partitionsOngoing=FLAG,
            directoryMoves=_list(
                _object(
                    **_PARTITION,
                    broker=NUMBER,
                    currentDir=_MAYBE_TEXT,
                    futureDir=_MAYBE_TEXT,
                    targetDir=TEXT,
                    done=FLAG,
                )
            ),
            directoryMovesOngoing=FLAG,
            throttlesCleared=FLAG,
        ),
        "cancel": _object(
            cancelled=_MOVING,
            cancelledDirectoryMoves=_list(_object(**_PARTITION, broker=NUMBER)),
            throttlesCleared=FLAG,
        ),
        "list": _list(
            _object(**_PARTITION, replicas=_IDS, addingReplicas=_IDS, removingReplicas=_IDS)
        ),
    },
    "log-dirs": {
        "describe": _object(
            version=NUMBER,
            brokers=_list(
                _object(
                    broker=NUMBER,
                    logDirs=_list(
                        _object(
                            logDir=TEXT,
                            error=_MAYBE_TEXT,
                            totalBytes=NUMBER,
                            usableBytes=NUMBER,
                            cordoned=FLAG,
                            partitions=_list(
                                _object(
                                    partition=TEXT, size=NUMBER, offsetLag=NUMBER, isFuture=FLAG
                                )
                            ),
                        )
                    ),
                )
            ),
        )
    },
    "delegation-tokens": {
        "create": _TOKEN,
        "renew": _EXPIRY,
        "expire": _EXPIRY,
        "describe": _list(_TOKEN),
    },
    "features": {
        "describe": _object(
            epoch=_or_null(NUMBER),
            features=_list(
                _object(
                    feature=TEXT,
                    supportedMinVersion=NUMBER,
                    supportedMaxVersion=NUMBER,
                    finalizedVersionLevel=NUMBER,
                )
            ),
        )
    },
    "metadata-quorum": {
        "describe-status": _with_optional(
            _object(
                clusterId=TEXT,
                leaderId=NUMBER,
                leaderEpoch=NUMBER,
                highWatermark=NUMBER,
                maxFollowerLag=NUMBER,
                maxFollowerLagTimeMs=NUMBER,
                currentVoters=_list(_object(**_REPLICA)),
                currentObservers=_list(_object(**_REPLICA)),
            ),
            uncommittedAddedVoter=_list(_object(**_REPLICA, directoryId=TEXT)),
            uncommittedRemovedVoter=_list(_object(**_REPLICA, directoryId=TEXT)),
        ),
        "describe-replication": _list(
            _object(
                nodeId=NUMBER,
                directoryId=TEXT,
                logEndOffset=NUMBER,
                lag=NUMBER,
                lastFetchTimestamp={"type": ["integer", "string"]},
                lastCaughtUpTimestamp={"type": ["integer", "string"]},
                status=_one_of("Leader", "Follower", "Observer"),
            )
        ),
        "alter-line": _object(state=_one_of("committed", "planned", "unchanged")),
    },
}
"""Tool -> command -> the schema of its output."""

TOOLS_WITH_SCHEMA: Final = frozenset(_COMMANDS)


def schema_of(tool: str) -> Schema:
    """The schema of a tool of TOOLS_WITH_SCHEMA: any of its `$defs` may be printed."""
    commands = _COMMANDS[tool]
    return {
        "$schema": _DIALECT,
        "$id": f"urn:quorate:cli:{tool}:{_VERSION}",
        "title": f"quorate {tool} --json",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in commands],
        "$defs": dict(commands),
    }

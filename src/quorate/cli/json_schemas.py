"""Schemas of what `--json` prints: `quorate TOOL --json-schema`.

A schema has one definition for each command of the tool; `-line` in a name: the command prints a line
of JSON for each step. Its version is in `$id`. Within a version,
properties may be added, but none is removed or changes its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.cli.json_reports import (
    DEPENDENCIES,
    DUMP_LOG,
    LEVELS_OF_RELEASE,
    PIPELINE,
    SIM,
    STORAGE,
)
from quorate.cli.json_types import (
    FLAG,
    MAYBE_TEXT,
    NUMBER,
    QUANTITY,
    TEXT,
    Schema,
    list_of,
    map_of,
    object_of,
    one_of,
    or_null,
    with_any,
    with_optional,
)

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_VERSION: Final = 1

_IDS: Final = list_of(NUMBER)
_PARTITION: Final = {"topic": TEXT, "partition": NUMBER}
_OUTCOMES: Final = list_of(object_of(topic=TEXT, error=MAYBE_TEXT))
_ACL: Final = object_of(
    resourceType=TEXT,
    resourceName=TEXT,
    patternType=TEXT,
    principal=TEXT,
    host=TEXT,
    operation=TEXT,
    permissionType=TEXT,
)
_TOKEN: Final = object_of(
    tokenId=TEXT,
    hmac=TEXT,
    owner=TEXT,
    requester=TEXT,
    renewers=list_of(TEXT),
    issueTimestamp=NUMBER,
    expiryTimestamp=NUMBER,
    maxTimestamp=NUMBER,
)
_EXPIRY: Final = object_of(expiryTimestamp=NUMBER)
_EVENT: Final = with_any(
    object_of(time=TEXT, node=NUMBER, epoch=NUMBER, request=TEXT, principal=MAYBE_TEXT, result=TEXT)
)
"""Those fields of the audit trail that every entry has; docs/operations.md describes all."""
_UNREGISTERED: Final = object_of(id=NUMBER, unregistered=FLAG)
_NODE: Final = {"id": NUMBER, "host": TEXT, "port": NUMBER, "rack": MAYBE_TEXT}
_PLAN: Final = object_of(
    version=NUMBER,
    partitions=list_of(object_of(**_PARTITION, replicas=_IDS, log_dirs=list_of(TEXT))),
)
_MOVING: Final = list_of(object_of(**_PARTITION))
_REPLICA: Final = object_of(id=NUMBER, directoryId=TEXT)
_VOTER: Final = with_optional(_REPLICA, endpoints=list_of(TEXT))
_PARTLY_DONE: Final = {
    "partly-done": object_of(
        error=TEXT,
        answered=list_of(object_of(item=TEXT, error=MAYBE_TEXT)),
        unknown=list_of(TEXT),
        notDone=list_of(TEXT),
    )
}
"""Of a command that failed in the middle: `unknown` are items that may have been changed."""
_VERIFIED: Final = object_of(
    partitions=list_of(
        object_of(**_PARTITION, currentReplicas=_IDS, targetReplicas=_IDS, done=FLAG)
    ),
    partitionsOngoing=FLAG,
    directoryMoves=list_of(
        object_of(
            **_PARTITION,
            broker=NUMBER,
            currentDir=MAYBE_TEXT,
            futureDir=MAYBE_TEXT,
            targetDir=TEXT,
            done=FLAG,
        )
    ),
    directoryMovesOngoing=FLAG,
    throttlesCleared=FLAG,
)
_CHANGED_FEATURES: Final = object_of(
    dryRun=FLAG, features=list_of(object_of(feature=TEXT, level=NUMBER, error=MAYBE_TEXT))
)

_COMMANDS: Final[Mapping[str, Mapping[str, Schema]]] = {
    "metadata-shell": {
        "diff": list_of(object_of(path=TEXT, before=MAYBE_TEXT, after=MAYBE_TEXT)),
        "command": object_of(command=TEXT, lines=list_of(TEXT)),
    },
    "topics": {
        "list": list_of(TEXT),
        "describe": list_of(
            object_of(
                topic=TEXT,
                topicId=TEXT,
                internal=FLAG,
                partitionCount=NUMBER,
                replicationFactor=NUMBER,
                configs=map_of(MAYBE_TEXT),
                partitions=list_of(
                    object_of(
                        partition=NUMBER,
                        leader=or_null(NUMBER),
                        leaderEpoch=NUMBER,
                        replicas=_IDS,
                        isr=_IDS,
                        offlineReplicas=_IDS,
                        addingReplicas=_IDS,
                        removingReplicas=_IDS,
                        eligibleLeaderReplicas=or_null(_IDS),
                        lastKnownEligibleLeaderReplicas=or_null(_IDS),
                    )
                ),
            )
        ),
        "create": object_of(
            topic=TEXT, topicId=TEXT, partitionCount=NUMBER, replicationFactor=NUMBER
        ),
        "create-existing": object_of(topic=TEXT, created=FLAG),
        "alter": _OUTCOMES,
        "delete": _OUTCOMES,
        **_PARTLY_DONE,
    },
    "configs": {
        "describe": list_of(
            object_of(
                entityType=TEXT,
                entityName=MAYBE_TEXT,
                configs=list_of(
                    object_of(
                        name=TEXT,
                        value=MAYBE_TEXT,
                        source=TEXT,
                        sensitive=FLAG,
                        readOnly=FLAG,
                        synonyms=list_of(object_of(name=TEXT, value=MAYBE_TEXT, source=TEXT)),
                    )
                ),
            )
        ),
        "describe-users": object_of(
            quotas=list_of(object_of(entity=map_of(MAYBE_TEXT), quotas=map_of(QUANTITY))),
            scramCredentials=list_of(
                with_optional(
                    object_of(
                        user=TEXT,
                        credentials=list_of(object_of(mechanism=TEXT, iterations=NUMBER)),
                    ),
                    error=TEXT,
                )
            ),
        ),
        "alter": object_of(
            entities=list_of(object_of(entityType=TEXT, entityName=MAYBE_TEXT)),
            set=list_of(TEXT),
            deleted=list_of(TEXT),
        ),
    },
    "acls": {
        "list": list_of(_ACL),
        "add": object_of(added=list_of(_ACL)),
        "remove": object_of(removed=list_of(_ACL)),
        **_PARTLY_DONE,
    },
    "cluster": {
        "cluster-id": object_of(clusterId=TEXT),
        "list-endpoints": list_of(
            with_optional(
                object_of(**_NODE, endpointType=one_of("broker", "controller")), fenced=FLAG
            )
        ),
        "registrations": list_of(
            object_of(
                id=NUMBER,
                kind=one_of("broker", "controller"),
                host=TEXT,
                port=NUMBER,
                state=one_of("active", "fenced", "voter", "observer", "silent", "ghost"),
                lastFetchTimestamp=NUMBER,
                remedy=MAYBE_TEXT,
            )
        ),
        "problems": list_of(object_of(node=TEXT, what=TEXT, remedy=TEXT, runbook=TEXT)),
        "events": list_of(_EVENT),
        "events-line": _EVENT,
        "unregister": _UNREGISTERED,
        "unregister-controller": _UNREGISTERED,
        "api-versions": list_of(
            object_of(
                **_NODE,
                fenced=FLAG,
                error=MAYBE_TEXT,
                apis=list_of(
                    object_of(key=NUMBER, name=MAYBE_TEXT, minVersion=NUMBER, maxVersion=NUMBER)
                ),
            )
        ),
    },
    "leader-election": {
        "election": list_of(
            object_of(
                **_PARTITION, result=one_of("elected", "not needed", "failed"), error=MAYBE_TEXT
            )
        ),
        **_PARTLY_DONE,
    },
    "reassign-partitions": {
        "generate": object_of(current=_PLAN, proposed=_PLAN),
        "execute": with_optional(
            object_of(before=_PLAN, plan=_PLAN, started=_MOVING), verified=_VERIFIED
        ),
        "verify": _VERIFIED,
        "cancel": object_of(
            cancelled=_MOVING,
            cancelledDirectoryMoves=list_of(object_of(**_PARTITION, broker=NUMBER)),
            throttlesCleared=FLAG,
        ),
        "list": list_of(
            object_of(**_PARTITION, replicas=_IDS, addingReplicas=_IDS, removingReplicas=_IDS)
        ),
        **_PARTLY_DONE,
    },
    "log-dirs": {
        "describe": object_of(
            version=NUMBER,
            brokers=list_of(
                with_optional(
                    object_of(
                        broker=NUMBER,
                        logDirs=list_of(
                            object_of(
                                logDir=TEXT,
                                error=MAYBE_TEXT,
                                totalBytes=NUMBER,
                                usableBytes=NUMBER,
                                cordoned=FLAG,
                                partitions=list_of(
                                    object_of(
                                        partition=TEXT, size=NUMBER, offsetLag=NUMBER, isFuture=FLAG
                                    )
                                ),
                            )
                        ),
                    ),
                    error=TEXT,
                )
            ),
        )
    },
    "delegation-tokens": {
        "create": _TOKEN,
        "renew": _EXPIRY,
        "expire": _EXPIRY,
        "describe": list_of(_TOKEN),
    },
    "features": {
        "describe": object_of(
            epoch=or_null(NUMBER),
            features=list_of(
                object_of(
                    feature=TEXT,
                    supportedMinVersion=NUMBER,
                    supportedMaxVersion=NUMBER,
                    finalizedVersionLevel=NUMBER,
                )
            ),
        ),
        "upgrade": _CHANGED_FEATURES,
        "downgrade": _CHANGED_FEATURES,
        "disable": _CHANGED_FEATURES,
        "version-mapping": LEVELS_OF_RELEASE,
        "feature-dependencies": DEPENDENCIES,
    },
    "metadata-quorum": {
        "describe-status": with_optional(
            object_of(
                clusterId=TEXT,
                leaderId=NUMBER,
                leaderEpoch=NUMBER,
                highWatermark=NUMBER,
                maxFollowerLag=NUMBER,
                maxFollowerLagTimeMs=NUMBER,
                currentVoters=list_of(_VOTER),
                currentObservers=list_of(_VOTER),
            ),
            uncommittedAddedVoter=list_of(_REPLICA),
            uncommittedRemovedVoter=list_of(_REPLICA),
        ),
        "describe-replication": list_of(
            object_of(
                nodeId=NUMBER,
                directoryId=TEXT,
                logEndOffset=NUMBER,
                lag=NUMBER,
                lastFetchTimestamp={"type": ["integer", "string"]},
                lastCaughtUpTimestamp={"type": ["integer", "string"]},
                status=one_of("Leader", "Follower", "Observer"),
            )
        ),
        "alter-line": with_optional(
            object_of(state=one_of("committed", "planned", "unchanged")),
            action=TEXT,
            id=NUMBER,
            directoryId=TEXT,
        ),
        "add-controller": object_of(
            **_REPLICA["properties"], endpoints=list_of(TEXT), added=FLAG, dryRun=FLAG
        ),
        "remove-controller": object_of(
            **_REPLICA["properties"], removed=FLAG, unregistered=FLAG, dryRun=FLAG
        ),
    },
    "storage": STORAGE,
    "dump-log": DUMP_LOG,
    "pipeline": PIPELINE,
    "sim": SIM,
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

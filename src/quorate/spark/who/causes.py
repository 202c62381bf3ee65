"""What can cause an event, and which evidence shows who did.

Kafka's controller writes a record because of a client's request, of a broker's request (heartbeat,
AlterPartition, ...), or by itself. Most records show which. Where one does not, the evidence
decides, and `Cause.otherwise` holds when there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quorate.metadata.image import RECOVERING
from quorate.spark.who.keys import (
    ANY,
    BODY,
    CLUSTER,
    CONFIG_TYPES,
    ELECTIONS,
    MENTION,
    NAMED,
    REPORTED,
    THE_CLUSTER,
    fence_key,
    key,
)
from quorate.spark.who.messages import EvidenceKey

REQUEST: Final = "request"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"
BOOTSTRAP: Final = "bootstrap"
UNKNOWN: Final = "unknown"
CAUSES: Final = {
    REQUEST: "a client's request",
    BROKER: "a broker's request, as part of its work",
    CONTROLLER: "the controllers by themselves",
    BOOTSTRAP: "set when the cluster was formatted",
    UNKNOWN: "a request, or a node by itself: nothing shows which",
}
"""The values of the column `caused_by`."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ChangeContext:
    """What else happened in the same record or batch as an event."""

    bootstrap: bool = False
    """The batch sets the first metadata.version."""
    topic_created: bool = False
    topic_deleted: bool = False
    reassigned: bool = False
    """The same record changed the replicas."""
    upgraded: bool = False
    """The same batch sets kraft.version."""
    node_events: Sequence[str] = ()
    """Events of brokers in the same batch, as `broker 12 fenced`."""


@dataclass(frozen=True)
class Cause:
    """What caused an event, as far as its record shows it."""

    cause: str
    wants: tuple[EvidenceKey, ...] = ()
    """The keys of evidence to look for."""
    reason: str = ""
    otherwise: str = REQUEST
    """The cause when no evidence of a request is found."""
    who: str | None = None
    """The principal, where the record itself names it."""
    reported: str = ""
    """The reason where a line of the controller confirms it; empty: `reason`."""
    sure: bool = True
    """Of a cause other than a request: whether the record proves it without a controller's line."""


def cause_of(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    """The cause of an event of `changes`.

    event: the columns of its row; facts: `before` and `after`, parsed
    """
    if context.bootstrap:
        return Cause(BOOTSTRAP, reason="written with the first metadata.version, by the formatter")
    rule = _RULES.get(str(event["event"]))
    if rule is None:
        return Cause(UNKNOWN, reason="an unknown event", otherwise=UNKNOWN)
    return rule(event, facts, context)


@dataclass(frozen=True)
class ChangeFacts:
    """The columns `before` and `after` of an event, parsed from JSON."""

    before: Row
    after: Row


def _by_request(*wants: EvidenceKey) -> Cause:
    return Cause(REQUEST, wants)


def _on_topic(request: str, name: str) -> tuple[EvidenceKey, ...]:
    return (
        EvidenceKey(key(request, "topic", name), BODY),
        EvidenceKey(key(request, "Topic", name), NAMED),
        EvidenceKey(key(request, *THE_CLUSTER), CLUSTER),
    )


def _on_cluster(request: str, *words: object) -> tuple[EvidenceKey, ...]:
    body = (EvidenceKey(key(request, *words), BODY),) if words else ()
    return (*body, EvidenceKey(key(request, *THE_CLUSTER), NAMED))


def _topic_created(event: Row, _facts: ChangeFacts, _context: ChangeContext) -> Cause:
    name = event["topic_name"]
    return _by_request(
        *_on_topic("CreateTopics", name),
        EvidenceKey(key("CreateTopics", "Topic", name), MENTION),
        *_on_topic("Metadata", name)[1:],
        *_on_topic("StreamsGroupHeartbeat", name)[1:],
    )


def _topic_deleted(event: Row, _facts: ChangeFacts, _context: ChangeContext) -> Cause:
    return _by_request(*_on_topic("DeleteTopics", event["topic_name"]))


def _partition_created(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    if context.topic_created:
        return _topic_created(event, facts, context)
    return _by_request(*_on_topic("CreatePartitions", event["topic_name"])[:2])


def _config(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    kind, name = event["resource_type"], event["resource_name"]
    if kind == "topic" and context.topic_created:
        return _topic_created(event, facts, context)
    if kind == "topic" and context.topic_deleted:
        return _topic_deleted(event, facts, context)
    value = facts.after.get("value")
    about = (CONFIG_TYPES[kind], name) if kind in CONFIG_TYPES else THE_CLUSTER
    keys = [("config", kind, name, event["name"], one) for one in (value, ANY)]
    wants = [
        EvidenceKey(key(request, *words), BODY)
        for request in ("IncrementalAlterConfigs", "AlterConfigs")
        for words in keys
    ]
    if value is None:
        wants.append(EvidenceKey(key("AlterConfigs", "config", kind, name, ANY, None), BODY))
    wants += [
        EvidenceKey(key(one, *about), NAMED) for one in ("IncrementalAlterConfigs", "AlterConfigs")
    ]
    return _by_request(*wants)


def _quota(event: Row, facts: ChangeFacts, _context: ChangeContext) -> Cause:
    value = facts.after.get("value")
    number = (
        None if value is None else float(value)
    )  # a string where JSON has no such number (Infinity, NaN)
    words = ("quota", event["resource_name"], event["name"], number)
    return _by_request(*_on_cluster("AlterClientQuotas", *words))


def _acl(event: Row, facts: ChangeFacts, _context: ChangeContext) -> Cause:
    acl = facts.after or facts.before
    words = [acl.get(name) for name in _ACL_FACTS]
    request = "CreateAcls" if facts.after else "DeleteAcls"
    return _by_request(*_on_cluster(request, "acl", *words))


_ACL_FACTS: Final = (
    *("resource_type", "resource_name", "pattern_type", "principal", "host", "operation"),
    "permission",
)


def _scram(event: Row, facts: ChangeFacts, _context: ChangeContext) -> Cause:
    words = ("scram", event["principal"], event["name"], facts.after.get("iterations"))
    return _by_request(*_on_cluster("AlterUserScramCredentials", *words))


def _feature(event: Row, facts: ChangeFacts, _context: ChangeContext) -> Cause:
    if event["name"] == "kraft.version" and event["offset"] < _FIRST_OFFSETS:
        return Cause(BOOTSTRAP, reason="the first kraft.version comes with the first voters")
    level = facts.after.get("level")
    return _by_request(*_on_cluster("UpdateFeatures", "feature", event["name"], level))


def _token(event: Row, facts: ChangeFacts, _context: ChangeContext) -> Cause:
    if not facts.after:
        return Cause(
            UNKNOWN,
            (EvidenceKey(key("ExpireDelegationToken"), MENTION),),
            "it expired, or its owner or a renewer expired it; no log names the token",
            UNKNOWN,
        )
    if not facts.before:
        requester = facts.after.get("requester") or facts.after.get("owner")
        return Cause(
            REQUEST,
            _on_cluster("CreateDelegationToken", "token", event["name"])[:1],
            "the record of the token names its requester",
            who=str(requester),
        )
    expiry = facts.after.get("expiration_timestamp")
    requests = ("RenewDelegationToken", "ExpireDelegationToken")
    return _by_request(*(EvidenceKey(key(one, "token expiry", expiry), BODY) for one in requests))


def _reassignment(event: Row, _facts: ChangeFacts, _context: ChangeContext) -> Cause:
    words = ("partition", event["topic_name"], event["partition"])
    return _by_request(*_on_cluster("AlterPartitionReassignments", *words))


def _reassignment_end(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    """A reassignment ends when the new replicas have caught up, or when a request cancels it."""
    found = _reassignment(event, facts, context)
    started = set(facts.before.get("adding_replicas") or ())
    if started and not started & set(facts.after.get("replicas") or ()):
        return found
    if started or facts.before.get("removing_replicas"):
        return Cause(BROKER, reason="AlterPartition of the leader: the new replicas are in sync")
    return found


def _leader(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    if context.reassigned:
        return _reassignment(event, facts, context)
    if node_event := _node_event_of(facts, context):
        return Cause(CONTROLLER, _ELECTED, f"in the same batch: {node_event}")
    why = event["cause"] or "unclean election"
    if why in _WHY_CONTROLLER:
        return Cause(CONTROLLER, _ELECTED, f"{why}: the controller elects without a request")
    words = ("partition", event["topic_name"], event["partition"])
    return Cause(
        UNKNOWN,
        (*_on_cluster("ElectLeaders", *words), *_ELECTED),
        f"{why}: an ElectLeaders request, or the controller's own leader rebalancing",
        UNKNOWN,
    )


_ELECTED: Final = (EvidenceKey(ELECTIONS, REPORTED),)
_WHY_CONTROLLER: Final = frozenset(
    {
        *("no replica in sync is online", "a replica in sync came back", "leader left the ISR"),
        *("same leader, new epoch", "reassigned away"),
    }
)


def _isr(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    if context.reassigned:
        return _reassignment(event, facts, context)
    if node_event := _node_event_of(facts, context):
        return Cause(CONTROLLER, _ELECTED, f"in the same batch: {node_event}")
    return Cause(BROKER, reason="AlterPartition of the partition's leader")


def _node_event_of(facts: ChangeFacts, context: ChangeContext) -> str | None:
    """The event of a broker that this change of a partition involves.

    A batch may hold records of several operations, so events of other brokers explain nothing.
    """
    about: set[int] = {facts.before.get("leader", -1), facts.after.get("leader", -1)}
    for name in ("isr", "elr", "last_known_elr"):
        about |= set(facts.before.get(name) or ()) ^ set(facts.after.get(name) or ())
    return next((text for text in context.node_events if int(text.split()[1]) in about), None)


def _recovery(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    """An unclean election begins a recovery, AlterPartition of the new leader ends it."""
    if facts.after.get("leader_recovery_state") != RECOVERING:
        return Cause(BROKER, reason="AlterPartition of the partition's leader: it has recovered")
    if context.node_events:
        return Cause(CONTROLLER, _ELECTED, f"in the same batch: {context.node_events[0]}")
    return _leader(event, facts, context)


def _fenced(event: Row, _facts: ChangeFacts, _context: ChangeContext) -> Cause:
    return Cause(
        CONTROLLER,
        (EvidenceKey(fence_key(event["node_id"]), REPORTED),),
        "no heartbeat arrived in time, or the broker finished its controlled shutdown",
        reported="no heartbeat arrived in time",
        sure=False,
    )


def _voter(event: Row, facts: ChangeFacts, context: ChangeContext) -> Cause:
    if event["event"] == "voter updated":
        return Cause(CONTROLLER, reason="UpdateRaftVoter of the controller itself")
    if event["event"] == "voter added" and event["offset"] < _FIRST_OFFSETS:
        return Cause(
            BOOTSTRAP, reason="one of the first voters, set when the cluster was formatted"
        )
    if event["event"] == "voter added" and context.upgraded:
        return _by_request(*_on_cluster("UpdateFeatures", "feature", "kraft.version", _DYNAMIC))
    request = "AddRaftVoter" if facts.after else "RemoveRaftVoter"
    return _by_request(*_on_cluster(request, "voter", event["node_id"]))


_DYNAMIC: Final = 1
"""The kraft.version whose record is followed by the voters of a static quorum (KIP-853)."""
_FIRST_OFFSETS: Final = 3
"""Offsets of LeaderChange, KRaftVersion and KRaftVoters, which the first leader writes from its
bootstrap checkpoint."""


def _unregistered(event: Row, _facts: ChangeFacts, _context: ChangeContext) -> Cause:
    return _by_request(*_on_cluster("UnregisterBroker", "broker", event["node_id"]))


def _controller_removed(event: Row, _facts: ChangeFacts, _context: ChangeContext) -> Cause:
    return _by_request(*_on_cluster("UnregisterController", "controller", event["node_id"]))


def _of(cause: str, reason: str) -> Callable[[Row, ChangeFacts, ChangeContext], Cause]:
    return lambda event, facts, context: Cause(cause, reason=reason)


_RULES: Final[dict[str, Callable[[Row, ChangeFacts, ChangeContext], Cause]]] = {
    "topic created": _topic_created,
    "topic deleted": _topic_deleted,
    "partition created": _partition_created,
    "config set": _config,
    "config deleted": _config,
    "quota set": _quota,
    "quota removed": _quota,
    "acl added": _acl,
    "acl removed": _acl,
    "scram credential set": _scram,
    "scram credential removed": _scram,
    "feature set": _feature,
    "feature removed": _feature,
    "token set": _token,
    "token removed": _token,
    "reassignment started": _reassignment,
    "replicas changed": _reassignment,
    "reassignment finished": _reassignment_end,
    "leader changed": _leader,
    "leader confirmed": _leader,
    "recovery state changed": _recovery,
    "isr shrunk": _isr,
    "isr expanded": _isr,
    "isr changed": _isr,
    "elr changed": _isr,
    "directories changed": _of(BROKER, "AssignReplicasToDirs of a broker"),
    "broker registered": _of(BROKER, "BrokerRegistration of the broker itself"),
    "broker unregistered": _unregistered,
    "broker fenced": _fenced,
    "broker unfenced": _of(BROKER, "BrokerHeartbeat of the broker itself: it has caught up"),
    "broker shutting down": _of(
        BROKER, "BrokerHeartbeat of the broker itself: it requests a controlled shutdown"
    ),
    "broker directories changed": _of(BROKER, "BrokerHeartbeat of the broker itself"),
    "controller registered": _of(CONTROLLER, "ControllerRegistration of the controller itself"),
    "controller removed": _controller_removed,
    "controller elected": _of(CONTROLLER, "an election of the quorum"),
    "controller lost": _of(CONTROLLER, "an election of the quorum"),
    "voter added": _voter,
    "voter removed": _voter,
    "voter updated": _voter,
    "producer ids allocated": _of(BROKER, "AllocateProducerIds of a broker"),
    "producer ids removed": _of(CONTROLLER, "no request does this"),
}
EVENTS: Final = frozenset(_RULES)
"""The events of `changes` for which there is a rule."""

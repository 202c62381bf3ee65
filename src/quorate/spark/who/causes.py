"""What can cause an event, and which evidence would tell who did.

Kafka's controller writes a record because a client asked, because a broker asked (heartbeat,
AlterPartition, ...), or by itself. For most events the record tells which; where it does not, the
evidence decides, and `otherwise` says what is left when there is none.
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
    THE_CLUSTER,
    TOLD,
    fence_key,
    key,
)
from quorate.spark.who.messages import Offer

REQUEST: Final = "request"
BROKER: Final = "broker"
CONTROLLER: Final = "controller"
BOOTSTRAP: Final = "bootstrap"
UNKNOWN: Final = "unknown"
CAUSES: Final = {
    REQUEST: "somebody asked for it",
    BROKER: "a broker asked for it, as part of its work",
    CONTROLLER: "the controllers did it by themselves",
    BOOTSTRAP: "it was given when the cluster was formatted",
    UNKNOWN: "a request, or a node by itself: nothing tells which",
}
"""What the column `cause` says."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """What happened with an event in the same record or batch."""

    bootstrap: bool = False
    """The first metadata.version was set with it."""
    topic_created: bool = False
    topic_deleted: bool = False
    reassigned: bool = False
    """The same record changed the replicas."""
    upgraded: bool = False
    """kraft.version was set in the same batch."""
    node_events: Sequence[str] = ()
    """What befell brokers in the same batch: `broker 12 fenced`."""


@dataclass(frozen=True)
class Cause:
    """Where an event comes from, as far as it tells by itself."""

    cause: str
    wants: tuple[Offer, ...] = ()
    """The evidence to look for; of class `request` and UNKNOWN."""
    reason: str = ""
    otherwise: str = REQUEST
    """The cause when no evidence of a request is found."""
    who: str | None = None
    """A name that the record itself has."""
    told: str = ""
    """The reason where a line of the controller tells it."""
    sure: bool = True
    """Of a node's cause: whether the record tells it without a line of the controller."""


def cause_of(event: Row, facts: Facts, context: Context) -> Cause:
    """The cause of an event of `changes`.

    event: its columns; facts: `before` and `after`, parsed
    """
    if context.bootstrap:
        return Cause(BOOTSTRAP, reason="written with the first metadata.version, by the formatter")
    rule = _RULES.get(str(event["event"]))
    if rule is None:
        return Cause(UNKNOWN, reason="an event that is not known here", otherwise=UNKNOWN)
    return rule(event, facts, context)


@dataclass(frozen=True)
class Facts:
    """The facts before and after."""

    before: Row
    after: Row


def _asked(*wants: Offer) -> Cause:
    return Cause(REQUEST, wants)


def _on_topic(request: str, name: str) -> tuple[Offer, ...]:
    return (
        Offer(key(request, "topic", name), BODY),
        Offer(key(request, "Topic", name), NAMED),
        Offer(key(request, *THE_CLUSTER), CLUSTER),
    )


def _on_cluster(request: str, *words: object) -> tuple[Offer, ...]:
    body = (Offer(key(request, *words), BODY),) if words else ()
    return (*body, Offer(key(request, *THE_CLUSTER), NAMED))


def _topic_created(event: Row, _facts: Facts, _context: Context) -> Cause:
    name = event["topic_name"]
    return _asked(
        *_on_topic("CreateTopics", name),
        Offer(key("CreateTopics", "Topic", name), MENTION),
        *_on_topic("Metadata", name)[1:],
        *_on_topic("StreamsGroupHeartbeat", name)[1:],
    )


def _topic_deleted(event: Row, _facts: Facts, _context: Context) -> Cause:
    return _asked(*_on_topic("DeleteTopics", event["topic_name"]))


def _partition_created(event: Row, facts: Facts, context: Context) -> Cause:
    if context.topic_created:
        return _topic_created(event, facts, context)
    return _asked(*_on_topic("CreatePartitions", event["topic_name"])[:2])


def _config(event: Row, facts: Facts, context: Context) -> Cause:
    kind, name = event["resource_type"], event["resource_name"]
    if kind == "topic" and context.topic_created:
        return _topic_created(event, facts, context)
    if kind == "topic" and context.topic_deleted:
        return _topic_deleted(event, facts, context)
    value = facts.after.get("value")
    about = (CONFIG_TYPES[kind], name) if kind in CONFIG_TYPES else THE_CLUSTER
    told = [("config", kind, name, event["name"], one) for one in (value, ANY)]
    wants = [
        Offer(key(request, *words), BODY)
        for request in ("IncrementalAlterConfigs", "AlterConfigs")
        for words in told
    ]
    if value is None:
        wants.append(Offer(key("AlterConfigs", "config", kind, name, ANY, None), BODY))
    wants += [Offer(key(one, *about), NAMED) for one in ("IncrementalAlterConfigs", "AlterConfigs")]
    return _asked(*wants)


def _quota(event: Row, facts: Facts, _context: Context) -> Cause:
    value = facts.after.get("value")
    number = None if value is None else float(value)  # a text where JSON has no number for it
    words = ("quota", event["resource_name"], event["name"], number)
    return _asked(*_on_cluster("AlterClientQuotas", *words))


def _acl(event: Row, facts: Facts, _context: Context) -> Cause:
    acl = facts.after or facts.before
    words = [acl.get(name) for name in _ACL_FACTS]
    request = "CreateAcls" if facts.after else "DeleteAcls"
    return _asked(*_on_cluster(request, "acl", *words))


_ACL_FACTS: Final = (
    *("resource_type", "resource_name", "pattern_type", "principal", "host", "operation"),
    "permission",
)


def _scram(event: Row, facts: Facts, _context: Context) -> Cause:
    words = ("scram", event["principal"], event["name"], facts.after.get("iterations"))
    return _asked(*_on_cluster("AlterUserScramCredentials", *words))


def _feature(event: Row, facts: Facts, _context: Context) -> Cause:
    if event["name"] == "kraft.version" and event["offset"] < _FIRST_OFFSETS:
        return Cause(BOOTSTRAP, reason="the first kraft.version comes with the first voters")
    level = facts.after.get("level")
    return _asked(*_on_cluster("UpdateFeatures", "feature", event["name"], level))


def _token(event: Row, facts: Facts, _context: Context) -> Cause:
    if not facts.after:
        return Cause(
            UNKNOWN,
            (Offer(key("ExpireDelegationToken"), MENTION),),
            "it had expired, or its owner or a renewer ended it; no log names the token that ends",
            UNKNOWN,
        )
    if not facts.before:
        requester = facts.after.get("requester") or facts.after.get("owner")
        return Cause(
            REQUEST,
            _on_cluster("CreateDelegationToken", "token", event["name"])[:1],
            "the record of the token names who asked for it",
            who=str(requester),
        )
    expiry = facts.after.get("expiration_timestamp")
    requests = ("RenewDelegationToken", "ExpireDelegationToken")
    return _asked(*(Offer(key(one, "token expiry", expiry), BODY) for one in requests))


def _reassignment(event: Row, _facts: Facts, _context: Context) -> Cause:
    words = ("partition", event["topic_name"], event["partition"])
    return _asked(*_on_cluster("AlterPartitionReassignments", *words))


def _reassignment_end(event: Row, facts: Facts, context: Context) -> Cause:
    """New replicas have caught up, or somebody called it off."""
    found = _reassignment(event, facts, context)
    started = set(facts.before.get("adding_replicas") or ())
    if started and not started & set(facts.after.get("replicas") or ()):
        return found
    if started or facts.before.get("removing_replicas"):
        return Cause(BROKER, reason="AlterPartition of the leader: the new replicas are in sync")
    return found


def _leader(event: Row, facts: Facts, context: Context) -> Cause:
    if context.reassigned:
        return _reassignment(event, facts, context)
    if befell := _befell(facts, context):
        return Cause(CONTROLLER, _ELECTED, f"with it: {befell}")
    why = event["cause"] or "unclean election"
    if why in _WHY_CONTROLLER:
        return Cause(CONTROLLER, _ELECTED, f"{why}: the controller elects without being asked")
    words = ("partition", event["topic_name"], event["partition"])
    return Cause(
        UNKNOWN,
        (*_on_cluster("ElectLeaders", *words), *_ELECTED),
        f"{why}: an ElectLeaders request, or the controller's own balance of leaders",
        UNKNOWN,
    )


_ELECTED: Final = (Offer(ELECTIONS, TOLD),)
_WHY_CONTROLLER: Final = frozenset(
    {
        *("no replica in sync is online", "a replica in sync came back", "leader left the ISR"),
        *("same leader, new epoch", "reassigned away"),
    }
)


def _isr(event: Row, facts: Facts, context: Context) -> Cause:
    if context.reassigned:
        return _reassignment(event, facts, context)
    if befell := _befell(facts, context):
        return Cause(CONTROLLER, _ELECTED, f"with it: {befell}")
    return Cause(BROKER, reason="AlterPartition of the partition's leader")


def _befell(facts: Facts, context: Context) -> str | None:
    """What befell a broker that the change of a partition is about.

    A batch may hold records of several operations, so another broker's fate explains nothing.
    """
    about: set[int] = {facts.before.get("leader", -1), facts.after.get("leader", -1)}
    for name in ("isr", "elr", "last_known_elr"):
        about |= set(facts.before.get(name) or ()) ^ set(facts.after.get(name) or ())
    return next((text for text in context.node_events if int(text.split()[1]) in about), None)


def _recovery(event: Row, facts: Facts, context: Context) -> Cause:
    """An unclean election begins it, AlterPartition of the new leader ends it."""
    if facts.after.get("leader_recovery_state") != RECOVERING:
        return Cause(BROKER, reason="AlterPartition of the partition's leader: it has recovered")
    if context.node_events:
        return Cause(CONTROLLER, _ELECTED, f"with it: {context.node_events[0]}")
    return _leader(event, facts, context)


def _fenced(event: Row, _facts: Facts, _context: Context) -> Cause:
    return Cause(
        CONTROLLER,
        (Offer(fence_key(event["node_id"]), TOLD),),
        "no heartbeat came in time, or the broker was done with its controlled shutdown",
        told="no heartbeat came in time",
        sure=False,
    )


def _voter(event: Row, facts: Facts, context: Context) -> Cause:
    if event["event"] == "voter updated":
        return Cause(CONTROLLER, reason="UpdateRaftVoter of the controller itself")
    if event["event"] == "voter added" and event["offset"] < _FIRST_OFFSETS:
        return Cause(BOOTSTRAP, reason="one of the first voters, given when it was formatted")
    if event["event"] == "voter added" and context.upgraded:
        return _asked(*_on_cluster("UpdateFeatures", "feature", "kraft.version", _DYNAMIC))
    request = "AddRaftVoter" if facts.after else "RemoveRaftVoter"
    return _asked(*_on_cluster(request, "voter", event["node_id"]))


_DYNAMIC: Final = 1
"""The kraft.version whose first record brings the voters of a static quorum with it (KIP-853)."""
_FIRST_OFFSETS: Final = 3
"""LeaderChange, KRaftVersion and KRaftVoters: what the first leader writes of its checkpoint."""


def _unregistered(event: Row, _facts: Facts, _context: Context) -> Cause:
    return _asked(*_on_cluster("UnregisterBroker", "broker", event["node_id"]))


def _of(cause: str, reason: str) -> Callable[[Row, Facts, Context], Cause]:
    return lambda event, facts, context: Cause(cause, reason=reason)


_RULES: Final[dict[str, Callable[[Row, Facts, Context], Cause]]] = {
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
    "broker shutting down": _of(BROKER, "BrokerHeartbeat of the broker itself: it wants to stop"),
    "broker directories changed": _of(BROKER, "BrokerHeartbeat of the broker itself"),
    "controller registered": _of(CONTROLLER, "ControllerRegistration of the controller itself"),
    "controller removed": _of(CONTROLLER, "no request does this"),
    "controller elected": _of(CONTROLLER, "an election of the quorum"),
    "controller lost": _of(CONTROLLER, "an election of the quorum"),
    "voter added": _voter,
    "voter removed": _voter,
    "voter updated": _voter,
    "producer ids allocated": _of(BROKER, "AllocateProducerIds of a broker"),
    "producer ids removed": _of(CONTROLLER, "no request does this"),
}
EVENTS: Final = frozenset(_RULES)
"""The events of `changes` whose causes are known."""

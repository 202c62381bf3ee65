"""Events of silver: the changes of things, with the facts before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from quorate.formats.json_text import no_number
from quorate.metadata.image import NO_LEADER, RECOVERING, Broker, Partition
from quorate.spark.tables.kinds import (
    ACLS,
    BROKERS,
    CONFIGS,
    CONTROLLERS,
    FEATURES,
    LEADERS,
    PARTITIONS,
    PRODUCER_IDS,
    QUOTAS,
    SCRAM,
    TOKENS,
    TOPICS,
    VOTERS,
    ThingKind,
    text_of,
)
from quorate.spark.tables.rules import ThingChange

Facts = dict[str, Any] | None
_TO_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ChangeEvent(NamedTuple):
    """An event; `before` and `after` hold only the facts that it concerns."""

    name: str
    before: Facts
    after: Facts
    cause: str | None = None


def change_events(change: ThingChange) -> Iterator[ChangeEvent]:
    """The events of a change; none when nothing differs."""
    kind, _, before, after = change
    if kind is PARTITIONS:
        yield from _partition_events(change)
    elif kind is BROKERS:
        yield from _broker_events(change)
    elif before is not None or after is not None:
        name = _NAMES[kind.name](before, after)
        yield ChangeEvent(name, _facts(kind, before), _facts(kind, after))


def facts_json(facts: Facts) -> str | None:
    """The facts as a JSON object; infinity and NaN, which JSON lacks, as texts."""
    if facts is None:
        return None
    return _TO_JSON({name: _in_json(fact) for name, fact in facts.items()})


def _in_json(fact: Any) -> Any:
    return (no_number(fact) or fact) if isinstance(fact, float) else fact


def _facts(kind: ThingKind, value: Any) -> Facts:
    if value is None:
        return None
    names = (name for name, _ in kind.values)
    return dict(zip(names, kind.to_values(value), strict=True))


def _pair(added: str, removed: str, changed: str = "") -> Callable[[Any, Any], str]:
    def name(before: Any, after: Any) -> str:
        if after is None:
            return removed
        return changed if changed and before is not None else added

    return name


_NAMES: Final[dict[str, Callable[[Any, Any], str]]] = {
    TOPICS.name: _pair("topic created", "topic deleted"),
    CONTROLLERS.name: _pair("controller registered", "controller removed"),
    VOTERS.name: _pair("voter added", "voter removed", "voter updated"),
    LEADERS.name: _pair("controller elected", "controller lost"),
    CONFIGS.name: _pair("config set", "config deleted"),
    ACLS.name: _pair("acl added", "acl removed"),
    QUOTAS.name: _pair("quota set", "quota removed"),
    SCRAM.name: _pair("scram credential set", "scram credential removed"),
    FEATURES.name: _pair("feature set", "feature removed"),
    PRODUCER_IDS.name: _pair("producer ids allocated", "producer ids removed"),
    TOKENS.name: _pair("token set", "token removed"),
}


def _partition_events(change: ThingChange) -> Iterator[ChangeEvent]:
    if change.after is None:
        return  # part of 'topic deleted'
    if change.before is None:
        yield ChangeEvent("partition created", None, _facts(PARTITIONS, change.after))
        return
    before, after = change.before.state, change.after.state
    if after.leader_epoch != before.leader_epoch:
        name = "leader changed" if after.leader != before.leader else "leader confirmed"
        facts = ("leader", "leader_epoch")
        yield _between(name, before, after, *facts, cause=leader_cause(before, after))
    if after.isr != before.isr:
        yield _between(_isr_event(before, after), before, after, "isr")
    if after.elr != before.elr or after.last_known_elr != before.last_known_elr:
        yield _between("elr changed", before, after, "elr", "last_known_elr")
    yield from _placement_events(before, after)
    if after.leader_recovery_state != before.leader_recovery_state:
        yield _between("recovery state changed", before, after, "leader_recovery_state")


def _placement_events(before: Partition, after: Partition) -> Iterator[ChangeEvent]:
    was = bool(before.adding_replicas or before.removing_replicas)
    now = bool(after.adding_replicas or after.removing_replicas)
    facts = ("replicas", "adding_replicas", "removing_replicas")
    if now != was:
        name = "reassignment started" if now else "reassignment finished"
        yield _between(name, before, after, *facts)
    elif any(getattr(before, fact) != getattr(after, fact) for fact in facts):
        yield _between("replicas changed", before, after, *facts)
    elif before.directories != after.directories:
        texts = [
            {"directories": [text_of(directory) for directory in state.directories]}
            for state in (before, after)
        ]
        yield ChangeEvent("directories changed", texts[0], texts[1])


def _isr_event(before: Partition, after: Partition) -> str:
    was, now = set(before.isr), set(after.isr)
    if now < was:
        return "isr shrunk"
    return "isr expanded" if now > was else "isr changed"


def leader_cause(before: Partition, after: Partition) -> str:
    """Why the leader changed, as far as the state of the partition shows it."""
    if after.leader_recovery_state == RECOVERING and (
        before.leader_recovery_state != RECOVERING or _was_out_of_sync(before, after.leader)
    ):
        return "unclean election"
    if after.leader == before.leader:
        return "same leader, new epoch"
    if after.leader == NO_LEADER:
        return "no replica in sync is online"
    if before.leader == NO_LEADER:
        return "a replica in sync came back"
    if before.leader not in after.replicas:
        return "reassigned away"
    if before.leader not in after.isr:
        return "leader left the ISR"
    if after.leader == after.preferred_leader:
        return "preferred leader elected"
    return "moved by the controller"


def _was_out_of_sync(before: Partition, leader: int) -> bool:
    """Whether a leader was in neither ISR nor ELR.

    It shows a second unclean election while the partition still recovers from the first: Kafka
    sets the recovery state only once.
    """
    return leader != NO_LEADER and leader not in (*before.isr, *before.elr)


def _between(
    name: str, before: Partition, after: Partition, *facts: str, cause: str | None = None
) -> ChangeEvent:
    return ChangeEvent(
        name,
        {fact: getattr(before, fact) for fact in facts},
        {fact: getattr(after, fact) for fact in facts},
        cause,
    )


def _broker_events(change: ThingChange) -> Iterator[ChangeEvent]:
    before: Broker | None = change.before
    after: Broker | None = change.after
    if before is None or after is None or before.epoch != after.epoch:
        name = "broker unregistered" if after is None else "broker registered"
        yield ChangeEvent(name, _facts(BROKERS, before), _facts(BROKERS, after))
        return
    if before.fenced != after.fenced:
        yield _flag("broker fenced" if after.fenced else "broker unfenced", "fenced", before, after)
    if before.in_controlled_shutdown != after.in_controlled_shutdown:
        yield _flag("broker shutting down", "in_controlled_shutdown", before, after)
    if (before.directories, before.cordoned_directories) != (
        after.directories,
        after.cordoned_directories,
    ):
        known, now = _facts(BROKERS, before) or {}, _facts(BROKERS, after) or {}
        names = ("directories", "cordoned_directories")
        yield ChangeEvent(
            "broker directories changed",
            {name: known[name] for name in names},
            {name: now[name] for name in names},
        )


def _flag(name: str, fact: str, before: Broker, after: Broker) -> ChangeEvent:
    return ChangeEvent(name, {fact: getattr(before, fact)}, {fact: getattr(after, fact)})
